"""A case with everything in it, hostile strings included."""

from __future__ import annotations

import math

import numpy as np
import pytest

from forensics.model import (
    Attempt,
    BatchRef,
    Case,
    Damage,
    Event,
    EventKind,
    Evidence,
    Hypothesis,
    NotChecked,
    Part,
    Rejected,
    Related,
    RunInfo,
    Series,
    Severity,
    SignalInfo,
    SourceInfo,
    Stability,
)
from forensics.reports.thinning import thin

HOSTILE = "<script>alert(1)</script>"
MARKUP = "[bold]x[/bold] [/red] [link=http://evil]y"
CONTROL = "a\x1b[2Jb\u202ec\nd"
QUOTES = "\" onmouseover=\"alert(2)\" x='"
STEPS = 4000
MANUAL = """Learning rate jumped upwards.

What happened
    The learning rate rose by a factor within a few steps.

How it shows in logs
    lr leaves its schedule first; loss and grad norm follow.

Fix
    Restore the schedule. See <script>alert(3)</script>.
"""


def build_case() -> Case:
    rng = np.random.default_rng(7)
    steps = np.arange(STEPS, dtype=np.int64)
    loss = 2.2 + 4.0 * np.exp(-steps / 500) + rng.normal(0, 0.03, STEPS)
    spike = np.exp(-np.maximum(steps - 1806, 0) / 40) * (steps >= 1803)
    loss += 3.4 * spike
    loss[3700:] = math.nan
    grad = np.exp(rng.normal(-0.7, 0.12, STEPS)) * (1 + 11 * spike)
    grad[3690:3700] = [3, 9, 30, 90, 400, 1e3, 1e5, 1e7, math.inf, math.inf]
    grad[3700:] = math.nan
    lr = 3e-4 * np.minimum(steps / 200, 1) * (1 + 3.0 * ((steps >= 1800) & (steps < 1830)))
    scale = np.where(steps < 3696, 65536.0, 1024.0)
    curves = {"train/loss": loss, "lr": lr, "train/grad_norm": grad, "loss_scale": scale, HOSTILE: rng.normal(900, 30, STEPS), MARKUP: np.sqrt(steps + 1.0)}
    roles = {"train/loss": "loss", "lr": "lr", "train/grad_norm": "grad_norm", "loss_scale": "loss_scale", HOSTILE: "tput", MARKUP: None}
    return Case(
        tool_version="0.1.0",
        run=RunInfo(
            path="/home/alice/runs/gpt-small",
            name="gpt-small " + HOSTILE,
            sources=(SourceInfo("/home/alice/runs/gpt-small/metrics.csv", "csv", 6 * STEPS, "ab" * 32), SourceInfo(CONTROL, "jsonl", 12)),
            first_step=0,
            last_step=STEPS - 1,
            attempts=(Attempt(0, 2499), Attempt(2400, STEPS - 1, 2399)),
            config={
                "lr": 3e-4,
                "batch_size": 64,
                "max_tokens": 4096,
                "eos_token": "</s>",
                "hub_token": "hf_abcdefghijklmnopqrstuvwx",
                "wandb": {"api_key": "0123456789", "user": "alice", "host": "gpu-07"},
                "nested": {"note": HOSTILE, "url": "https://bob:hunter2@example.org/x", "floats": [1.0, math.nan]},
                "argv": ["train.py", "--token", "verysecret", "--password=verysecret", "--lr", "3e-4"],
                MARKUP: QUOTES,
            },
            notes={"run_id": "abc123", "email": "alice@example.org"},
            stability_score=Stability(loss_7sd_1000=0.004, skipped_share=0.01),
        ),
        signals=tuple(
            SignalInfo(n, roles[n], STEPS, 0, STEPS - 1, 1.0, int((~np.isfinite(v)).sum()), primary=roles[n] is not None) for n, v in curves.items()
        ),
        verdict="The loss became NaN at step 3,700 after the loss scale could no longer fall; before that, a spike at step 1,803 after the lr jumped 4x.",
        events=_events(),
        series={n: thin(steps, v, [(1750, 1950), (3600, 3800)], 300) for n, v in curves.items()},
        rejected=(Rejected("lr_too_high", "E1", "the loss fell for 1,600 steps at this learning rate"), Rejected(HOSTILE, "E2", MARKUP)),
        not_checked=(NotChecked("sdc_persistent", "no per-rank loss was logged"), NotChecked(HOSTILE, CONTROL)),
        damage=(Damage("/home/alice/runs/gpt-small/events.jsonl", "line 812 is not JSON " + HOSTILE, "1 record near step 811"),),
    )


