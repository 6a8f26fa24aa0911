"""The result of a replay as view data: curves against the log, samples, layers, tokens and what each experiment said.

Read leniently, for a case may carry the replay of a newer version; every text passes through ``wording`` and ``redaction``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from forensics.model import Series
from forensics.reports import wording
from forensics.reports.redaction import scrub, settings
from forensics.reports.shapes import LayerCell, ReplayCurve, ReplayView, SampleBar

MOST_SAMPLES = 64
"""Bars of one batch; the worst samples come first where there are more."""

MOST_LAYERS = 400
MOST_TOKENS = 12
MOST_LIMITS = 20

DARKEST = 4.0
"""Powers of ten above the median gradient at which a layer's cell is darkest."""

SAID = {
    "data": "the data did it",
    "batch_state": "these batches on this state did it",
    "state_step_size": "the step size did it",
    "state": "the saved state did it",
    "precision": "the number format did it",
    "transient_hardware": "a passing hardware fault",
    "persistent_hardware": "this device errs",
    "lost_state": "the resume lost part of the state",
    "not_reproduced": "nothing can be concluded",
    "none": "nothing happened",
}


def replay_view(data: Mapping[str, object]) -> ReplayView:
    """Everything of a replay that a report shows."""
    verdict = str(data.get("verdict") or "none")
    culprits = _mapping(data.get("culprits"))
    experiments = _mappings(data.get("experiments"))
    reproduced = data.get("reproduced")
    samples = tuple(_samples(experiments))
    return ReplayView(
        verdict=_text(SAID.get(verdict, verdict)).replace("_", " "),
        reproduced=("reproduced" if reproduced else "not reproduced") if isinstance(reproduced, bool) else "not decided",
        why=_text(data.get("why")),
        cause=_text(data.get("cause")),
        culprits=tuple(_culprits(culprits)),
        calm_with=tuple(_text(c) for c in _list(data.get("calm_with"))),
        experiments=tuple((_text(e.get("id")), _text(e.get("what")), _came(e), _text(e.get("reading"))) for e in experiments),
        curves=tuple(_curves(_mappings(data.get("steps")))),
        samples=samples,
        sample_step=next(iter(_sample_steps(experiments)), None),
        layers=tuple(_layers(_mapping(data.get("microscope")))),
        layer_step=_whole(_mapping(data.get("microscope")).get("step")),
        first_bad=_first_bad(_mapping(data.get("microscope"))),
        tokens=tuple(_tokens(_list(culprits.get("tokens")))),
        facts=tuple(_facts(data)),
        limits=tuple(_text(x) for x in _list(data.get("limits"))[:MOST_LIMITS]),
    )


def _text(value: object) -> str:
    return "" if value is None else scrub(wording.without_home(wording.line(str(value))))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [v for v in _list(value) if isinstance(v, Mapping)]


