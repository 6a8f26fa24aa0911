from __future__ import annotations

import math

import pytest

from forensics.correlate import weights
from forensics.correlate.ranking import Examined, rank
from forensics.model import EventKind, Evidence, Part


def examined(cause: str, *facts: float, against: tuple[float, ...] = (), part: Part = Part.TRIGGER, excluded: str | None = None) -> Examined:
    supporting = tuple(Evidence(f"for {w}", weight=w) for w in facts)
    contrary = tuple(Evidence(f"against {w}", weight=w) for w in against)
    return Examined(cause, cause.title(), part, supporting, contrary, (), "", "", "", excluded)


def ranked(*items: Examined, kind: EventKind = EventKind.UNFINISHED) -> dict[str, float]:
    return {h.cause: h.score for h in rank(items, kind, "E1").hypotheses}


def test_nothing_examined_is_undetermined() -> None:
    found = rank([], EventKind.SPIKE, "E1")
    assert found.hypotheses == ()
    assert found.undetermined


def test_a_cause_without_evidence_is_not_ranked() -> None:
    assert ranked(examined("a")) == {}
    assert ranked(examined("a", against=(-2.0,))) == {}


def test_scores_are_a_softmax_with_an_unknown_cause() -> None:
    scores = ranked(examined("a", 3.0), examined("b", 2.0))
    odds = {"a": math.exp(weights.SHARPNESS * (weights.BASE + 3.0)), "b": math.exp(weights.SHARPNESS * (weights.BASE + 2.0))}
    total = math.exp(weights.SHARPNESS * weights.UNKNOWN_CAUSE) + sum(odds.values())
    assert scores == {name: pytest.approx(value / total, abs=1e-4) for name, value in odds.items()}
    assert sum(scores.values()) < 1


def test_evidence_against_lowers_the_score() -> None:
    assert ranked(examined("a", 4.0, against=(-2.0,)))["a"] < ranked(examined("a", 4.0))["a"]


def test_causes_to_look_at_first_have_a_better_prior() -> None:
    first = weights.LOOK_FIRST[EventKind.SPIKE][0]
    scores = ranked(examined("other", 2.0), examined(first, 2.0), kind=EventKind.SPIKE)
    assert scores[first] > scores["other"]


def test_an_excluded_cause_is_rejected_with_its_reason() -> None:
    found = rank([examined("a", 9.0, excluded="it was not logged")], EventKind.SPIKE, "E7")
    assert found.hypotheses == ()
    assert [(r.cause, r.event, r.why) for r in found.rejected] == [("a", "E7", "it was not logged")]


def test_a_cause_far_behind_is_rejected_and_says_why() -> None:
    found = rank([examined("a", 12.0), examined("b", 1.0), examined("c", 1.0, against=(-2.0,))], EventKind.SPIKE, "E1")
    assert [h.cause for h in found.hypotheses] == ["a"]
    why = {r.cause: r.why for r in found.rejected}
    assert "for 1.0" in why["b"]
    assert "against -2.0" in why["c"]


def test_a_clear_winner_is_an_answer() -> None:
    assert not rank([examined("a", 5.5), examined("b", 1.0)], EventKind.SPIKE, "E1").undetermined


def test_a_weak_best_is_no_answer() -> None:
    assert rank([examined("a", 1.0)], EventKind.SPIKE, "E1").undetermined


def test_two_equal_best_are_no_answer() -> None:
    assert rank([examined("a", 6.0), examined("b", 6.0)], EventKind.SPIKE, "E1").undetermined


def test_a_trigger_comes_before_a_susceptibility_of_equal_score() -> None:
    found = rank([examined("a", 4.0, part=Part.SUSCEPTIBILITY), examined("b", 4.0)], EventKind.UNFINISHED, "E1")
    assert [h.cause for h in found.hypotheses] == ["b", "a"]


def test_the_order_of_examination_does_not_matter() -> None:
    items = [examined(name, weight) for name, weight in (("a", 2.0), ("b", 4.0), ("c", 4.0), ("d", 3.0))]
    assert rank(items, EventKind.SPIKE, "E1") == rank(items[::-1], EventKind.SPIKE, "E1")


def test_an_amplifier_with_evidence_of_its_own_is_no_rival_of_a_trigger() -> None:
    trigger, amplifier, weak = examined("t", 9.0), examined("a", 2.0, part=Part.AMPLIFIER), examined("w", 1.0, part=Part.AMPLIFIER)
    found = rank([trigger, amplifier, weak], EventKind.UNFINISHED, "E1")
    assert [h.cause for h in found.hypotheses] == ["t", "a"]
    assert [r.cause for r in found.rejected] == ["w"]
