"""The other signals that moved around an event, with their lead or lag."""

from __future__ import annotations

from forensics.correlate.view import View
from forensics.model import Related
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
    Role.ENTROPY,
    Role.KL,
    Role.VALUE_LOSS,
)
"""Roles whose movement says something about a cause. Speed and hardware have their own events."""

MOST = 20
"""Related signals kept for one event, the earliest first: a run may log hundreds of layers."""


def related(view: View) -> tuple[Related, ...]:
    """Signals that left their level around the event, members of the incident and others, earliest first."""
    own = view.event.signal
    found: dict[str, Related] = {}
    roles = {s.name: s.role for s in view.run.signals}
    reference = next((m.onset_step for m in view.incident.members if m.signal == own), view.anchor)
    for member in view.incident.members:
        if member.signal != own and member.signal not in found:
            found[member.signal] = Related(member.signal, roles.get(member.signal), member.onset_step, member.onset_step - reference, member.text)
    for signal in view.curves.every(*WATCHED):
        if signal.name in found or signal.name == own or len(signal) < 8 or signal.role in {Role.LR, Role.LOSS_SCALE, Role.BATCH_SIZE}:
            continue
        moved = view.move_of(signal)
        if moved is None or moved.onset_step is None or abs(moved.onset_step - view.anchor) > 30 * max(signal.every, view.every):
            continue
        lag = moved.onset_step - reference
        resolvable = max(signal.every, view.every) <= 1 or abs(lag) > max(signal.every, view.every)
        change = f"{signal.name} rose to {moved.factor:.3g} times its level ({moved.baseline:.4g} to {moved.peak:.4g}{', divided by the loss scale' if signal.unscaled else ''})"
        found[signal.name] = Related(signal.name, signal.role, moved.onset_step, lag if resolvable else None, change)
    return tuple(sorted(found.values(), key=lambda r: (r.onset_step, r.signal))[:MOST])
