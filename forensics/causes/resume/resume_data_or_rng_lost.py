"""The sampler or the random state was not restored: what comes after the resume is composed otherwise."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import Attempt, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="resume_data_or_rng_lost",
    title="The data order or random state was lost at the resume",
    family="resume",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="audit sampler and random states (R11), reorder the window (R16)",
)


def examine(view: View) -> Examination:
    """Looks for a small event at every resume, with learning rate and gradient unaffected."""
    found = Examination(view)
    if view.resume is None:
        return found.exclude("no resume within 20 logged steps before the onset")
    if view.rise is None:
        return found
    step = view.resume.first_step if isinstance(view.resume, Attempt) else view.resume
    found.supports(weights.SUPPORT, f"the run was resumed at step {step}", Role.LOSS, step)
    if signs.gradient_calm_while_loss_away(view) or (view.grad is not None and view.grad.onset_step is None):
        found.supports(weights.SUPPORT, "the gradient norm is calm: weights and moments are right, the data are others", Role.GRAD_NORM, step)
    elif signs.gradient_upset(view):
        found.contradicts(weights.DOUBT, "the gradient norm stayed up with the loss", Role.GRAD_NORM)
    found.missing.append("batch ids, or the share of each source in the first steps after the resume")
    found.remedy = "Save the sampler's and the random generators' state with every checkpoint and restore both."
    return found
