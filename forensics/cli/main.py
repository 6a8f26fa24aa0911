"""The command line. Commands are imported only when they run, so that ``forensics --help`` answers at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from forensics.errors import InputError, SeveralRunsError
from forensics.version import __version__

COMMANDS = {
    "analyze": "say what went wrong in a run, at which step, and why",
    "report": "render a case.json again: terminal, HTML, Markdown or JSON",
    "replay": "run the suspect steps again from a checkpoint, and know",
    "recipe": "write the template of a replay recipe for the framework of a run",
    "inspect": "show how the names of a run were read, export every point, or show a checkpoint",
    "diff": "two checkpoints: what moved, how much, and what did not move at all",
    "compare": "two runs, step by step: where they part and what differs",
    "sweep": "many runs: one table, and what those that went wrong have in common",
    "advise": "what to do now: a checkpoint to go back to, batches to skip, what to log",
    "skip": "the batches to leave out when the run is done again, ready to paste",
    "explain": "the manual page of a cause",
    "bench": "score the tool on labelled runs",
    "demo": "analyse a small real broken run that comes with the tool",
}
"""Every command and its one line of help. The module of a command has the same name in this folder."""

EPILOG = """\
examples:
  forensics analyze runs/my-run              terminal verdict, report.html and case.json
  forensics analyze my-run --json - --quiet  for scripts
  forensics explain adam_v_stale             what a cause is and how to tell it

exit codes: 0 report written; 1 an event at or above --fail-on; 2 wrong use or nothing
readable; 3 report written, but part of the input could not be read; 130 interrupted
"""


def run() -> None:
    """Entry point of the ``forensics`` script."""
    sys.exit(main(sys.argv[1:]))


def main(argv: Sequence[str]) -> int:
    """Run one command and return its exit code. No traceback reaches the user without ``-vv``."""
    if not argv or argv[0] in {"-h", "--help", "help"}:
        sys.stdout.write(_help())
        return 0 if argv else 2
    if argv[0] in {"-V", "--version"}:
        sys.stdout.write(f"forensics {__version__}\n")
        return 0
    name, rest = argv[0], list(argv[1:])
    if name not in COMMANDS:
        return _unknown(name)
    module = import_module(f"forensics.cli.{name}")
    parser = argparse.ArgumentParser(prog=f"forensics {name}", description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    module.add_arguments(parser)
    parser.add_argument("-v", dest="verbose", action="count", default=0, help="-vv: show tracebacks")
    verbose = 0
    try:
        args = parser.parse_args(rest)
        verbose = args.verbose
        return int(module.execute(args))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as problem:
        if verbose >= 2:
            raise
        return _explain(problem)


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [
        "usage: forensics COMMAND [options]",
        "",
        "Find what went wrong in a training run, at which step, and why.",
        "",
        "commands:",
        *(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()),
        "",
        "`forensics COMMAND --help` lists the options of a command; -vv shows tracebacks.",
        "",
        EPILOG,
    ]
    return "\n".join(lines)


def _unknown(name: str) -> int:
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, 1)
    hint = f"did you mean `forensics {close[0]}`?" if close else "`forensics --help` lists the commands"
    sys.stderr.write(f"forensics: there is no command {name!r}; {hint}\n")
    return 2


def _explain(problem: Exception) -> int:
    if isinstance(problem, SeveralRunsError):
        sys.stderr.write(f"forensics: {problem}:\n")
        for name, path in problem.runs[:50]:
            sys.stderr.write(f"  {name}  {path}\n")
        if len(problem.runs) > 50:
            sys.stderr.write(f"  and {len(problem.runs) - 50} more\n")
        sys.stderr.write(f"{problem.hint}\n")
        return 2
    hint = problem.hint if isinstance(problem, InputError) else ""
    if isinstance(problem, InputError):
        message = str(problem)
    elif isinstance(problem, OSError):
        message = f"{problem.filename or 'file'}: {problem.strerror or problem}"
        hint = "check that the path exists and may be read and written"
    elif isinstance(problem, ValueError):
        message = str(problem)
    else:
        message = f"this is a bug in forensics: {type(problem).__name__}: {problem}"
        hint = "run again with -vv for the traceback and report it"
    sys.stderr.write(f"forensics: {message}\n" + (f"{hint}\n" if hint else ""))
    return 2
