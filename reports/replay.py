"""A replay on the terminal: the plan before it, the verdict and what led to it after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

VERDICTS = {
    "data": "the data: the same batches do it on another state",
    "batch_state": "these batches on this state: neither does it alone",
    "state_step_size": "the step size: smaller steps are calm",
    "state": "the state that was saved",
    "precision": "the number format",
    "transient_hardware": "a passing hardware fault: the event does not come back",
    "persistent_hardware": "this device: another one is calm",
    "lost_state": "a resume that lost part of the state",
    "not_reproduced": "not reproduced: nothing can be concluded",
    "none": "nothing happened: the replay gives the logged steps",
    "undetermined": "undetermined",
}

MOST_STEPS = 9
"""Steps of the comparison that are shown, around the event."""


class _Where(Protocol):
    path: str
    step: int


def render(result: Mapping[str, Any], out: TextIO) -> None:
    """The verdict first, then the comparison with the log, the experiments, and what was not possible."""
    console = Console(file=out, highlight=False, markup=False)
    console.print(Text(f"{VERDICTS.get(str(result['verdict']), result['verdict'])}", style="bold"), soft_wrap=False)
    console.print(Text(f"verdict {result['verdict']}" + (f", cause {result['cause']}" if result["cause"] else "") + f": {result['why']}"))
    for line in _culprits(result["culprits"]):
        console.print(Text(f"culprit   {line}", style="bold red"))
    if result["calm_with"]:
        console.print(Text("calm with " + ", ".join(result["calm_with"]), style="green"))
    console.print(
        Text(f"\nfrom {result['checkpoint']} (step {result['first_step']}), on {result['device']}, {result['steps_taken']} steps in {result['seconds']:g} s")
    )
    console.print(_steps(result))
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for experiment in result["experiments"]:
        table.add_row(Text(experiment["id"]), Text(f"{experiment['what']}: {experiment['reading']}"))
    console.print(table)
    slide = result.get("microscope") or {}
    bad = slide.get("first_bad")
    if bad:
        where = f" in {bad['module']}" if bad.get("module") else ""
        console.print(
            Text(f"microscope, step {slide['step']}: first not finite in the {bad['where']} pass{where}, operation {bad['operation']}, {bad['dtype']}")
        )
    if result["limits"]:
        console.print(Text("\nlimits"))
        for limit in result["limits"]:
            console.print(Text(f"  - {limit}"))


def _culprits(culprits: Mapping[str, Any]) -> Iterator[str]:
    if culprits.get("samples"):
        yield "samples " + ", ".join(map(str, culprits["samples"][:12]))
    for key in ("tensor", "module"):
        if culprits.get(key):
            yield f"{key} {culprits[key]}"


def _steps(result: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("step", "logged loss", "replayed", "logged grad norm", "replayed"):
        table.add_column(title, justify="right")
    rows: Sequence[Mapping[str, Any]] = result["steps"]
    at = next((i for i, r in enumerate(rows) if r["step"] >= result["step"]), len(rows) - 1)
    first = max(0, min(at - 3, len(rows) - MOST_STEPS))
    for row in rows[first : first + MOST_STEPS]:
        same = row["logged_loss"] == row["loss"]
        cells = [str(row["step"]), _number(row["logged_loss"]), _number(row["loss"]), _number(row["logged_grad_norm"]), _number(row["grad_norm"])]
        table.add_row(*cells, style="" if same or row["logged_loss"] is None else "yellow")
    return table


def _number(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:.7g}" if math.isfinite(value) else str(value)


def render_plan(plan: Any, out: TextIO) -> None:
    """What would be done. ``plan`` is a ``forensics.replay.plan.Plan``."""
    console = Console(file=out, highlight=False, markup=False)
    request, target = plan.request, plan.request.target
    event = (
        f"{plan.event.id}: {target.kind} in {target.signal}, steps {target.onset} to {target.last}" if plan.event else f"no event; steps up to {request.last}"
    )
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    rows: list[tuple[str, str]] = [("event", event), ("start", _state(request.start)), ("steps", f"{request.start.step} to {request.last}")]
    for name, state in (("earlier state", request.earlier), ("resumed from", request.at_resume), ("compared with", request.after)):
        if state is not None:
            rows.append((name, _state(state)))
    rows += [("experiments", ", ".join(plan.experiments)), ("cost", f"at most {plan.steps} training steps, on {request.device}")]
    if plan.memory:
        rows.append(("memory", f"about {plan.memory / 2**20:,.0f} MiB for weights, gradients, optimizer and kept states; activations come on top"))
    rows.append(("recipe", f"{request.recipe}:{request.name}"))
    for name, text in rows:
        table.add_row(Text(name), Text(text))
    console.print(table)
    for note in plan.notes:
        console.print(Text(f"  - {note}"))


def _state(state: _Where) -> str:
    return f"{state.path} (next step {state.step})"
