"""What can be said about a run as a whole: its schedule against the configuration, and what clipping does in it."""

from __future__ import annotations

from forensics.correlate.clipping import Clipping, State, clipping
from forensics.correlate.schedule_check import check_schedule, sentence
from forensics.correlate.settings import Settings, read_settings
from forensics.model import LrPhase, Run
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


SAMPLES = 1000
"""Places of a schedule at which its phase is asked: a phase shorter than this part of the run would not be seen in a drawing."""

MOST_PHASES = 60
"""More phases than this are a pattern, not phases: they are not named one by one."""


def lr_phases(curves: Curves) -> tuple[LrPhase, ...]:
    """The phases of the learning rate, in order; empty where none is logged."""
    schedule = curves.schedule
    if schedule is None or not len(schedule.steps):
        return ()
    places = sorted({round(i * (len(schedule.steps) - 1) / SAMPLES) for i in range(SAMPLES + 1)} | {schedule.warmup_end})
    out: list[LrPhase] = []
    for place in places:
        step = int(schedule.steps[place])
        name = schedule.phase(step)
        if out and out[-1].name == name:
            out[-1] = LrPhase(name, out[-1].first_step, step)
        else:
            if out:
                out[-1] = LrPhase(out[-1].name, out[-1].first_step, step)
            out.append(LrPhase(name, step, step))
    return tuple(out) if len(out) <= MOST_PHASES else ()


def clip_threshold(run: Run, curves: Curves) -> float | None:
    """The gradient-norm threshold in force, None where none is known."""
    return clipping_of(curves, read_settings(run.config)).threshold


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
