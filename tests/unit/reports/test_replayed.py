from __future__ import annotations

import io
from dataclasses import replace

from forensics.model import Case
from forensics.reports import html, markdown
from forensics.reports.replayed import replay_view
from tests.unit.reports.conftest import HOSTILE

RESULT: dict[str, object] = {
    "verdict": "data",
    "reproduced": True,
    "why": "the same batches do it",
    "cause": "bad_batch_outlier",
    "culprits": {"samples": [7, HOSTILE], "tensor": HOSTILE, "tokens": [{"token": 5, "position": 2, "loss": "Infinity"}]},
    "calm_with": ["other batches"],
    "steps": [{"step": s, "logged_loss": 2.0, "loss": 2.0 if s < 4 else "NaN", "logged_grad_norm": None, "grad_norm": None} for s in range(6)],
    "experiments": [
        {"id": "R1", "what": "x", "result": {}, "reading": "it comes back", "returned": True},
        {
            "id": "R4",
            "what": "x",
            "reading": "",
            "returned": None,
            "result": {"culprits": [{"step": 3, "index": 1}], "batches": [{"step": 3, "losses": [1.0, "NaN", 2.0], "ids": [1, HOSTILE, 3]}]},
        },
    ],
    "microscope": {
        "step": 3,
        "layers": [{"tensor": "a", "grad_rms": 1.0}, {"tensor": "b", "grad_rms": "NaN"}, {"tensor": HOSTILE, "grad_rms": None}],
        "first_bad": {"where": "backward", "module": HOSTILE, "operation": "div", "dtype": "float16"},
    },
    "limits": [HOSTILE],
}


def test_values_that_are_not_finite_stand_out() -> None:
    shown = replay_view(RESULT)
    assert [(s.share, s.stands_out) for s in shown.samples] == [(0.5, False), (1.0, True), (1.0, False)]
    assert [c.bad for c in shown.layers] == [False, True, False]
    assert shown.experiments[0][2] == "the event comes"
    assert shown.tokens == ("token 5 at position 2, loss +Inf",)


def test_a_signal_that_was_not_replayed_is_not_drawn() -> None:
    assert [c.signal for c in replay_view(RESULT).curves] == ["loss"]
    assert len(replay_view(RESULT).curves[0].logged.steps) == 6


def test_hostile_names_stay_text(case: Case) -> None:
    judged = replace(case, events=(replace(case.events[0], replay=RESULT),))
    for render in (html.render, markdown.render):
        out = io.StringIO()
        render(judged, out)
        assert "<script>alert" not in out.getvalue()
        assert "bad_batch_outlier" in out.getvalue()


def test_an_event_without_a_replay_has_the_command(case: Case) -> None:
    out = io.StringIO()
    html.render(replace(case, events=(replace(case.events[0], replay=None),)), out)
    assert "forensics replay" in out.getvalue()
