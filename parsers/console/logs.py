"""What the parsers of console logs share: claiming a file, and reading it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from forensics.parsers.console import emission, lines
from forensics.parsers.console.notices import MAX_ENDS, Notice, endings, notices
from forensics.parsers.console.shapes import RECORD_LIMIT, Format, Group, Reader
from forensics.parsers.interface import Claim, NotMine, Source
from forensics.parsers.sink import Sink

CERTAIN = 92
"""Two records of a framework's own line format: surer than a table whose header happens to name a step."""
LIKELY = 60
"""A single record: a short log, or a text that quotes one."""
MAX_NOTICES = 2_000_000
MAX_SETTINGS = 5_000


def claim(name: str, form: Format, source: Source, certain: int = CERTAIN) -> Claim | None:
    """Claim a text with records of the format, looked for in the head and, in files named as logs, a bounded way beyond."""
    if source.is_dir or not source.head or not lines.may_be_log(source.path):
        return None
    found = _records(form, lines.head(source))
    if not found:
        found = _records(form, lines.far_head(source))
    return Claim(name, certain if found > 1 else min(LIKELY, certain)) if found else None


def holds(source: Source, pattern: re.Pattern[bytes]) -> bool:
    """Whether the text, as far as a claim looks, has a match."""
    return pattern.search(lines.head(source)) is not None or pattern.search(lines.far_head(source)) is not None


def read(forms: Sequence[Format], source: Source, sink: Sink, keep: Callable[[Group], bool] | None = None) -> None:
    """Read the records of the formats, the first of which claimed the file. Raises NotMine where there are none.

    ``keep`` may leave out groups of lines; how many lines those were is noted.
    """
    readers = [Reader(form) for form in forms]
    told: list[Notice] = []
    ends: list[tuple[int, str]] = []
    settings: dict[str, object] = {}
    for block in lines.blocks(source, sink):
        for reader in readers:
            reader.take(block)
        if len(told) < MAX_NOTICES:
            told.extend(replace(n, offset=n.offset + block.offset, line=block.line(n.offset)) for n in notices(block.data))
        if len(ends) < MAX_ENDS:
            ends.extend((block.line(place), text) for place, text in endings(block.data))
        if block.offset == 0 and forms[0].settings is not None:
            settings = dict(_settings(forms[0], block.data))
    if keep is not None:
        _leave_out(readers, keep, sink)
    if not any(reader.groups for reader in readers):
        raise NotMine("no record of a training step in it")
    sink.note("writer", forms[0].title)
    emission.emit(readers, told, sink)
    if settings:
        sink.config(settings)
    if ends:
        sink.note("messages", [f"line {line}: {text}" for line, text in sorted(ends)[:MAX_ENDS]])


def _records(form: Format, data: bytes) -> int:
    """Records in a text, counted up to two."""
    if not any(mark in data for mark in form.marks):
        return 0
    found = 0
    for match in form.gate.finditer(data):
        found += form.read(match[0][:RECORD_LIMIT]) is not None
        if found > 1:
            break
    return found


def _leave_out(readers: Sequence[Reader], keep: Callable[[Group], bool], sink: Sink) -> None:
    lines_left = 0
    for reader in readers:
        for key in [key for key, group in reader.groups.items() if not keep(group)]:
            lines_left += len(reader.groups.pop(key))
    if lines_left:
        sink.note("lines_not_used", lines_left)


def _settings(form: Format, data: bytes) -> Iterator[tuple[str, object]]:
    assert form.settings is not None
    for count, found in enumerate(form.settings.finditer(data)):
        if count >= MAX_SETTINGS:
            return
        name, value = (part.decode("utf-8", errors="replace").strip() for part in found.groups())
        yield name, _value(value)


def _value(text: str) -> object:
    if text in {"True", "False"}:
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None if text == "None" else text
