"""A recipe for `forensics replay`: the template that fits a run, or the list of templates.

    forensics recipe list                 the ready-made recipes
    forensics recipe new runs/my-run      write recipe.py for the framework that the run was made with
    forensics recipe new --kind own -o -  print a template

The template is a commented Python file of some twenty lines. What is to be filled in is marked TODO.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from forensics.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``forensics recipe``."""
    parser.add_argument("action", choices=("new", "list"), help="write a template, or list what there is")
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN", help="the run directory; its framework chooses the template (default: this folder)")
    parser.add_argument("--kind", metavar="KIND", help="the template to write, whatever the run looks like")
    parser.add_argument("-o", "--out", metavar="FILE", default="recipe.py", help="where to write it; - for standard output (default: recipe.py)")


def execute(args: argparse.Namespace) -> int:
    """Write or list."""
    from forensics.replay.recipes.templates import TEMPLATES, detect

    if args.action == "list":
        width = max(len(t.kind) for t in TEMPLATES)
        sys.stdout.writelines(f"{t.kind:<{width}}  {t.what}\n" for t in TEMPLATES)
        sys.stdout.write("\n`forensics recipe new RUN` writes the one that fits; docs/replay.md says what a recipe must have.\n")
        return 0
    run = args.run or Path()
    if args.kind is not None:
        chosen = next((t for t in TEMPLATES if t.kind == args.kind), None)
        if chosen is None:
            raise InputError(f"there is no template {args.kind!r}", "they are " + ", ".join(t.kind for t in TEMPLATES))
        why = "as asked for"
    else:
        if not run.exists():
            raise InputError(f"there is nothing at {run}", "give the run directory, or choose a template with --kind")
        chosen, why = detect(run)
    if args.out == "-":
        sys.stdout.write(chosen.text)
        return 0
    try:
        with Path(args.out).open("x", encoding="utf-8") as file:
            file.write(chosen.text)
    except FileExistsError as problem:
        raise InputError(f"{args.out} is there already, and is left as it is", "name another file with --out") from problem
    todo = chosen.text.count("TODO")
    sys.stdout.write(f"wrote {args.out}: template {chosen.kind} ({why})\n")
    sys.stdout.write(f"fill in what is marked TODO ({todo}), then: forensics replay {run} --recipe {args.out} --plan\n")
    return 0
