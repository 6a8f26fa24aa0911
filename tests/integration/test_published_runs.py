"""What the tool says about excerpts of public logs whose story is known, where they lie beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.comparison import compare
from forensics.fleet.common import summarise
from forensics.fleet.sweep import analyse_one, find_runs
from forensics.loading import load
from forensics.model import Case, Event, Severity
from forensics.model.comparison import DataOrder
from forensics.pipeline import analyze

CORPUS = Path(__file__).parents[3] / "shared/corpus"

DATA = {"bad_batch_outlier", "nan_in_input", "repeated_ngram_docs", "degenerate_data_pocket", "mixture_shift"}
STATE = {"gradient_explosion_depth", "adam_v_stale", "attention_logit_growth", "embedding_grad_surge", "batch_state_interaction", "momentum_contamination"}


def case(name: str) -> Case:
    path = CORPUS / name
    if not path.exists():
        pytest.skip("the public logs are not beside this checkout")
    return analyze(path)


def alarm(found: Case, first: int, last: int) -> Event:
    near = [e for e in found.events if e.severity is not Severity.INFO and first <= e.onset_step <= last]
    assert near, [(e.kind, e.onset_step) for e in found.events]
    return near[0]


def test_bloom_names_the_state_and_the_lead() -> None:
    event = alarm(case("bigscience/tr11-176B-ml.log"), 31215, 31219)
    assert event.hypotheses[0].cause in STATE
    scores = {h.cause: h.score for h in event.hypotheses}
    assert max((scores.get(c, 0.0) for c in DATA), default=0.0) < 0.5 * event.hypotheses[0].score
    grad = next(r for r in event.related if r.signal == "grad norm")
    assert (grad.onset_step, grad.lag) == (31215, -4)
    assert any("4 steps before the loss" in e.text for e in event.hypotheses[0].supporting)


def test_an_optimizer_reset_is_named_with_units_repaired() -> None:
    found = case("bigscience/tr8b-104B.log")
    event = alarm(found, 17061, 17063)
    assert event.hypotheses[0].cause in {"resume_optimizer_lost", "resume_scaler_reset", "scale_growth_trigger", "fp16_grad_overflow"}
    assert "resume_optimizer_lost" in {h.cause for h in event.hypotheses[:2]}
    assert any(n.what == "unit of the gradient norm" for n in found.not_checked)
    assert not any(e.kind == "grad_norm_surge" for e in found.events)


@pytest.mark.parametrize("name", ["2024-10-10_Muon.txt", "2024-10-29_Optimizers.txt", "2024-11-24_WindowWarmup.txt"])
def test_one_spike_with_its_batch_is_the_data(name: str) -> None:
    event = alarm(case(f"modded-nanogpt/{name}"), 945, 948)
    assert event.hypotheses[0].cause in DATA
    assert not event.undetermined
    assert "94" in event.hypotheses[0].remedy


def test_fp16_overflow_after_a_doubling() -> None:
    event = alarm(case("bigscience/tr1-13B-base.log"), 29030, 29060)
    assert {"fp16_grad_overflow", "scale_growth_trigger"} & {h.cause for h in event.hypotheses[:2]}


@pytest.mark.parametrize("name", ["llmc-healthy", "hf-star", "modded-nanogpt-llmc"])
def test_healthy_public_runs_raise_no_alarm(name: str) -> None:
    assert [(e.kind, e.onset_step) for e in case(name).events if e.severity is not Severity.INFO] == []


def test_two_runs_that_share_their_data_broke_on_the_same_batch() -> None:
    sides = []
    for name in ("2024-10-10_Muon.txt", "2024-10-29_Optimizers.txt"):
        found = case(f"modded-nanogpt/{name}")
        sides += [load(CORPUS / f"modded-nanogpt/{name}"), found]
    compared = compare(*sides)
    assert compared.data_order is DataOrder.SAME
    step = next(s for s in compared.same_steps if s.a_event is not None and s.b_event is not None)
    assert (step.step, step.same_batch) == (947, True)
    assert "bad_batch_outlier" in step.points_to
    assert compared.chance is not None
    assert compared.chance < 0.01


def test_a_sweep_of_unrelated_runs_finds_what_three_of_them_share() -> None:
    if not CORPUS.exists():
        pytest.skip("the public logs are not beside this checkout")
    rows = [analyse_one(r) for r in find_runs(CORPUS)]
    fleet = summarise("corpus", rows)
    assert [(s.step, len(s.runs)) for s in fleet.steps] == [(946, 3)]
    assert fleet.batches == ()
