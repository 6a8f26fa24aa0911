"""The run started at full learning rate, or nearly so.

What happened
-------------
In the first steps Adam's second moments rest on a handful of gradients, and the weights are far from any solution. A
full-size step then goes in an almost arbitrary direction. Warmup keeps steps small until the moments mean something.

How it shows in logs
--------------------
The first logged learning rate is at least half of the maximum, or the maximum is reached in fewer than 30 steps. The
event comes early: within 2/(1 - beta2) steps (at least 200, at most 2,000), and within the first 15 % of the run.

What would contradict it
------------------------
A warmup of 30 steps or more that began below half of the maximum, or an event long after the start: both exclude it.
An optimizer without second moments makes it less likely.

Looks like, but is not
----------------------
init_scale_too_large: the gradient norm is huge at step 0 and the initial loss is above ln(vocabulary size).

lr_too_high: goes wrong later too, at the same rate.

tokenizer_vocab_mismatch: the loss is wrong before the first update.

long_sequence_outlier: early events follow the sequence length.

resume_optimizer_lost: the same picture after a resume.

How to confirm
--------------
Start again from the same initial weights with a linear warmup of 500 to 2,000 steps (R6): the event does not come.

Fix
---
A linear warmup of 500 to 2,000 steps, and not below 2/(1 - beta2) steps; 2,000 is typical, a study of small models
used 5,000, GPT-3 style recipes 375 million tokens (BLOOM: 183,105 samples).

References
----------
Common practice. Wortsman et al. 2023, arXiv 2309.14322. BLOOM README. Reported: RAdam 2019, and the rule 2/(1 -
beta2) of Ma and Yarats 2021.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part, Severity
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="lr_warmup_missing",
    title="No warmup, or one that is too short",
    family="optimization",
    part=Part.TRIGGER,
    needs=(Role.LR,),
    replay="the same start with a linear warmup of 500 to 2000 steps (R6)",
)

SHORT_STEPS = 30
"""A warmup below this is none: second moments need tens of steps to mean anything."""

EARLY_STEPS = 200
"""Events of a missing warmup come within the memory of the second moments, or within this many steps."""

EARLY_SHARE = 0.15
"""... and in the first part of the run."""


STILL = 2
"""Events after the early phase from which the start was not the trouble."""

RISING = (EventKind.SPIKE, EventKind.SLOW_SPIKE, EventKind.DIVERGENCE, EventKind.NON_FINITE, EventKind.OSCILLATION, EventKind.LEVEL_SHIFT)


def examine(view: View) -> Examination:
    """Looks for an event in the first steps of a run that began at half its maximum learning rate or more."""
    found = Examination(view)
    schedule = view.schedule
    age = view.anchor - view.first_step
    memory = 2 / (1 - view.settings.beta2) if view.settings.beta2 is not None and view.settings.beta2 < 1 else EARLY_STEPS
    horizon = max(min(memory, 2000.0), EARLY_STEPS)
    if view.first_step > max(20 * view.every, 100):
        return found.exclude(f"the log begins at step {view.first_step}, not at the start of training")
    if age > horizon or age > max(EARLY_SHARE * view.length, min(60, 0.5 * view.length)):
        return found.exclude(f"the event came {age} steps after the start, long after any warmup")
    if view.rise is None and view.event.kind not in {EventKind.NON_FINITE, EventKind.GRAD_NORM_SURGE, EventKind.OSCILLATION, EventKind.LOGIT_GROWTH}:
        return found
    if schedule is None:
        found.missing.append("the learning rate of every step")
        return found
    first = float(schedule.values[0])
    if first < 0.5 * schedule.peak and schedule.warmup_steps >= SHORT_STEPS:
        return found.exclude(f"the learning rate was warmed up over {schedule.warmup_steps} steps")
    if first >= 0.5 * schedule.peak:
        text = f"the first logged learning rate is already {first:.3g}, {first / schedule.peak:.0%} of the maximum"
        found.supports(weights.STRONG, text, Role.LR, int(schedule.steps[0]), first)
    else:
        text = f"the learning rate reached its maximum of {schedule.peak:.3g} after {schedule.warmup_steps} steps"
        found.supports(weights.STRONG, text, Role.LR, int(schedule.steps[schedule.warmup_end]))
    planned = next((c for c in view.checks if c.what == "warmup"), None)
    if planned is not None and planned.agrees is False and planned.logged < planned.planned:
        found.supports(weights.HINT, planned.text, Role.LR, planned.step)
    found.supports(weights.SUPPORT, f"the event came {age} steps after the start", Role.LOSS, view.anchor)
    if signs.brief(view):
        found.contradicts(weights.DOUBT, f"a single spike {age} steps after the start, over with its batch", Role.LOSS)
    if view.settings.adaptive is False:
        found.set_against(weights.DOUBT, "the optimizer keeps no second moments that a warmup would protect", "optimizer")
    end = view.first_step + horizon
    later = [i for i in view.incidents if i.event.severity is not Severity.INFO and i.member(*RISING) is not None and i.event.onset_step > end]
    if len(later) >= STILL:
        text = f"{len(later)} more events came later than step {end:.0f}: a warmup would only have delayed them"
        found.contradicts(weights.AGAINST, text, Role.LOSS, later[0].event.onset_step)
    elif signs.lr_above_usual(view):
        found.contradicts(weights.DOUBT, "the learning rate is above what such optimizers usually bear, warmed up or not", Role.LR, view.anchor)
    found.remedy = "Warm the learning rate up linearly over 500 to 2000 steps (at least 2/(1-beta2)), from the same initial weights."
    return found
