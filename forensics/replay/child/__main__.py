"""The child: reads one request, runs the experiments, and writes what it finds line by line.

python -m forensics.replay.child REQUEST.json RESULTS.jsonl
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from forensics.replay.wire import Outcome, Request, disagreement, message

MUST = ("R0", "R1", "R11")
"""Always done."""

PROBED = 4
"""Steps at which the number of threads is chosen that gives the logged losses."""


class Results:
    """The results file; every line is on disk before the next experiment begins."""

    def __init__(self, file: TextIO) -> None:
        self.file = file

    def say(self, kind: str, /, **fields: Any) -> None:
        """Write one message."""
        self.file.write(message(kind, **fields))
        self.file.flush()


def main(request_path: str, results_path: str) -> int:
    """Run a replay; every failure is a message, never a silent end."""
    request = Request.from_json(Path(request_path).read_text(encoding="utf-8"))
    owner = os.getpid()
    with Path(results_path).open("a", encoding="utf-8") as file:
        results = Results(file)
        try:
            _replay(request, results)
        except KeyboardInterrupt:
            results.say("failed", kind="interrupted", text="interrupted")
            return 130
        except BaseException as problem:  # noqa: BLE001 - the user's code may raise anything, SystemExit among them
            if os.getpid() != owner:  # a process that the user's code forked came back here
                os._exit(1)
            _failed(results, problem)
            return 1
    return 0


def _failed(results: Results, problem: BaseException) -> None:
    from forensics.replay.child.user import RecipeError

    memory = isinstance(problem, MemoryError) or "out of memory" in str(problem).lower()
    kind = "recipe" if isinstance(problem, RecipeError) else "memory" if memory else "exit" if isinstance(problem, SystemExit) else "raised"
    where = [f for f in traceback.extract_tb(problem.__traceback__) if "forensics/replay" not in f.filename.replace(os.sep, "/")]
    place = f" ({Path(where[-1].filename).name}:{where[-1].lineno})" if where else ""
    text = str(problem) if kind == "recipe" else f"{type(problem).__name__}: {problem}{place}"
    results.say("failed", kind=kind, text=text[:2000], trace="".join(traceback.format_exception(problem))[-8000:])


def _replay(request: Request, results: Results) -> None:
    from forensics.replay.child import determinism
    from forensics.replay.child.bench import Bench
    from forensics.replay.child.session import Session
    from forensics.replay.child.user import Context, load_recipe

    limits = determinism.prepare(request.device, request.threads)
    results.say("phase", text="loading the recipe")
    recipe = load_recipe(request.recipe, request.name, Context(Path(request.run_dir), dict(request.config), request.device), request.paths)
    session = Session(recipe, request)
    session.limits += limits
    results.say("phase", text="loading the checkpoint")
    session.state(request.start)
    _choose_threads(session, request)
    bench = Bench(session, request)
    try:
        _experiments(bench, results)
    finally:
        results.say("limits", limits=session.limits, steps_taken=session.taken)
    results.say("done")


def _choose_threads(session: Any, request: Request) -> None:
    """One thread and many give sums of another order; take the number that the run seems to have had."""
    import torch

    many = torch.get_num_threads()
    if request.threads is not None or not request.device.startswith("cpu") or many == 1:
        return
    start = session.state(request.start)
    last = min(start.step + PROBED - 1, request.last)
    gaps: dict[int, float] = {}
    for count in (1, many):
        torch.set_num_threads(count)
        rows = session.run(start, last)
        gaps[count] = sum(disagreement(request.logged.get(s, {}).get(r.step), r.value(s)) for r in rows for s in ("loss", "grad_norm"))
        if gaps[count] == 0.0:
            return
    torch.set_num_threads(min(gaps, key=lambda n: (gaps[n], n)))


def _experiments(bench: Any, results: Results) -> None:
    from forensics.replay.experiments.catalogue import EXPERIMENTS

    request = bench.request
    for experiment in EXPERIMENTS:
        if experiment.ID not in MUST and not _wanted(experiment.ID, bench):
            continue
        results.say("phase", text=f"{experiment.ID}: {experiment.WHAT}")
        outcome = _guarded(experiment.run, bench, experiment)
        results.say("outcome", outcome=asdict(outcome))
        if experiment.ID in ("R1", "R11"):
            results.say("steps", rows=[asdict(r) for r in bench.rows], reproduced=bench.reproduced, band=bench.band, noise=bench.noise)
        if experiment.ID == "R11" and request.target.is_event and _wanted("microscope", bench):
            _microscope(bench, results)


def _wanted(name: str, bench: Any) -> bool:
    """Experiments about an event make sense where it came back; those that were asked for by name are always tried."""
    if not bench.target.is_event or not bench.kept or not bench.target.has_height:
        return False
    if bench.request.experiments:
        return name in bench.request.experiments or name == "microscope"
    return bool(bench.reproduced) and not _explained(bench)


def _explained(bench: Any) -> bool:
    """The event comes out of a saved file only: experiments from the state before it would start from a good state."""
    at = bench.request.at_resume
    return at is not None and bench.parted is not None and abs(bench.parted - at.step) <= 1


def _guarded(run: Callable[[Any], Outcome], bench: Any, experiment: Any) -> Outcome:
    """One experiment that fails leaves the others."""
    from forensics.replay.child.user import RecipeError

    try:
        return run(bench)
    except (RecipeError, MemoryError, KeyboardInterrupt):
        raise
    except Exception as problem:
        if experiment.ID in MUST or "out of memory" in str(problem).lower():
            raise
        bench.session.limit(f"{experiment.ID} failed: {type(problem).__name__}: {str(problem)[:300]}")
        return Outcome(experiment.ID, experiment.WHAT, {"failed": True}, f"failed: {type(problem).__name__}: {str(problem)[:300]}")


def _microscope(bench: Any, results: Results) -> None:
    from forensics.replay.child.microscope import look

    target = bench.target
    step = target.non_finite if target.non_finite is not None else bench.worst_step()
    before = bench.kept.get(step) or bench.before()
    results.say("phase", text=f"the microscope on step {before.step}")
    try:
        bench.slide = look(bench.session, before)
    except (MemoryError, KeyboardInterrupt):
        raise
    except Exception as problem:  # noqa: BLE001 - an instrument that does not fit this model leaves the experiments
        bench.session.limit(f"the microscope failed: {type(problem).__name__}: {str(problem)[:300]}")
        return
    results.say("slide", slide=asdict(bench.slide))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
