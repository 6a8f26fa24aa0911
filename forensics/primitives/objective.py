"""What kind of objective a run optimises, where the log or its configuration says so.

A loss that rises is a fault in supervised training and language modelling; for self-supervised, adversarial and
reinforcement objectives it may be progress.
"""

from __future__ import annotations

from enum import StrEnum

from forensics.model import Run
from forensics.vocabulary import Role, normalise


class Objective(StrEnum):
    """``ORDINARY`` means that nothing says otherwise."""

    ORDINARY = "ordinary"
    SELF_SUPERVISED = "self-supervised"
    ADVERSARIAL = "adversarial"
    REINFORCEMENT = "reinforcement"


_SELF_SUPERVISED = (
    *("byol", "simsiam", "dino", "moco", "simclr", "barlow", "vicreg", "contrastive"),
    *("target_ema", "ema_target", "jepa", "swav", "info_nce", "ntxent"),
)
_ADVERSARIAL = ("gan", "discriminator", "adversarial", "wgan", "cyclegan", "stylegan")
_REINFORCEMENT = ("ppo", "grpo", "rlhf", "a2c", "sac", "dqn", "reinforce", "policy_gradient")
_GAN_LOSSES = frozenset(
    {
        *("loss_g", "loss_d", "g_loss", "d_loss", "lossg", "lossd"),
        *("loss_generator", "loss_discriminator", "generator_loss", "discriminator_loss"),
    }
)


def objective(run: Run) -> Objective:
    """Read the objective off the roles, the logged names and the configuration; never off file or folder names."""
    roles = {s.role for s in run.signals}
    if {Role.REWARD.value, Role.VALUE_LOSS.value} & roles:
        return Objective.REINFORCEMENT
    names = {normalise(s.name).removeprefix("train_") for s in run.signals}
    if len(names & _GAN_LOSSES) >= 2:
        return Objective.ADVERSARIAL
    if any(mark in name for name in names for mark in _SELF_SUPERVISED if len(mark) > 4):
        return Objective.SELF_SUPERVISED
    words = "_".join(f"{normalise(str(k))}_{normalise(v) if isinstance(v, str) else ''}" for k, v in run.config.items()) + "_"
    for kind, marks in ((Objective.SELF_SUPERVISED, _SELF_SUPERVISED), (Objective.ADVERSARIAL, _ADVERSARIAL), (Objective.REINFORCEMENT, _REINFORCEMENT)):
        if any(f"_{mark}_" in f"_{words}" or (len(mark) > 5 and f"_{mark}" in f"_{words}") for mark in marks):
            return kind
    return Objective.ORDINARY
