"""Options and output shared by several commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from forensics.errors import InputError, SeveralRunsError

if TYPE_CHECKING:
    from forensics.model import Case
    from forensics.parsers.interface import Progress

MOST_ASKED = 60
"""More runs than this are listed, not asked about."""

HEAD_BYTES = 4096
"""Bytes at either end of a JSON file in which a case names its schema."""

SHOW_FROM_BYTES = 20_000_000
"""Below this size a run is read faster than a progress bar is drawn."""


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """PATH and how to read it."""
    parser.add_argument("path", type=Path, help="a run directory, a log file, or a folder that holds one run")
    parser.add_argument("--metric", action="append", default=[], metavar="ROLE=NAME", help="read NAME as ROLE (loss, lr, grad_norm, ...); repeatable")
    parser.add_argument("--run", metavar="NAME", help="which run, where the path holds several")
    parser.add_argument("--quiet", action="store_true", help="no progress bar and nothing on the terminal")


def ask_which(problem: SeveralRunsError) -> str:
    """Let a person at a terminal pick one of several runs; raises the error again where nobody can answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or len(problem.runs) > MOST_ASKED:
        raise problem
    sys.stderr.write(f"{len(problem.runs)} runs here; which one?\n")
    for number, (name, path) in enumerate(problem.runs, 1):
        sys.stderr.write(f"  {number:>2}  {name}  {path}\n")
    sys.stderr.write("number: ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    if not answer.isdecimal() or not 1 <= int(answer) <= len(problem.runs):
        raise problem
    name, path = problem.runs[int(answer) - 1]
    return path if [n for n, _ in problem.runs].count(name) > 1 else name


def metrics(pairs: list[str]) -> dict[str, str]:
    """``ROLE=NAME`` pairs as a mapping. Raises InputError for a wrong shape or an unknown role."""
    from forensics.vocabulary import Role

    out: dict[str, str] = {}
    roles = {r.value for r in Role}
    for pair in pairs:
        role, separator, name = pair.partition("=")
        if not separator or not name:
            raise InputError(f"--metric {pair}: expected ROLE=NAME", "for example --metric loss=my_loss")
        if role not in roles:
            raise InputError(f"--metric {pair}: {role!r} is no role", "roles are: " + ", ".join(sorted(roles)))
        out[role] = name
    return out


@contextmanager
def reading(path: Path, quiet: bool) -> Iterator[Progress | None]:
    """A progress bar on standard error for long reads on a terminal; None otherwise."""
    if quiet or not sys.stderr.isatty() or (size := _size(path)) < SHOW_FROM_BYTES:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=size)
        yield lambda count: bar.advance(task, count)


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
    return path.stat().st_size if path.exists() else 0


@contextmanager
def output(path: str) -> Iterator[TextIO]:
    """A text stream for a path, or standard output for ``-``. A file is written whole or not at all."""
    if path == "-":
        yield sys.stdout
        return
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} is not a directory", "make it first, or give another path")
    part = target.with_name(target.name + ".part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def case_of(path: Path) -> Case:
    """The case in a case.json, or that of a run, analysed now."""
    from forensics.pipeline import analyze
    from forensics.reports import json_report

    if path.is_file() and path.suffix == ".json":
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            file.seek(max(0, path.stat().st_size - HEAD_BYTES))
            if b'"forensics/' in head + file.read(HEAD_BYTES):
                return json_report.load(path)
    return analyze(path)


def exit_code(case: Case, fail_on: str | None = None) -> int:
    """1 where an event is at or above ``fail_on``, 3 where part of the input was not read, else 0."""
    from forensics.model import Severity

    order = [Severity.INFO, Severity.WARNING, Severity.CRITICAL]
    if fail_on is not None and any(order.index(e.severity) >= order.index(Severity(fail_on)) for e in case.events):
        return 1
    failed = any(n.what.startswith(("rule ", "plugin ", "detector ")) for n in case.not_checked)
    return 3 if case.damage or failed else 0
