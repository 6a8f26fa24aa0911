"""The manual page of a cause: what happened, how it shows, what would contradict it, how to confirm and to fix it.

Without an id, every cause of the catalogue is listed, family by family. Causes marked * have a rule: they are looked for in
every run. The others cannot be decided from logs as they are usually written.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from forensics.errors import InputError

if TYPE_CHECKING:
    from forensics.causes.manual import ManualPage

NARROWEST, WIDEST = 40, 96
"""Columns of a page: prose in longer lines is hard to follow."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``forensics explain``."""
    parser.add_argument("cause", nargs="?", metavar="CAUSE", help="the id of a cause, as reports name it")


def execute(args: argparse.Namespace) -> int:
    """Print the page, or the list."""
    from forensics.causes import manual

    if args.cause is None:
        sys.stdout.write("\n".join(_catalogue([manual.page(cause) for cause in manual.ids()])) + "\n")
        return 0
    cause = args.cause.strip().lower().replace("-", "_").replace(" ", "_")
    try:
        page = manual.page(cause)
    except KeyError as problem:
        raise InputError(str(problem.args[0]), "`forensics explain` lists every cause") from problem
    width = max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))
    looked_for = "looked for in every run" if page.has_rule else "not decided from logs"
    sys.stdout.write(f"{page.id}: {page.title}\n({page.family}; {looked_for})\n\n{manual.text(cause, width)}")
    return 0


def _catalogue(pages: list[ManualPage]) -> Iterator[str]:
    width = max(len(page.id) for page in pages)
    for family, members in groupby(pages, key=lambda page: page.family):
        yield f"{family}:"
        yield from (f" {'*' if page.has_rule else ' '} {page.id:<{width}}  {page.title}" for page in members)
        yield ""
    ruled = sum(page.has_rule for page in pages)
    yield f"{len(pages)} causes, {ruled} with a rule (*). `forensics explain CAUSE` prints the page of one."