def _events() -> tuple[Event, ...]:
    jump = Hypothesis(
        cause="lr_rewarm_or_jump",
        title="Learning rate rewarmed or jumped",
        score=0.91,
        role=Part.TRIGGER,
        supporting=(
            Evidence("lr rose from 3e-04 to 1.2e-03, a factor of 4.0, 3 steps before the loss", "lr", 1800, 1.2e-3, "metrics.csv#1802", 2.1),
            Evidence("the gradient norm rose with the loss, not before it", "train/grad_norm", 1803, 6.2, "metrics.csv#1805", 0.7),
            Evidence("no batch in the window was seen before", None, None, None, None, 0.2),
            Evidence("a fourth fact", "lr", 1801, HOSTILE, CONTROL, 0.1),
        ),
        against=(Evidence("lr fell back at step 1,830 while the loss was already recovering", "lr", 1830, 3e-4, "metrics.csv#1832", -0.3),),
        missing=("log the update RMS to see the size of the steps taken", "log " + MARKUP),
        remedy="Keep lr at 3e-04 here; if a rewarm is wanted, spread it over at least 300 steps.",
        replay="R5: step 1,803 again with lr 3e-04; the spike should not return.",
        manual=MANUAL,
    )
    other = Hypothesis("bad_batch_outlier", "One batch unlike the others", 0.22, Part.TRIGGER, against=(Evidence("loss stayed high for 40 steps"),))
    third = Hypothesis("grad_clip_missing", "Gradients are not clipped " + HOSTILE, 0.15, Part.AMPLIFIER)
    return (
        Event(
            EventKind.SPIKE,
            Severity.WARNING,
            0.97,
            "train/loss",
            1800,
            1806,
            id="E1",
            end_step=1930,
            recovered=True,
            baseline=2.31,
            peak=5.72,
            height=3.41,
            p_value=1e-12,
            batches=tuple(BatchRef(1800 + k, 88120 + k) for k in range(8)),
            related=(
                Related("lr", "lr", 1800, -3, "x4.0"),
                Related("train/grad_norm", "grad_norm", 1803, 0, "x12"),
                Related(HOSTILE, "tput", 1850, None, ""),
            ),
            hypotheses=(jump, other, third),
            replay={
                "verdict": "state_step_size",
                "reproduced": True,
                "experiments": [{"id": "R5", "what": HOSTILE, "result": "calm", "reading": "lr"}],
                "limits": ["cpu"],
            },
        ),
        Event(
            EventKind.NON_FINITE,
            Severity.CRITICAL,
            1.0,
            "train/loss",
            3690,
            3700,
            id="E2",
            baseline=2.2,
            peak=math.nan,
            text="Every value from step 3,700 on is NaN.",
            batches=(BatchRef(3700, "shard-7/" + HOSTILE),),
            related=(Related("loss_scale", "loss_scale", 3696, -4, "65536 -> 1024"),),
            hypotheses=(Hypothesis("loss_scale_collapse", "Loss scale collapsed", 0.4, Part.TRIGGER, missing=("log found_inf",)),),
            undetermined=True,
        ),
        Event(EventKind.RESTART, Severity.WARNING, 1.0, "", 2400, 2400, id="E3", text="Steps 2,400 to 2,499 were written twice."),
        Event(EventKind.THROUGHPUT_CHANGE, Severity.INFO, 0.6, HOSTILE, 900, 905, id="E4", end_step=950),
        Event(EventKind.GRAD_NORM_SURGE, Severity.INFO, 0.5, "train/grad_norm", 1200, 1201, id="E5", end_step=1203),
    )


@pytest.fixture
def case() -> Case:
    return build_case()


@pytest.fixture
def hostile() -> str:
    return HOSTILE


@pytest.fixture
def markup() -> str:
    return MARKUP


@pytest.fixture
def empty_case() -> Case:
    return Case("0.1.0", RunInfo("runs/empty", ""), (), "Nothing went wrong in what was read.")


@pytest.fixture
def lonely_series() -> Case:
    """One point, and one curve of nothing but NaN."""
    series = {"loss": Series((5,), (1.0,)), "lr": Series((1, 2, 3), (math.nan,) * 3), "none": Series((), ())}
    signals = (SignalInfo("loss", "loss", 1, 5, 5, None, 0, primary=True), SignalInfo("lr", "lr", 3, 1, 3, 1.0, 3, primary=True))
    return Case("0.1.0", RunInfo("x", "x", first_step=5, last_step=5), signals, "Too little to say.", series=series)
