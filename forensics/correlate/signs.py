"""Signs that several causes ask about, each decided once. True, False, or None where the log cannot say."""

from __future__ import annotations

import numpy as np

from forensics.correlate.move import LEAD_POINTS
from forensics.correlate.view import View
from forensics.model import EventKind
from forensics.vocabulary import Role

BATCH_POINTS = 4
"""Logged points an event of one or a few bad batches lasts: the batches themselves, and no more."""

USUAL_LR_ADAPTIVE = 5e-3
"""Adam-like optimizers rarely train above this (practice: 1e-5 to 1e-3)."""

USUAL_LR_SGD = 0.5
"""Plain SGD with momentum rarely trains above this."""

ECHO_LEFT = 0.25
"""Share of the first height that may be left some points later for the event to have been over with its batches."""

SURGE = 10.0
"""Factor of the gradient norm that no healthy batch reaches (catalogue: sdc, clip: >= 10x)."""

YOUNG_POINTS = 30
"""Logged points at the start of a run in which the loss falls steeply."""

SKIPS, FEWEST_SKIPS = 5, 3
"""Points after the onset that are looked at for skipped steps, and how many of them must be."""

HELD = 0.2
"""Share of its rise by which a loss may move that stays where it is."""

CALM = 1.4
"""A gradient norm within this factor of its level is calm again."""

UNPRECEDENTED = 5.0
"""Factor over the largest gradient norm before the event that new data do not reach."""

EXPLAINED = 2.0
"""Factor over that of the loss up to which a gradient is explained by it."""

HELD = 0.75
"""Share of its first height that a loss must still have later for nothing to have been learned again."""

START = 0.15
"""Share of all progress by which the loss may miss its first level and be back there."""

SCALE_JUMP, SCALE_POINTS = 4.0, 20
"""Factor of the loss scale that no growth step has (catalogue), and logged points before its fall in which it is looked for."""

NEAR_LOGGED = 3
"""Logged points before the loss within which a gradient leads it where points are far apart; what rose long before is a drift."""

NEW_LEVEL, NOISIER, NOISE_POINTS = 1.4, 1.5, 40
"""Factors of gradient norm and of the noise of the loss that a mean over fewer samples brings, and points that show the noise."""

AWAY = 0.5
"""Share of its first height that the loss must still have for it to be away."""


def brief(view: View) -> bool | None:
    """The loss was back at its level as soon as the batches were over."""
    loss = view.loss
    if loss is None or view.rise is None:
        return None
    if loss.half_life is None or loss.half_life > BATCH_POINTS:
        return False
    return loss.echo_u <= ECHO_LEFT * loss.first_u


def lingering(view: View) -> bool | None:
    """The loss took many points to come back, or never did."""
    loss = view.loss
    if loss is None or view.rise is None:
        return None
    if view.event.kind in {EventKind.DRIFT, EventKind.DIVERGENCE}:
        return True
    return loss.half_life is None or loss.half_life > BATCH_POINTS


def sudden(view: View) -> bool | None:
    """The loss was at most of its height within three points of leaving its level."""
    loss = view.loss
    if loss is None or view.rise is None or loss.height_u <= 0:
        return None
    return loss.first_u >= 0.6 * loss.height_u


def gradient_calm_while_loss_away(view: View) -> bool | None:
    """Some points after the onset the gradient is normal although the loss is not: the model is well, the data are not."""
    loss, grad = view.loss, view.grad
    if loss is None or grad is None or view.rise is None or loss.first_u <= 0:
        return None
    away = loss.echo_u >= AWAY * loss.first_u
    return away and grad.echo <= CALM


def gradient_upset(view: View) -> bool | None:
    """The gradient left its level with the loss and stayed up for some points: the weights are not where they were."""
    grad = view.grad
    if grad is None:
        return None
    return grad.onset_step is not None and grad.factor >= 2 and grad.echo > CALM


def explained_by_loss(view: View) -> bool | None:
    """The gradient norm rose by no more than the loss did: under a loss without a ceiling it is as large as the errors are."""
    loss, grad = view.loss, view.grad
    if loss is None or grad is None or view.rise is None or not loss.factor > 1:
        return None
    return grad.factor <= EXPLAINED * loss.factor


def nothing_relearned(view: View) -> bool | None:
    """The loss jumped and then held its new level: what it is now asked for is not learned, and was not forgotten either."""
    loss, rise = view.loss, view.rise
    if loss is None or rise is None or loss.first_u <= 0 or loss.settled_z == 0.0:
        return None
    return rise.end_step is None and loss.half_life is None and loss.settled_u >= HELD * loss.first_u


def back_at_start(view: View) -> bool | None:
    """The loss settled where it had stood before training: the model says nothing any more."""
    loss, signal = view.loss, view.curves.get(Role.LOSS)
    if loss is None or signal is None or view.rise is None or loss.settled_z == 0.0 or view.first_step > YOUNG_POINTS * view.every:
        return None
    first = float(np.median(signal.u[:3]))
    return abs(loss.base_u + loss.settled_u - first) <= START * max(first - loss.base_u, 1e-9)


