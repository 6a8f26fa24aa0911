"""Evidence in the terminal: nothing known of its place, hostile names, and long paths cut to what tells them apart."""

from __future__ import annotations

import io
from dataclasses import replace

from forensics.model import Case, Event, EventKind, Evidence, Hypothesis, Part, Severity
from forensics.reports import markdown, terminal


def told(case: Case, *evidence: Evidence, undetermined: bool = False) -> str:
    hypothesis = Hypothesis("bad_batch_outlier", "A bad batch", 0.5, Part.TRIGGER, evidence, replay="other batches stay calm (R3)")
    event = Event(EventKind.SPIKE, Severity.WARNING, 0.9, "loss", 10, 10, "E1", hypotheses=(hypothesis,), undetermined=undetermined)
    out = io.StringIO()
    terminal.render(replace(case, events=(event,)), out)
    return " ".join(out.getvalue().split())


def test_evidence_without_a_place(case: Case) -> None:
    assert "+ beta2 is 0.999 (value 0.999)" in told(case, Evidence("beta2 is 0.999", value=0.999))
    assert "+ nothing known missing" not in told(case, Evidence("nothing known"))


def test_a_hostile_source(case: Case) -> None:
    assert "\x1b" not in told(case, Evidence("odd", "loss", 10, 1.0, "a/\x1b[2J.log#3"))


def test_of_a_path_only_the_name_and_record(case: Case) -> None:
    text = told(case, Evidence("it rose", "loss", 1000, 2.5, "/home/somebody/runs/long/metrics.csv#1002"))
    assert "(loss = 2.5, step 1,000, metrics.csv#1002)" in text
    assert "somebody" not in text


def test_an_undetermined_event_says_what_would_tell(case: Case) -> None:
    assert "tell by > other batches stay calm (R3)" in told(case, Evidence("it rose"), undetermined=True)
    out = io.StringIO()
    hypothesis = Hypothesis("a", "A", 0.3, Part.TRIGGER, (Evidence("it rose"),), replay="replay it (R1)")
    event = Event(EventKind.SPIKE, Severity.WARNING, 0.9, "loss", 10, 10, "E1", hypotheses=(hypothesis,), undetermined=True)
    markdown.render(replace(case, events=(event,)), out)
    assert "To settle it: replay it (R1)." in out.getvalue()


def test_what_helped_the_best_explanation_is_no_rival(case: Case) -> None:
    best = Hypothesis("t", "A trigger", 0.8, Part.TRIGGER, (Evidence("it came"),))
    helper = Hypothesis("a", "An amplifier", 0.01, Part.AMPLIFIER, (Evidence("it is off"),))
    rival = Hypothesis("r", "A rival", 0.1, Part.TRIGGER, (Evidence("it might"),))
    out = io.StringIO()
    terminal.render(replace(case, events=(Event(EventKind.SPIKE, Severity.WARNING, 0.9, "loss", 10, 10, "E1", hypotheses=(best, rival, helper)),)), out)
    text = " ".join(out.getvalue().split())
    assert "with 0.01 An amplifier [a]" in text
    assert "or 0.10 A rival [r]" in text


def calm(case: Case, *onsets: int) -> str:
    events = tuple(Event(EventKind.GRAD_NORM_SURGE, Severity.INFO, 0.9, "norm", s, s, f"E{n}") for n, s in enumerate(onsets, 1))
    out = io.StringIO()
    terminal.render(replace(case, events=events), out)
    return " ".join(out.getvalue().split())


def test_many_calm_events_of_one_kind_are_counted(case: Case) -> None:
    assert "E1 gradient norm surge in norm, step 10; E2 gradient norm surge in norm, step 20" in calm(case, 10, 20)
    text = calm(case, *range(1000, 5000, 100))
    assert "40 times gradient norm surge in norm, steps 1,000 to 4,900 (E1 ...)" in text
    assert "E2" not in text
