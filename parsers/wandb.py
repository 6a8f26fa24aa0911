"""Weights & Biases: the local transaction log ``run-ID.wandb``, which offline and online runs both write.

It is the only full record of a run on disk. Read here: every history row, system metrics, configuration, the facts about
the run, its step metrics and its exit. Not read: console text, files, artifacts, summaries (they repeat the history), and
whatever names a person or a machine.
"""

from __future__ import annotations

import re

from forensics.parsers import wandb_wire as wire
from forensics.parsers.interface import Claim, NotMine, RunKey, Source
from forensics.parsers.sink import Sink
from forensics.parsers.wandb_emission import emit
from forensics.parsers.wandb_framing import FILE_HEADER, read_batches, read_head
from forensics.parsers.wandb_log import Log

NAME = "wandb"
SUFFIX = ".wandb"
MAGIC = FILE_HEADER[:6]
"""The header without its version byte."""

POINTER = b"version https://git-lfs"


def sniff(source: Source) -> Claim | None:
    """Claim by the magic number, or by name: an empty or foreign ``.wandb`` file is a lost run, not nothing."""
    magic = source.head.startswith(MAGIC)
    if source.is_dir or not (magic or source.path.suffix == SUFFIX):
        return None
    facts = _head_facts(source.head) if magic else wire.RunFacts()
    named = re.fullmatch(r"run-(.+)", source.path.stem)
    key = RunKey(facts.id or (named[1] if named else ""), facts.name, facts.start_time or 0.0)
    return Claim(NAME, 100 if magic else 60, (key,))


def parse(source: Source, sink: Sink, run: RunKey) -> None:
    """Read the file into the sink. Raises NotMine, OSError."""
    if not source.head.startswith(MAGIC) and source.path.suffix != SUFFIX:
        raise NotMine(str(source.path))
    if lost := _no_log(source):
        sink.damage(lost, "the whole run")
        return
    if not source.head.startswith(FILE_HEADER):
        sink.damage("the file header is not that of a W&B log", "nothing: the records were read")
    log = Log()
    with source.path.open("rb", buffering=0) as file:
        for batch in read_batches(file):
            sink.progress(batch.size)
            log.add(batch)
    emit(log, sink, run)


def _head_facts(head: bytes) -> wire.RunFacts:
    batch = read_head(head)
    for start, length in zip(batch.starts.tolist(), batch.lengths.tolist(), strict=True):
        for number, value in wire.known_fields(batch.data[start : start + length].tobytes(), cut=True):
            if number == wire.RUN and isinstance(value, bytes):
                return wire.run_facts(value)
    return wire.RunFacts()


def _no_log(source: Source) -> str:
    """Why there is no log in the file at all, or ""."""
    if source.size == 0:
        return "empty file: the writer was stopped before it wrote anything"
    if source.head.startswith(POINTER):
        return "a Git-LFS pointer, not the log itself (git lfs pull fetches it)"
    if source.size <= len(FILE_HEADER) and FILE_HEADER.startswith(source.head):
        return "only the file header: the writer was stopped before it wrote a record"
    return ""
