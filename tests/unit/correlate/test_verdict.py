from __future__ import annotations

from dataclasses import replace

import pytest

from forensics.correlate.coverage import not_checked
from forensics.correlate.verdict import verdict
from forensics.model import Damage, Event, EventKind, Hypothesis, Part, Severity
from tests.unit.synthetic import falling, run_of, signal_of

RUN = run_of({"train/loss": falling(100, 1)})


def event(
    kind: EventKind = EventKind.SPIKE,
    onset: int = 31219,
    severity: Severity = Severity.WARNING,
    *causes: tuple[str, str, float],
    **more: object,
) -> Event:
    hypotheses = tuple(Hypothesis(cause, title, score, Part.TRIGGER) for cause, title, score in causes)
    return Event(kind, severity, 0.9, "train/loss", onset, onset, hypotheses=hypotheses, **more)  # type: ignore[arg-type]


def test_nothing_found() -> None:
    assert verdict(RUN, ()) == "Nothing unusual found in steps 0 to 99 (100 points read)."


def test_info_is_nothing_unusual() -> None:
    assert verdict(RUN, (event(severity=Severity.INFO),)).startswith("Nothing unusual")


def test_nothing_found_is_not_health_where_no_loss_is_logged() -> None:
    assert "no loss is logged" in verdict(run_of({"lr": [1e-3] * 9}), ())


def test_nothing_found_is_not_health_where_the_input_is_damaged() -> None:
    assert "damaged" in verdict(replace(RUN, damage=(Damage("x", "torn", "half"),)), ())


def test_a_run_without_any_point() -> None:
    assert "no steps" in verdict(run_of({"loss": []}), ())


def test_the_best_explanation_is_named() -> None:
    said = verdict(RUN, (event(EventKind.SPIKE, 31219, Severity.WARNING, ("bad_batch_outlier", "A bad batch", 0.83)),))
    assert said == "At step 31,219 the loss spiked; best explanation: a bad batch (bad_batch_outlier, 83%)."


def test_undetermined_is_a_verdict() -> None:
    said = verdict(RUN, (event(EventKind.SPIKE, 5, Severity.WARNING, ("a", "A", 0.3), ("b", "B", 0.3), ("c", "C", 0.1), undetermined=True),))
    assert said == "At step 5 the loss spiked; the cause is undetermined from the logs alone: a (a, 30%) or b (b, 30%) fit best."


def test_the_size_is_told_where_it_is_a_step() -> None:
    sized = event(EventKind.SPIKE, 5, Severity.WARNING, baseline=2.1, peak=12.03)
    assert verdict(RUN, (sized,)).startswith("At step 5 the loss spiked (2.1 to 12.03)")
    assert "nan" not in verdict(RUN, (replace(sized, peak=float("nan")),)).lower()


@pytest.mark.parametrize(("peak", "words"), [(3e-3, "jumped from 0.0003 to 0.003"), (0.0, "fell from 0.0003 to 0")])
def test_what_the_learning_rate_did(peak: float, words: str) -> None:
    assert words in verdict(RUN, (event(EventKind.LR_ANOMALY, 5, Severity.WARNING, baseline=3e-4, peak=peak),))


def test_a_jump_of_the_rate_is_not_explained_by_itself() -> None:
    causes = ("lr_rewarm_or_jump", "The learning rate jumped or was warmed up again", 0.9)
    said = verdict(RUN, (event(EventKind.LR_ANOMALY, 5, Severity.WARNING, causes, baseline=3e-4, peak=3e-3),))
    assert said == "At step 5 the learning rate jumped from 0.0003 to 0.003; whatever sets it is at fault (lr_rewarm_or_jump, 90%)."


def test_no_cause_fits() -> None:
    assert verdict(RUN, (event(),)) == "At step 31,219 the loss spiked; no cause in the catalogue fits."


def test_the_worst_and_first_is_told_and_the_others_counted() -> None:
    events = (event(onset=10), event(EventKind.DIVERGENCE, 500, Severity.CRITICAL), event(EventKind.DIVERGENCE, 400, Severity.CRITICAL))
    said = verdict(RUN, events)
    assert said.startswith("At step 400 the loss diverged")
    assert said.endswith("; 2 more events.")
    assert verdict(RUN, events[:2]).endswith("; 1 more event.")


def test_titles_that_begin_with_an_abbreviation_keep_it() -> None:
    for title in ("LR too high", "A bad batch", "Gradients are not clipped"):
        said = verdict(RUN, (event(EventKind.SPIKE, 5, Severity.WARNING, ("x", title, 0.9)),))
        assert (title if title.startswith("LR") else title[0].lower() + title[1:]) in said


def test_a_title_that_begins_with_nan_keeps_it() -> None:
    said = verdict(RUN, (event(EventKind.NON_FINITE, 5, Severity.CRITICAL, ("nan_in_input", "NaN or infinite values in the input", 0.9)),))
    assert "NaN or infinite values in the input" in said


def test_what_became_nan() -> None:
    assert "the loss became NaN or infinite and stayed so" in verdict(RUN, (event(EventKind.NON_FINITE),))
    other = replace(event(EventKind.NON_FINITE, recovered=True), signal="grad_norm")
    assert "grad_norm became NaN or infinite;" in verdict(RUN, (other,))


@pytest.mark.parametrize("kind", EventKind)
def test_every_kind_has_words(kind: EventKind) -> None:
    assert verdict(RUN, (event(kind, 7),)).startswith("At step 7 ")


def test_missing_roles_are_not_checked() -> None:
    what = {n.what for n in not_checked(run_of({"accuracy": [0.1] * 9}))}
    assert {"loss", "grad_norm", "lr", "batch_id", "silent faults"} <= what


def test_coarse_logging_is_said() -> None:
    coarse = run_of({"loss": signal_of("loss", falling(50, 1), [i * 10 for i in range(50)])})
    assert "every 10 steps" in next(n.why for n in not_checked(coarse) if n.what == "single steps")
    assert "single steps" not in {n.what for n in not_checked(RUN)}


@pytest.mark.parametrize("config", [{"fp16": True}, {"dtype": "float16"}, {"precision": "16-mixed"}])
def test_half_precision_without_a_loss_scale(config: dict[str, object]) -> None:
    assert "loss scale" in {n.what for n in not_checked(run_of({"loss": falling(50, 1)}, config=config))}
    with_scale = run_of({"loss": falling(50, 1), "loss_scale": [65536.0] * 50}, config=config)
    assert "loss scale" not in {n.what for n in not_checked(with_scale)}


def test_a_logger_that_hides_nan() -> None:
    assert "NaN losses" in {n.what for n in not_checked(run_of({"loss": falling(50, 1)}, notes={"nan_filter_possible": True}))}
