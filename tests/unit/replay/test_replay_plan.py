from __future__ import annotations

from forensics.replay.plan import tree


def test_a_flat_configuration_becomes_a_tree() -> None:
    flat = {"lr": 0.1, "model.dim": 48, "model.heads": 4, "lr_overrides.358": 0.06, "betas": (0.9, 0.95)}
    assert tree(flat) == {"lr": 0.1, "model": {"dim": 48, "heads": 4}, "lr_overrides": {"358": 0.06}, "betas": [0.9, 0.95]}


def test_a_key_that_is_a_value_and_a_branch_keeps_its_dots() -> None:
    assert tree({"model": "gpt", "model.dim": 48}) == {"model": "gpt", "model.dim": 48}
