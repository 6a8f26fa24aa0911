"""The other signals that moved around an event, with their lead or lag."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forensics.correlate.move import LEAD_POINTS, Move
from forensics.correlate.view import View
from forensics.model import Event, Related, Run
from forensics.model.words import number
from forensics.primitives.prepared import Prepared
from forensics.vocabulary import Role

WATCHED = (
    Role.LOSS,
    Role.GRAD_NORM,
    Role.LR,
    Role.LOSS_SCALE,
    Role.BATCH_SIZE,
    Role.VAL_LOSS,
    Role.ATTN_LOGIT_MAX,
    Role.UPDATE_RMS,
    Role.PARAM_NORM,
    Role.GRAD_NORM_GROUP,
    Role.LOSS_BY_SOURCE,
    Role.ACT_MAX,
    Role.ACT_RMS,
    Role.UW_RATIO,
    Role.LOGZ,
    Role.AUX_LOSS,
    Role.ROUTER_LOGIT_MAX,
    Role.RANK_LOSS,
    Role.SEQ_LEN,
    Role.ENTROPY,
    Role.KL,
    Role.VALUE_LOSS,
    Role.CLIP_FRACTION,
    Role.RESPONSE_LENGTH,
)
"""Roles whose movement says something about a cause. Speed and hardware have their own events."""

FALLING = (Role.REWARD, Role.ACCURACY, Role.ENTROPY, Role.ATTN_ENTROPY, Role.TOK_VALID)
"""Roles whose fall says something."""

MOST = 20
"""Related signals kept for one event, the earliest first: a run may log hundreds of layers."""


def _own_onset(view: View, member: Event, role: str | None) -> int:
    """Where the signal first left its level: for the gradient norm the same step that causes reckon its lead from."""
    grad = view.grad
    if role != Role.GRAD_NORM or grad is None or grad.name != member.signal or grad.onset_step is None:
        return member.onset_step
    return grad.onset_step if abs(grad.onset_step - member.onset_step) <= LEAD_POINTS * grad.every else member.onset_step


def _resolved(lag: int, every: float) -> int | None:
    """Cadence rule: a lead or lag that is not longer than the distance between logged steps is unknown."""
    return lag if every <= 1 or abs(lag) > every else None


def _every(view: View, name: str) -> float:
    signal = next((s for s in view.run.signals if s.name == name), None)
    steps = np.unique(signal.steps) if signal is not None else ()
    return float(np.median(np.diff(steps))) if len(steps) > 1 else 1.0


def related(view: View) -> tuple[Related, ...]:
    """Signals that left their level around the event, members of the incident and others, earliest first."""
    own = view.event.signal
    found: dict[str, Related] = {}
    roles = {s.name: s.role for s in view.run.signals}
    passed = {own} | _second_copies(view.run)
    reference = next((m.onset_step for m in view.incident.members if m.signal == own), view.anchor)
    for member in view.incident.members:
        if member.signal not in passed and member.signal not in found:
            onset = _own_onset(view, member, roles.get(member.signal))
            lag = _resolved(onset - reference, max(view.every, _every(view, member.signal)))
            found[member.signal] = Related(member.signal, roles.get(member.signal), onset, lag, member.text)
    for signal in view.curves.every(*WATCHED):
        if signal.name in found or signal.name in passed or len(signal) < 8 or signal.role in {Role.LR, Role.LOSS_SCALE, Role.BATCH_SIZE}:
            continue
        moved = view.move_of(signal)
        if moved is None or moved.onset_step is None or abs(moved.onset_step - view.anchor) > 30 * max(signal.every, view.every):
            continue
        lag = _resolved(moved.onset_step - reference, max(signal.every, view.every))
        found[signal.name] = Related(signal.name, signal.role, moved.onset_step, lag, _rose(signal, moved))
    for signal in view.curves.every(*FALLING):
        if signal.name in found or signal.name in passed or len(signal) < 8:
            continue
        moved = view.move_of(_mirrored(signal))
        if moved is None or moved.onset_step is None or abs(moved.onset_step - view.anchor) > 30 * max(signal.every, view.every):
            continue
        lag = _resolved(moved.onset_step - reference, max(signal.every, view.every))
        before, after = signal.original(-moved.baseline), signal.original(-moved.peak)
        found[signal.name] = Related(signal.name, signal.role, moved.onset_step, lag, f"{signal.name} fell from {before:.4g} to {after:.4g}")
    return tuple(sorted(found.values(), key=lambda r: (r.onset_step, r.signal))[:MOST])


def _second_copies(run: Run) -> frozenset[str]:
    """Names of curves that another format of the run holds too: that they moved together says nothing."""
    names, formats = {s.name for s in run.signals}, {source.format for source in run.sources}
    parted = ((name, *name.rpartition("@")) for name in names)
    return frozenset(name for name, base, mark, kind in parted if mark and base in names and kind in formats)


def _rose(signal: Prepared, moved: Move) -> str:
    """A factor where there is one: a level of zero, or below, has none."""
    unit = ", divided by the loss scale" if signal.unscaled else ""
    values = f"{moved.baseline:.4g} to {moved.peak:.4g}{unit}"
    return f"{signal.name} rose to {number(moved.factor)} times its level ({values})" if moved.factor > 0 else f"{signal.name} rose from {values}"


def _mirrored(signal: Prepared) -> Prepared:
    """Upside down on the comparison scale, so that a fall is a rise."""
    return replace(signal, u=-signal.u, centre=-signal.centre, values=-signal.u, log=False, shift=0.0)
