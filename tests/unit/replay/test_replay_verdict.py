from __future__ import annotations

from typing import Any

import pytest

from forensics.replay.host import Replay
from forensics.replay.verdict import conclude
from forensics.replay.wire import Request, State, Target

SPIKE = Target("spike", "loss", 100, 101, baseline=2.0, height=4.0)
NOTHING = Target("none", "loss", 100, 110)


def request(target: Target = SPIKE) -> Request:
    return Request("r.py", "recipe", "run", {}, "cpu", target, State("c.pt", 80), 110, logged={"lr": dict.fromkeys(range(80, 111), 0.001)})


def replay(reproduced: bool | None, *, tracks: bool = True, parted: int | None = None, calm_steps: int = 20, **more: tuple[Any, ...]) -> Replay:
    """``more``: experiment -> (returned, calm_with, result)."""
    outcomes = {"R1": {"id": "R1", "returned": reproduced, "result": {"tracks": tracks, "parted": parted, "calm_steps": calm_steps}, "calm_with": None}}
    for name, (returned, calm, result) in more.items():
        outcomes[name] = {"id": name, "returned": returned, "calm_with": calm, "result": result}
    return Replay(outcomes=outcomes, reproduced=reproduced)


CALM: tuple[Any, ...] = (False, None, {})
BACK: tuple[Any, ...] = (True, None, {})


def test_a_replay_that_ended_at_once_gives_no_verdict() -> None:
    found = conclude(request(), Replay(failed="killed"))
    assert (found.verdict, found.why) == ("undetermined", "killed")


def test_a_replay_that_does_not_follow_the_log_is_not_believed() -> None:
    assert conclude(request(), replay(True, tracks=False, R2=BACK)).verdict == "not_reproduced"


@pytest.mark.parametrize(
    ("found", "verdict", "cause"),
    [
        (replay(True, R2=BACK, R3=CALM), "data", "bad_batch_outlier"),
        (replay(True, R2=BACK, R3=CALM, R4=(None, None, {"batches": [{"finite_inputs": False}]})), "data", "nan_in_input"),
        (replay(True, R2=CALM, R3=CALM), "batch_state", "batch_state_interaction"),
        (replay(True, R3=CALM), "undetermined", None),
        (replay(True), "undetermined", None),
        (replay(True, R2=CALM, R3=BACK, R6=(False, "lr x0.5", {})), "state_step_size", "lr_too_high"),
        (replay(True, R2=CALM, R3=BACK, R6=(False, None, {}), R8=BACK), "state", None),
        (replay(True, R2=CALM, R3=BACK, R6=BACK, R8=(False, "second moment zeroed", {})), "state", "adam_v_stale"),
        (replay(True, R2=CALM, R3=BACK, R6=BACK, R14=(False, "QK-norm", {})), "state", "attention_logit_growth"),
        (replay(True, R2=BACK, R5=(False, "attention in float32", {"formats": ["float16"]})), "precision", "fp16_activation_overflow"),
        (replay(True, R9=CALM, R2=BACK), "persistent_hardware", "sdc_persistent"),
        (replay(False, parted=100), "transient_hardware", "sdc_transient"),
        (replay(False, parted=90), "not_reproduced", None),
        (replay(False, parted=100, calm_steps=0), "not_reproduced", None),
        (replay(None), "none", "metric_artifact"),
        (replay(None, parted=101), "undetermined", None),
    ],
)
def test_the_matrix(found: Replay, verdict: str, cause: str | None) -> None:
    concluded = conclude(request(), found)
    assert (concluded.verdict, concluded.cause) == (verdict, cause)


def test_a_learning_rate_that_jumped_is_named() -> None:
    lr = {s: 0.001 if s < 100 else 0.01 for s in range(80, 111)}
    jumped = Request("r.py", "recipe", "run", {}, "cpu", SPIKE, State("c.pt", 80), 110, logged={"lr": lr})
    found = conclude(jumped, replay(True, R2=CALM, R3=BACK, R6=(False, "lr x0.1", {})))
    assert found.cause == "lr_rewarm_or_jump"
    assert found.calm_with == ("lr x0.1",)


@pytest.mark.parametrize(
    ("agrees", "cause"),
    [
        ("a fresh optimizer", "resume_optimizer_lost"),
        ("the data from its beginning", "resume_data_or_rng_lost"),
        ("the schedule from its beginning", "resume_scheduler_lost"),
    ],
)
def test_what_a_resume_lost(agrees: str, cause: str) -> None:
    audit = (None, None, {"agrees_with": agrees, "checkpoint": "c.pt"})
    assert (conclude(request(), replay(None, R11=audit)).verdict, conclude(request(), replay(None, R11=audit)).cause) == ("lost_state", cause)


def test_a_file_that_is_not_what_was_saved() -> None:
    stray = {"as_saved": True, "saved_against_replayed": {"strays": [{"tensor": "w"}], "different": ["w"], "non_finite": []}}
    found = conclude(request(), replay(True, R11=(True, None, stray)))
    assert (found.verdict, found.cause, found.tensor) == ("state", "resume_weights_wrong", "w")


@pytest.mark.parametrize(("reproduced", "verdict"), [(True, "none"), (False, "not_reproduced")])
def test_without_an_event_every_step_must_agree(reproduced: bool, verdict: str) -> None:
    assert conclude(request(NOTHING), replay(reproduced, parted=None if reproduced else 105)).verdict == verdict
