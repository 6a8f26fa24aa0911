"""The vocabulary of the whole tool as data: runs, signals, events, hypotheses, cases, checkpoints.

Names are looked up in their files when first used: who reads only the facts of a checkpoint loads no numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forensics.model.arrays import BoolArray, FloatArray, IntArray, NumArray
    from forensics.model.case import (
        SCHEMA,
        BatchRef,
        Case,
        CheckpointInfo,
        Event,
        EventKind,
        Evidence,
        Hypothesis,
        LrPhase,
        NotChecked,
        Part,
        Rejected,
        Related,
        RunInfo,
        Series,
        Severity,
        SignalInfo,
        Stability,
    )
    from forensics.model.checkpoint import Checkpoint, Fault, Inspected, Outlier, ParamGroup, Piece, TensorChange, TensorInfo, TensorKind, TensorStats
    from forensics.model.codec import CaseFormatError, from_json, json_schema, to_json
    from forensics.model.damage import Damage
    from forensics.model.run import Absent, Attempt, Curve, Run, SampleIds, Signal, SourceInfo, Span

_HOME = {
    "arrays": ("BoolArray", "FloatArray", "IntArray", "NumArray"),
    "case": (
        *("SCHEMA", "BatchRef", "Case", "CheckpointInfo", "Event", "EventKind", "Evidence", "Hypothesis", "LrPhase", "NotChecked", "Part"),
        *("Rejected", "Related", "RunInfo", "Series", "Severity", "SignalInfo", "Stability"),
    ),
    "checkpoint": (
        *("Checkpoint", "Fault", "Inspected", "Outlier", "ParamGroup", "Piece"),
        *("TensorChange", "TensorInfo", "TensorKind", "TensorStats"),
    ),
    "codec": ("CaseFormatError", "from_json", "json_schema", "to_json"),
    "damage": ("Damage",),
    "run": ("Absent", "Attempt", "Curve", "Run", "SampleIds", "Signal", "SourceInfo", "Span"),
}
"""File -> the names it defines."""

_FILE_OF = {name: file for file, names in _HOME.items() for name in names}


def __getattr__(name: str) -> object:
    file = _FILE_OF.get(name)
    if file is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{file}"), name)
    globals()[name] = value
    return value


__all__ = [
    "SCHEMA",
    "Absent",
    "Attempt",
    "BatchRef",
    "BoolArray",
    "Case",
    "CaseFormatError",
    "Checkpoint",
    "CheckpointInfo",
    "Curve",
    "Damage",
    "Event",
    "EventKind",
    "Evidence",
    "Fault",
    "FloatArray",
    "Hypothesis",
    "Inspected",
    "IntArray",
    "LrPhase",
    "NotChecked",
    "NumArray",
    "Outlier",
    "ParamGroup",
    "Part",
    "Piece",
    "Rejected",
    "Related",
    "Run",
    "RunInfo",
    "SampleIds",
    "Series",
    "Severity",
    "Signal",
    "SignalInfo",
    "SourceInfo",
    "Span",
    "Stability",
    "TensorChange",
    "TensorInfo",
    "TensorKind",
    "TensorStats",
    "from_json",
    "json_schema",
    "to_json",
]