def unprecedented(view: View) -> bool | None:
    """The gradient went far above everything the run had shown, its first steps from random weights included.

    New data bring gradients like those of the first steps; a damaged number brings larger ones.
    """
    grad, signal = view.grad, view.curves.get(Role.GRAD_NORM)
    if grad is None or signal is None or grad.onset_step is None:
        return None
    before = signal.values[: signal.at(grad.onset_step)]
    return len(before) > 0 and grad.peak >= UNPRECEDENTED * float(before.max())


def precursor(view: View) -> bool | None:
    """The gradient norm left its level shortly before the loss; None where the cadence cannot tell."""
    lead = view.grad_lead
    return None if lead is None else 1 <= lead <= max(LEAD_POINTS, NEAR_LOGGED * view.every)


def young(view: View) -> bool:
    """The event is in the first steep part of the run, where a loss moves by itself."""
    return view.first_step <= YOUNG_POINTS * view.every and view.anchor - view.first_step <= max(YOUNG_POINTS * view.every, 0.03 * view.length)


def lr_steady(view: View) -> bool | None:
    """The learning rate did nothing unusual around the onset; None where it is not logged."""
    if view.schedule is None:
        return None
    zero = view.schedule.zero_from
    near_zero = zero is not None and abs(int(view.schedule.steps[zero]) - view.onset) <= 30 * view.every
    return view.jump is None and not near_zero


def usual_lr(view: View) -> float:
    """The largest learning rate that the run's kind of optimizer usually bears; steps by the sign (Lion) are as large as Adam's."""
    return USUAL_LR_SGD if plain_sgd(view) else USUAL_LR_ADAPTIVE


def plain_sgd(view: View) -> bool:
    """The optimizer is known to follow the gradient itself, with or without momentum."""
    return view.settings.adaptive is False and any(word in (view.settings.optimizer or "") for word in ("sgd", "momentum", "nesterov"))


def lr_above_usual(view: View) -> bool | None:
    """The learning rate at the onset is above what such optimizers usually bear; None where it is not logged."""
    at = view.schedule.at(view.anchor) if view.schedule is not None else None
    return None if at is None else at >= usual_lr(view)


def scale_burst(view: View) -> bool | None:
    """The loss scale fell in a burst; None where no loss scale is logged."""
    if view.curves.get(Role.LOSS_SCALE) is None:
        return None
    return view.incident.member(EventKind.LOSS_SCALE_DROP, EventKind.LOSS_SCALE_COLLAPSE) is not None


def held_while_skipped(view: View) -> bool | None:
    """The loss scale fell on most of the steps after the onset, so those updates were skipped, and the loss stayed where it was."""
    scale, loss = view.curves.get(Role.LOSS_SCALE), view.curves.get(Role.LOSS)
    if scale is None or loss is None or view.rise is None:
        return None
    i, j = scale.at(view.anchor), loss.at(view.anchor)
    scales, losses = scale.values[i : i + SKIPS], loss.u[j : j + SKIPS]
    if len(scales) < FEWEST_SKIPS + 1 or len(losses) < FEWEST_SKIPS + 1:
        return None
    fell = int((np.diff(scales) < 0).sum())
    return fell >= FEWEST_SKIPS and float(np.ptp(losses)) <= HELD * float(losses[0] - loss.centre[max(0, j - 1)])


def fewer_averaged(view: View) -> float | None:
    """The factor by which the loss became noisier where the gradient norm went to a new level and that of the loss stayed.

    A mean over fewer samples or targets does that to both. None where it is not so.
    """
    loss, grad = view.curves.get(Role.LOSS), view.grad
    if view.event.kind is not EventKind.GRAD_NORM_SURGE or view.event.recovered or view.rise is not None or loss is None or grad is None:
        return None
    at = loss.at(view.anchor)
    before, after = (np.abs(np.diff(part)) for part in (loss.u[max(0, at - NOISE_POINTS) : at], loss.u[at : at + NOISE_POINTS]))
    if grad.lasting < NEW_LEVEL or min(len(before), len(after)) < 8:
        return None
    factor = float(np.median(after)) / max(float(np.median(before)), 1e-12)
    return factor if factor >= NOISIER else None


def scale_had_jumped(view: View) -> bool | None:
    """Shortly before it fell the loss scale had gone up by more than a scaler ever does at once: it falls back to where it belongs."""
    scale = view.curves.get(Role.LOSS_SCALE)
    if scale is None or len(scale) < 3:
        return None
    at = scale.at(view.onset)
    near = scale.values[max(0, at - SCALE_POINTS) : at + 2]
    return bool((near[1:] >= SCALE_JUMP * near[:-1]).any())


def dense(view: View) -> bool:
    """Every step is logged, so that durations of single steps can be told."""
    return view.every <= 1.0