def _number(value: object) -> float | None:
    """A number as the case writes it: the three words stand for values that are not finite."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(str(value))


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _came(experiment: Mapping[str, object]) -> str:
    result, returned = experiment.get("result"), experiment.get("returned")
    if isinstance(result, str):
        return _text(result)
    return {True: "the event comes", False: "no event"}[returned] if isinstance(returned, bool) else ""


def _culprits(culprits: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    samples = _list(culprits.get("samples"))
    if samples:
        more = f" and {len(samples) - 12} more" if len(samples) > 12 else ""
        yield "samples", ", ".join(_text(s) for s in samples[:12]) + more
    for key in ("tensor", "module", "checkpoint"):
        if culprits.get(key):
            yield key, _text(culprits[key])


def _curves(rows: list[Mapping[str, object]]) -> Iterator[ReplayCurve]:
    for name in ("loss", "grad_norm"):
        logged = [(s, v) for r in rows if (s := _whole(r.get("step"))) is not None and (v := _number(r.get(f"logged_{name}"))) is not None]
        replayed = [(s, v) for r in rows if (s := _whole(r.get("step"))) is not None and (v := _number(r.get(name))) is not None]
        if len(replayed) >= 2:
            yield ReplayCurve(name.replace("_", " "), _series(logged), _series(replayed))


def _series(points: list[tuple[int, float]]) -> Series:
    return Series(tuple(s for s, _ in points), tuple(v for _, v in points))


def _batches(experiments: list[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    """The batches whose samples stand out, worst first."""
    result = next((_mapping(e.get("result")) for e in experiments if e.get("id") == "R4"), {})
    steps = [c.get("step") for c in _mappings(result.get("culprits"))]
    rows = [b for b in _mappings(result.get("batches")) if b.get("step") in steps]
    yield from sorted(rows, key=lambda b: -steps.count(b.get("step")))


def _sample_steps(experiments: list[Mapping[str, object]]) -> Iterator[int]:
    yield from (s for b in _batches(experiments) if (s := _whole(b.get("step"))) is not None)


def _samples(experiments: list[Mapping[str, object]]) -> Iterator[SampleBar]:
    """One bar per sample of the batch with the most culprits."""
    batch = next(_batches(experiments), None)
    if batch is None:
        return
    result = next(_mapping(e.get("result")) for e in experiments if e.get("id") == "R4")
    out = {c.get("index") for c in _mappings(result.get("culprits")) if c.get("step") == batch.get("step")}
    losses = [(i, v) for i, x in enumerate(_list(batch.get("losses"))) if (v := _number(x)) is not None]
    if len(losses) > MOST_SAMPLES:
        losses = sorted(losses, key=lambda x: (x[0] not in out, -x[1]))[:MOST_SAMPLES]
    top = max((v for _, v in losses if math.isfinite(v)), default=0.0)
    ids = _list(batch.get("ids"))
    for index, value in losses:
        share = 1.0 if not math.isfinite(value) else max(0.0, value / top) if top > 0 else 0.0
        label = _text(ids[index]) if index < len(ids) else f"no. {index}"
        yield SampleBar(label, wording.number(value), round(share, 4), index in out)


def _layers(slide: Mapping[str, object]) -> Iterator[LayerCell]:
    """Gradient of every tensor against the median, in powers of ten."""
    rows = [(_text(r.get("tensor")), _number(r.get("grad_rms"))) for r in _mappings(slide.get("layers"))[:MOST_LAYERS]]
    sizes = sorted(v for _, v in rows if v is not None and math.isfinite(v) and v > 0)
    middle = sizes[len(sizes) // 2] if sizes else 1.0
    for name, value in rows:
        if value is None:
            yield LayerCell(name, f"{name}: no gradient", 0.0, bad=False)
        elif not math.isfinite(value):
            yield LayerCell(name, f"{name}: the gradient is not finite", 1.0, bad=True)
        else:
            level = min(1.0, max(0.0, 0.5 + math.log10(value / middle) / DARKEST)) if value > 0 else 0.0
            text = f"{name}: gradient {wording.number(value)} a weight, {wording.number(value / middle)} times the median"
            yield LayerCell(name, text, round(level, 3), bad=False)


def _first_bad(slide: Mapping[str, object]) -> str:
    bad = _mapping(slide.get("first_bad"))
    if not bad:
        return ""
    place = f" in {_text(bad.get('module'))}" if bad.get("module") else ""
    return f"First not finite in the {_text(bad.get('where'))} pass{place}: operation {_text(bad.get('operation'))}, {_text(bad.get('dtype'))}."


def _tokens(tokens: list[object]) -> Iterator[str]:
    for token in [t for t in tokens if isinstance(t, Mapping)][:MOST_TOKENS]:
        yield _text(f"token {token.get('token')} at position {token.get('position')}, loss {wording.number(_number(token.get('loss')))}")


def _facts(data: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for key in ("checkpoint", "device", "noise", "band", "steps_taken", "seconds"):
        if data.get(key) not in (None, [], {}, ""):
            yield key.replace("_", " "), "; ".join(s.value for s in settings({key: data[key]}))
