"""Axolotl: its own log lines around what Hugging Face's Trainer prints."""

from __future__ import annotations

import re
from dataclasses import replace

from forensics.parsers.console import hf_print, logs
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "console.axolotl"
SURER = 94
"""More than the Trainer alone, whose entries these are."""

_MARK = re.compile(rb"\[axolotl\.|axolotl\.cli|axolotl\.train")
FORMAT = replace(hf_print.FORMAT, title="Axolotl")


def sniff(source: Source) -> Claim | None:
    """Claim a text with the Trainer's entries in which axolotl names itself."""
    if not logs.holds(source, hf_print.MARK) or not logs.holds(source, _MARK):
        return None
    return logs.claim(NAME, FORMAT, source, SURER)


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read the entries."""
    logs.read((FORMAT,), source, sink)
