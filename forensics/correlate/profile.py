"""What can be said about a run as a whole: its schedule against the configuration, and what clipping does in it."""

from __future__ import annotations

from forensics.correlate.clipping import Clipping, State, clipping
from forensics.correlate.schedule_check import check_schedule, sentence
from forensics.correlate.settings import Settings, read_settings
from forensics.model import Run
from forensics.primitives.curves import Curves
from forensics.vocabulary import Role


def profile(run: Run, curves: Curves) -> dict[str, str]:
    """Notes for the header of the case, by what they are about; nothing where nothing is known."""
    settings = read_settings(run.config)
    out = {}
    schedule = curves.schedule
    if schedule is not None:
        checked = sentence(check_schedule(schedule, settings, _every(curves)))
        warmup = f" after {schedule.warmup_steps} steps of warmup" if schedule.warmup_steps else ""
        out["learning rate"] = f"{schedule.shape}{warmup}" + (f"; {checked}" if checked else "; the configuration does not say what was planned")
    state = clipping_of(curves, settings)
    if state.state is not State.UNKNOWN:
        out["gradient clipping"] = state.sentence
    return out


def clipping_of(curves: Curves, settings: Settings) -> Clipping:
    """The state of clipping after the warmup, from the logged threshold or else the configured one."""
    grad, logged, schedule = curves.get(Role.GRAD_NORM), curves.get(Role.CLIP), curves.schedule
    threshold = float(logged.values[-1]) if logged is not None and len(logged) else settings.clip
    off = logged is None and settings.clip_logged and not settings.clip
    skip = grad.at(int(schedule.steps[schedule.warmup_end])) if grad is not None and schedule is not None else 0
    return clipping(grad, threshold or None, configured_off=off, skip=skip)


def _every(curves: Curves) -> float:
    rate = curves.get(Role.LR)
    return 1.0 if rate is None else rate.every
