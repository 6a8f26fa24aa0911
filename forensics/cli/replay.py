"""Run the suspect steps again from a checkpoint, with one thing changed at a time, and say what the cause was.

The recipe is your own Python file: a function `recipe(context)` that returns an object with build(), batch(step)
and loss(model, batch); docs/replay.md shows one. It runs in a child process of its own. --plan shows what would be
done and runs nothing.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forensics.cli.options import metrics, output
from forensics.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forensics.model import Case, Run
    from forensics.replay.plan import Plan

TIMEOUT = 3600.0

LARGEST_CASE = 1 << 29
"""Bytes; a case is a few megabytes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``forensics replay``."""
    parser.add_argument("path", type=Path, metavar="RUN_OR_CASE", help="a run directory, or a case.json that forensics analyze wrote")
    parser.add_argument("--recipe", required=True, metavar="FILE[:NAME]", help="your recipe: a Python file or module, and the function in it (default: recipe)")
    parser.add_argument("--event", metavar="ID", help="the event to bring back, as the report names it (default: the first alarm)")
    parser.add_argument("--step", type=int, metavar="N", help="a step to bring back instead")
    parser.add_argument("--checkpoint", metavar="PATH", help="start from this one (default: the last good one before the event)")
    parser.add_argument("--device", metavar="cuda|cpu", help="default: cuda where there is one, else cpu")
    parser.add_argument("--experiments", metavar="R2,R5", help="only these, beside R0, R1 and R11")
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: the number that gives the logged losses)")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, metavar="SECONDS", help=f"end the replay after this long (default: {TIMEOUT:g})")
    parser.add_argument("--plan", action="store_true", help="show what would be done, and run nothing")
    parser.add_argument("--json", metavar="OUT", help="write the result as JSON; - for standard output")
    parser.add_argument("--html", metavar="OUT", help="write the report of the run with the replay in it")
    parser.add_argument("--case", metavar="OUT", help="write the case with the replay's evidence (default: back into case.json where that was given)")
    parser.add_argument("--metric", action="append", default=[], metavar="ROLE=NAME", help="read NAME as ROLE; repeatable")
    parser.add_argument("--run", metavar="NAME", help="which run, where the path holds several")
    parser.add_argument("--quiet", action="store_true", help="nothing on the terminal")


def execute(args: argparse.Namespace) -> int:
    """Plan, run, judge, and write."""
    from forensics.parsers.checkpoints.beside import checkpoints_of
    from forensics.replay.plan import Wish, make_plan
    from forensics.reports import replay as view

    run, case = _case(args)
    file, name = _recipe(args.recipe)
    wanted = tuple(e.strip().upper() for e in (args.experiments or "").split(",") if e.strip())
    unknown = [e for e in wanted if e not in _KNOWN]
    if unknown:
        raise InputError(f"--experiments: there is no {', '.join(unknown)}", "they are " + ", ".join(_KNOWN))
    device = args.device or _device()
    wish = Wish(file, name, args.step, args.event, args.checkpoint, device, wanted, args.threads)
    plan = make_plan(run, case, checkpoints_of(Path(run.path)), wish)
    if args.plan:
        view.render_plan(plan, sys.stdout)
        return 0
    _need_torch()
    return _replay(args, case, plan)


_KNOWN = ("R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R14", "R15", "R16")


def _replay(args: argparse.Namespace, case: Case, plan: Plan) -> int:
    import json

    from forensics.replay import document, host
    from forensics.replay.verdict import conclude
    from forensics.reports import html, json_report
    from forensics.reports import replay as view

    with _progress(args.quiet) as progress:
        replay = host.run(plan.request, timeout=args.timeout, progress=progress)
    if replay.failed and "R1" not in replay.outcomes:
        hint = _HINTS.get(replay.failure, "")
        if args.verbose and replay.trace:
            sys.stderr.write(replay.trace)
        raise InputError(f"the replay failed: {replay.failed}", hint)
    found = conclude(plan.request, replay, [h.cause for h in plan.event.hypotheses] if plan.event else [])
    result = document.document(plan, replay, found)
    judged = document.with_replay(case, plan, result)
    if args.json:
        with output(args.json) as stream:
            json.dump(result, stream, indent=1, allow_nan=False)
            stream.write("\n")
    target = args.case or (str(args.path) if args.path.is_file() and args.path.suffix == ".json" and _is_case(args.path) else None)
    for place, render in ((target, json_report.render), (args.html, html.render)):
        if place:
            with output(place) as stream:
                render(judged, stream)
    if not args.quiet and args.json != "-":
        view.render(result, sys.stdout)
    return 3 if replay.failed else 0


_HINTS = {
    "recipe": "docs/replay.md says what a recipe must have",
    "raised": "the error is in the recipe or the code it calls; -v shows where",
    "exit": "a recipe must not end the process: guard the script's own run with if __name__ == '__main__'",
    "timeout": "give more time with --timeout, or fewer experiments with --experiments",
    "memory": "use a smaller batch in the recipe, another --device, or fewer experiments",
    "crash": "run the recipe by hand to see whether it dies there too",
}


def _case(args: argparse.Namespace) -> tuple[Run, Case]:
    from forensics.loading import load
    from forensics.pipeline import build_case
    from forensics.reports import json_report

    if args.path.is_file() and args.path.suffix == ".json" and _is_case(args.path):
        case = json_report.load(args.path)
        place = Path(case.run.path)
        if not place.exists():
            raise InputError(f"the run of this case is not at {place} any more", "give the run directory instead of the case")
        return load(place, metrics=metrics(args.metric), choose=args.run), case
    run = load(args.path, metrics=metrics(args.metric), choose=args.run)
    return run, build_case(run)


def _is_case(path: Path) -> bool:
    """Whether a JSON file says of itself that it is a case."""
    import json

    if path.stat().st_size > LARGEST_CASE:
        return False
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and str(document.get("schema", "")).startswith("forensics/")


def _recipe(text: str) -> tuple[str, str]:
    file, separator, name = text.rpartition(":")
    if not separator or "/" in name or "\\" in name or not name.isidentifier():
        file, name = text, "recipe"
    if (file.endswith(".py") or "/" in file) and not Path(file).is_file():
        raise InputError(f"there is no recipe {file}", "give the path of a Python file; `forensics replay --help` says what must be in it")
    return file, name


def _device() -> str:
    """Cuda where a driver is; PyTorch itself is only loaded in the child."""
    return "cuda" if Path("/dev/nvidia0").exists() or Path("/dev/kfd").exists() else "cpu"


def _need_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise InputError(
            "a replay needs PyTorch, which is not installed here", "pip install 'training-forensics[replay]', into the environment of your training code"
        )


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    if quiet or not sys.stderr.isatty():
        yield _nothing
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield status.update


def _nothing(text: str) -> Any:
    """No progress line."""
