"""Which settings of two runs, or of two attempts of one, differ: those that train something first, bookkeeping last."""

from __future__ import annotations

import re
from collections.abc import Mapping

from forensics.correlate.settings import KNOWN
from forensics.model.comparison import Difference
from forensics.vocabulary import normalise

BOOKKEEPING = re.compile(
    r"(^|_)(path|paths|dir|dirs|folder|file|files|filename|name|names|id|ids|uuid|time|date|datetime|timestamp|host|hostname|user|username|cwd|url|uri|project|"
    r"entity|group|tags?|notes?|description|output|outputs|log|logs|logging|logger|wandb|save|report|job|jobid|port|addr|address|commit|cmd|command|argv)(_|$)"
)
"""Words in the name of a setting that say it names or stores something."""

TRAINS = frozenset({"tokenizer_name", "model_name", "model_name_or_path", "dataset_name", "optimizer_name", "optim_name", "data_path", "dataset", "data_files"})
"""Names with such a word that do train something."""

SOFTWARE = re.compile(r"(^|_)(version|versions|commit|git|sha|revision|cuda|cudnn|nccl|driver|torch|python|transformers|lightning|deepspeed|apex|kernel)(_|$)")
"""Words in the name of a setting that say which software ran."""

MOST = 200
"""Differences listed."""


def differences(a: Mapping[str, object], b: Mapping[str, object]) -> tuple[tuple[Difference, ...], int]:
    """Settings that differ, important ones first, and how many are equal. A setting that only one run logs is a difference."""
    found = [Difference(key, a.get(key), b.get(key), _bookkeeping(key)) for key in sorted({*a, *b}) if _plain(a.get(key)) != _plain(b.get(key))]
    same = len({*a, *b}) - len(found)
    return tuple(sorted(found, key=lambda d: (d.bookkeeping, None in (d.a, d.b), not _known(d.key), d.key))[:MOST]), same


def software(key: str) -> bool:
    """The setting names a version of some software."""
    return SOFTWARE.search(normalise(key)) is not None


def _plain(value: object) -> object:
    """1, 1.0 and "1" are one setting, however the logger wrote it."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return float(value)
    text = str(value).strip()
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text


def _bookkeeping(key: str) -> bool:
    last = normalise(key.rsplit(".", 1)[-1])
    return last not in TRAINS and BOOKKEEPING.search(last) is not None


def _known(key: str) -> bool:
    return normalise(key.rsplit(".", 1)[-1]) in KNOWN
