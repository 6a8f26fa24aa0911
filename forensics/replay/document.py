"""A finished replay as the JSON contract ``forensics-replay/1``, and as evidence in the case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from forensics.causes import manual
from forensics.causes.catalogue import RULES
from forensics.model import Case, Event, Evidence, Hypothesis, Part
from forensics.replay.host import Replay
from forensics.replay.plan import Plan
from forensics.replay.verdict import Conclusion
from forensics.replay.wire import Target

SCHEMA = "forensics-replay/1"

CONFIRMED, REFUTED = 0.97, 0.02
"""Scores after a replay: it has seen the cause at work, or seen that it is not."""

DECISIVE = frozenset({"data", "batch_state", "state_step_size", "state", "precision", "transient_hardware", "persistent_hardware", "lost_state"})
"""Verdicts that name a family of causes."""


def document(plan: Plan, replay: Replay, found: Conclusion) -> dict[str, Any]:
    """Plain data, ready for JSON: values that are not finite are the strings NaN, Infinity and -Infinity."""
    request = plan.request
    logged = request.logged
    steps = [
        {
            "step": r["step"],
            "logged_loss": logged.get("loss", {}).get(r["step"]),
            "loss": r["loss"],
            "logged_grad_norm": logged.get("grad_norm", {}).get(r["step"]),
            "grad_norm": r["grad_norm"],
        }
        for r in replay.rows
    ]
    at = request.at_resume if found.checkpoint and request.at_resume and found.checkpoint == request.at_resume.path else request.start
    out = {
        "schema": SCHEMA,
        "event": plan.event.id if plan.event else None,
        "step": request.target.non_finite if request.target.non_finite is not None else request.target.onset,
        "checkpoint": at.path,
        "first_step": at.step,
        "device": request.device,
        "noise": dict(replay.noise),
        "band": dict(replay.band),
        "reproduced": found.reproduced,
        "steps": steps,
        "experiments": [{k: o[k] for k in ("id", "what", "result", "reading", "returned")} for o in replay.outcomes.values()],
        "verdict": found.verdict,
        "why": found.why,
        "cause": found.cause,
        "culprits": {
            "samples": list(found.samples),
            "module": found.module,
            "tensor": found.tensor,
            "tokens": [dict(t) for t in found.tokens],
            "checkpoint": found.checkpoint,
        },
        "calm_with": list(found.calm_with),
        "microscope": replay.slide,
        "limits": [*plan.notes, *replay.limits, *([replay.failed] if replay.failed else [])],
        "seconds": round(replay.seconds, 2),
        "steps_taken": replay.steps_taken,
    }
    return {k: _json(v) for k, v in out.items()}


def _json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(k): _json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(v) for v in value]
    return value


def with_replay(case: Case, plan: Plan, result: Mapping[str, Any]) -> Case:
    """The case with the replay's verdict as evidence for and against its hypotheses."""
    if plan.event is None:
        return case
    events = tuple(_judged(e, result) if e.id == plan.event.id else e for e in case.events)
    return replace(case, events=events, verdict=_sentence(case, plan, result))


def _judged(event: Event, result: Mapping[str, Any]) -> Event:
    verdict, cause = str(result["verdict"]), result["cause"]
    if verdict not in DECISIVE:
        return replace(event, replay=dict(result))
    text = f"replay from {Path(str(result['checkpoint'])).name}: {result['why']}"
    proof = Evidence(text, event.signal, int(result["step"]), None, f"replay of {result['step']}")
    hypotheses: list[Hypothesis] = []
    for h in event.hypotheses:
        if h.cause == cause:
            hypotheses.append(replace(h, score=CONFIRMED, supporting=(proof, *h.supporting), missing=()))
        else:
            against = Evidence(f"the replay's verdict is {verdict.replace('_', ' ')}", event.signal, int(result["step"]), None, proof.source)
            hypotheses.append(replace(h, score=min(h.score, REFUTED), against=(against, *h.against)) if cause else h)
    if cause and all(h.cause != cause for h in event.hypotheses):
        hypotheses.append(_new(str(cause), proof))
    hypotheses.sort(key=lambda h: -h.score)
    return replace(event, hypotheses=tuple(hypotheses), undetermined=cause is None, replay=dict(result))


def _new(cause: str, proof: Evidence) -> Hypothesis:
    rule = next((r for r in RULES if r.INFO.id == cause), None)
    try:
        title, page = manual.page(cause).title, manual.text(cause)
    except KeyError:
        title, page = cause.replace("_", " "), ""
    part = rule.INFO.part if rule is not None else Part.TRIGGER
    return Hypothesis(cause, title, CONFIRMED, part, (proof,), manual=page)


def _sentence(case: Case, plan: Plan, result: Mapping[str, Any]) -> str:
    event = plan.event
    if event is None or result["verdict"] not in DECISIVE:
        return case.verdict
    what = case.verdict.split("; ")[0].rstrip(".")
    if not what.startswith("At step"):
        return case.verdict
    alarms = [e for e in case.events if e.severity != "info"]
    if not alarms or alarms[0].id != event.id:
        return case.verdict
    name = f" ({result['cause']})" if result["cause"] else ""
    return f"{what}; a replay shows why{name}: {result['why']}."


def culprits(target: Target, found: Conclusion) -> Sequence[str]:
    """The culprits in words, for the terminal."""
    out = []
    if found.samples:
        out.append("samples " + ", ".join(map(str, found.samples[:12])))
    if found.tensor:
        out.append(f"tensor {found.tensor}")
    if found.module:
        out.append(f"module {found.module}")
    return out or ([] if target.is_event else ["none"])
