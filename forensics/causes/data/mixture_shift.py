"""The data changed: another domain, another mix, another stage of the curriculum."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="mixture_shift",
    title="The data distribution changed",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="evaluate the old and the new data on the same checkpoint",
)


def examine(view: View) -> Examination:
    """Looks for a lasting rise of the loss with a gradient that is soon calm again."""
    found = Examination(view)
    loss, grad = view.loss, view.grad
    if view.rise is None or loss is None or view.event.kind is EventKind.NON_FINITE:
        return found
    if signs.brief(view):
        return found.exclude("the loss was back at once: the data after it are the same as before")
    if signs.gradient_calm_while_loss_away(view):
        text = "the gradient norm was soon normal while the loss was still up: the model is well, the data are new to it"
        found.supports(weights.REQUIRED, text, Role.GRAD_NORM)
    elif view.event.kind is EventKind.LEVEL_SHIFT and grad is not None and grad.onset_step is None:
        found.supports(weights.REQUIRED, "the loss moved to a new level and the gradient norm did not move", Role.GRAD_NORM)
    if signs.sudden(view) and view.event.kind is not EventKind.DRIFT:
        found.supports(weights.SUPPORT, "the loss was on its new level within three logged steps", Role.LOSS, view.anchor)
    if loss.half_life is None or loss.half_life >= 8:
        found.supports(weights.HINT, "it came down slowly, as in learning", Role.LOSS)
    if loss.settled < 0.95 and loss.settled_z < -6:
        found.supports(weights.HINT, f"and went on to {loss.settled:.2f} times its old level", Role.LOSS)
    _against(found, view)
    if not view.run.all(Role.LOSS_BY_SOURCE):
        found.missing.append("the loss per data source: in a shift of the mix each stays continuous")
    found.remedy = "If the change was planned, mark it and compare per source. If not, look at what the loader read from this step on."
    return found


def _against(found: Examination, view: View) -> None:
    grad = view.grad
    if grad is not None and grad.factor >= signs.SURGE:
        found.contradicts(weights.AGAINST, f"the gradient norm rose to {grad.factor:.3g} times its level", Role.GRAD_NORM, grad.peak_step)
    elif signs.gradient_upset(view):
        found.contradicts(weights.AGAINST, "the gradient norm stayed up with the loss", Role.GRAD_NORM)
    if signs.precursor(view):
        found.contradicts(weights.DOUBT, "the gradient norm moved before the loss", Role.GRAD_NORM)
    if view.jump is not None:
        found.contradicts(weights.AGAINST, "the learning rate had just jumped", Role.LR, view.jump.step)
    if signs.scale_burst(view):
        found.contradicts(weights.AGAINST, "the loss scale collapsed at the same time", Role.LOSS_SCALE)
    if view.event.kind is EventKind.DIVERGENCE:
        found.contradicts(weights.DOUBT, "new data do not make a loss diverge", Role.LOSS)
