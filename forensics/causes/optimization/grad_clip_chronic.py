"""Gradient clipping cuts so often that it sets the learning rate.

What happened
-------------
When most gradients are longer than the threshold, every step has the same length: the run trains on normalised
gradients with a hidden learning rate that follows clip / norm. A rising gradient norm then slows learning silently.

How it shows in logs
--------------------
The norm before clipping is at or above the threshold in more than half of the last 300 logged points, outside the
warmup. Healthy runs clip in at most about 0.5 % of steps, and a public watcher script alerts at 5 %. The loss makes
slow, even progress or sits on a plateau; nothing spikes.

What would contradict it
------------------------
The threshold lies far above the 99th percentile of the logged norm. The logged norm is the one after clipping: then
it never exceeds the threshold and says nothing.

Looks like, but is not
----------------------
lr_too_low_or_zero: the learning rate itself is too small and the norms are far below the clip.

grad_clip_missing: the opposite fault, rare large gradients without a bound.

How to confirm
--------------
Repeat a stretch with the clip at the 99th percentile (R7). Faster progress at the same learning rate confirms it.
Compare the distance travelled per step with learning rate x gradient norm.

Fix
---
Set the clip between the 95th and 99th percentile of a healthy window, or clip per tensor so that one large tensor
does not shrink all others. Lower the learning rate if removing the clip shows instability.

References
----------
A public W&B watcher script calibrated on six healthy runs of 130M to 1.2B parameters (clip share at most 0.5 %, alert
at 5 %). The bound of one half is our own.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="grad_clip_chronic",
    title="Clipping is active at most steps",
    family="optimization",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.GRAD_NORM,),
    replay="replay with the clip at the 99th percentile of the healthy norm: progress is faster (R7)",
)

WINDOW = 300
"""Logged points before the event in which clipped steps are counted."""

OFTEN = 0.5
"""Share of clipped steps from which the clip sets the step size (healthy runs: 0.5 %, published alert: 5 %)."""

FEWEST = 50
"""Fewer points than this make no share."""

AFTER_CLIP = 1.001
"""A norm that never exceeds the threshold by more than rounding was logged after clipping."""

_KINDS = (EventKind.PLATEAU, EventKind.DRIFT, EventKind.GRAD_NORM_SURGE)
"""Chronic clipping slows a run down or hides a growing gradient; it bounds steps, so it makes no spike."""


def examine(view: View) -> Examination:
    """Counts how many gradients before the event were longer than the clip."""
    found = Examination(view)
    grad, clip = view.curves.get(Role.GRAD_NORM), _threshold(view)
    if grad is None or clip is None or clip <= 0:
        found.missing.append("the gradient norm before clipping and the clipping threshold")
        return found
    if view.event.kind not in _KINDS:
        return found
    warm = view.schedule.warmup_end if view.schedule is not None else 0
    first = grad.at(int(view.schedule.steps[warm])) if view.schedule is not None else 0
    window = grad.values[max(first, grad.at(view.anchor) - WINDOW) : grad.at(view.anchor)]
    if len(window) < FEWEST:
        found.missing.append("more gradient norms between the end of the warmup and the event")
        return found
    if grad.values.max() <= AFTER_CLIP * clip:
        found.missing.append("the gradient norm before clipping: the logged one never exceeds the threshold")
        return found
    share = float((window >= clip).mean())
    if share <= OFTEN:
        return found.exclude(f"only {share:.0%} of the gradients before the event were longer than the clip of {clip:g}")
    weight = weights.REQUIRED if view.event.kind is EventKind.PLATEAU else weights.SUPPORT
    text = f"{share:.0%} of the last {len(window)} logged gradients were longer than the clip of {clip:g} (healthy runs: 0.5 %)"
    found.supports(weight, text, Role.GRAD_NORM, view.anchor)
    found.remedy = "Set the clip between the 95th and 99th percentile of a healthy window; lower the learning rate if that shows instability."
    return found


def _threshold(view: View) -> float | None:
    logged = view.curves.get(Role.CLIP)
    if logged is not None and len(logged):
        return float(logged.values[max(0, logged.at(view.anchor + 1) - 1)])
    return view.settings.clip
