"""What the analysis could not look at, and why. Silence is not health."""

from __future__ import annotations

import numpy as np

from forensics.model import Absent, IntArray, NotChecked, Run
from forensics.primitives.units import unscale
from forensics.vocabulary import Role

ASKED = (
    (Role.LOSS, "no loss is logged under a name that is recognised: spikes, shifts and divergence of the loss are not checked"),
    (Role.GRAD_NORM, "not logged: whether gradients led the loss, or were upset at all, is unknown"),
    (Role.LR, "not logged: causes that need the learning rate can be neither found nor excluded"),
    (Role.BATCH_ID, "not logged: the batches at an event cannot be named, and repeats of one batch are not seen"),
)
"""Roles whose absence weakens every explanation."""

SILENT = (
    "faults that leave no trace in scalars (replicas out of step, correlated seeds, an optimizer that does not step) need checkpoints "
    "(none was found beside the log, or none was to be read) or a second run (`forensics compare`)"
)


NAN_FILTER = (
    "this trainer's default filter (logging_nan_inf_filter) replaces a NaN loss by the running mean before logging; the gradient norm would show it"
)


SCALED = "the log holds it multiplied by the loss scale; it was divided by it for the analysis, so numbers about it differ from those in the log"

GAPS = 20.0
"""A distance this many usual ones long is a gap in the log (as for pauses of the clock)."""


def _cadence(steps: IntArray) -> list[NotChecked]:
    """Coarse logging, and stretches that are missing."""
    distance = np.diff(steps)
    every = float(np.median(distance))
    out = []
    if every > 1.5:
        why = f"the loss is logged every {every:.0f} steps: what happened between, and leads shorter than that, are unknown"
        out.append(NotChecked("single steps", why))
    gaps = distance[distance > GAPS * every]
    if len(gaps):
        at = int(np.argmax(distance))
        where = f"{'the longest ' if len(gaps) > 1 else ''}from {int(steps[at])} to {int(steps[at + 1])}"
        why = f"the log has {len(gaps)} gap{'s' if len(gaps) > 1 else ''} ({where}): what happened there, a resume among it, is unknown"
        out.append(NotChecked("missing steps", why))
    return out


def not_checked(run: Run) -> tuple[NotChecked, ...]:
    """The list for the case: missing roles, filters of the logger, coarse logging, and what scalars never show."""
    out = [NotChecked(role.value, why) for role, why in ASKED if isinstance(run.signal(role), Absent)]
    loss = run.signal(Role.LOSS)
    if run.notes.get("nan_filter_possible"):
        out.append(NotChecked("NaN losses", NAN_FILTER))
    if not isinstance(loss, Absent) and len(loss) > 1:
        curve = loss.curve()
        out += _cadence(curve.steps)
    grad, scale = run.signal(Role.GRAD_NORM), run.signal(Role.LOSS_SCALE)
    if not isinstance(grad, Absent) and not isinstance(scale, Absent) and unscale(grad.curve(), scale) is not None:
        out.append(NotChecked("unit of the gradient norm", SCALED))
    precision = str(run.config.get("dtype") or run.config.get("precision") or "").lower()
    half = run.config.get("fp16") is True or precision in {"fp16", "float16", "16", "16-mixed"}
    if half and isinstance(run.signal(Role.LOSS_SCALE), Absent):
        out.append(NotChecked("loss scale", "the run is in float16 but logs no loss scale: skipped steps and overflow are not seen"))
    differ = run.notes.get("copies_differ")
    if isinstance(differ, list) and differ:
        more = f" (and {len(differ) - 1} more curves)" if len(differ) > 1 else ""
        out.append(NotChecked("which of two records is right", f"{differ[0]}{more}"))
    out += _unread(run)
    return tuple(out)


def _unread(run: Run) -> list[NotChecked]:
    """Checkpoints that were not there, or whose numbers were not read."""
    if not run.checkpoints:
        return [NotChecked("silent faults", SILENT)]
    skipped = [c for c in run.checkpoints if c.unread]
    if not skipped:
        return []
    what = f"numbers of {len(skipped)} of {len(run.checkpoints)} checkpoints"
    return [NotChecked(what, f"{skipped[0].checkpoint.path}: {skipped[0].unread}" + (" (and others)" if len(skipped) > 1 else ""))]
