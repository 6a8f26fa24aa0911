"""The loss becomes noisier at a step, or starts to swing with a period."""

from __future__ import annotations

from forensics.model import Event, EventKind, Severity
from forensics.primitives.curves import Curves
from forensics.primitives.noise import NoiseChange, find_noise_changes
from forensics.primitives.objective import Objective, objective
from forensics.primitives.prepared import Prepared
from forensics.vocabulary import Role

NAME = "noise_change"


def detect(curves: Curves) -> list[Event]:
    """Sharp growth of the noise of the primary loss."""
    loss = curves.get(Role.LOSS)
    if loss is None:
        return []
    aim = objective(curves.run)
    return [_event(loss, change, aim) for change in find_noise_changes(loss.u, loss.centre, loss.values)]


def _event(loss: Prepared, change: NoiseChange, aim: Objective) -> Event:
    step = int(loss.steps[change.index])
    factor = change.after / change.before if change.before > 0 else float("inf")
    swings = change.period is not None
    what = f"swings with a period of {change.period} logged points" if swings else "is noisier"
    return Event(
        kind=EventKind.OSCILLATION if swings else EventKind.NOISE_CHANGE,
        severity=Severity.WARNING if aim is Objective.ORDINARY else Severity.INFO,
        confidence=min(0.99, 0.5 + 0.05 * change.score),
        signal=loss.name,
        onset_step=step,
        peak_step=step,
        end_step=None,
        recovered=False,
        baseline=change.before,
        peak=change.after,
        height=change.after - change.before,
        p_value=change.p_value,
        text=f"{loss.name} {what}: its noise grew {factor:.1f} times",
    )
