"""JSON in both directions for the model's dataclasses, and the JSON Schema that describes it.

Non-finite numbers are the strings "NaN", "Infinity" and "-Infinity", so that the output is strict JSON.
Unknown keys are ignored on reading: a newer version may add some.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class CaseFormatError(ValueError):
    """The JSON does not have the shape of the contract. The message names the place."""


def to_json(value: object) -> Any:
    """Plain JSON data (dict, list, str, int, float, bool, None) of a dataclass or a container of them."""
    if isinstance(value, StrEnum):
        return value.value
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        return _number(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {_key(f): to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(v) for v in value]
    if hasattr(value, "item"):
        return to_json(value.item())
    return str(value)


def from_json(kind: type[T], data: object, where: str = "case") -> T:
    """Build a dataclass of the model from plain JSON data. Raises CaseFormatError, naming the place that does not fit."""
    return typing.cast("T", _build(kind, data, where))


def json_schema(kind: type) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a dataclass, generated from its fields."""
    definitions: dict[str, Any] = {}
    root = _schema(kind, definitions)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "forensics/1", **root, "$defs": definitions}


def _number(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _key(item: Field[Any]) -> str:
    return str(item.metadata.get("json", item.name))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _is_union(origin: object) -> bool:
    return origin is typing.Union or origin is types.UnionType


def _build(kind: Any, data: object, where: str) -> object:
    origin = typing.get_origin(kind)
    if _is_union(origin):
        return _build_union(typing.get_args(kind), data, where)
    if origin is tuple:
        if not isinstance(data, list):
            raise CaseFormatError(f"{where}: expected a list, found {type(data).__name__}")
        inner = typing.get_args(kind)[0]
        return tuple(_build(inner, item, f"{where}[{i}]") for i, item in enumerate(data))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(data, dict):
            raise CaseFormatError(f"{where}: expected an object, found {type(data).__name__}")
        inner = typing.get_args(kind)[1]
        return {str(k): _build(inner, v, f"{where}.{k}") for k, v in data.items()}
    if is_dataclass(kind) and isinstance(kind, type):
        return _build_dataclass(kind, data, where)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        try:
            return kind(str(data))
        except ValueError as problem:
            raise CaseFormatError(f"{where}: {data!r} is not one of {', '.join(kind)}") from problem
    return _build_plain(kind, data, where)


def _build_union(kinds: tuple[Any, ...], data: object, where: str) -> object:
    if data is None and type(None) in kinds:
        return None
    if isinstance(data, str) and str not in kinds and float in kinds:
        return _build_plain(float, data, where)
    for kind in kinds:
        if isinstance(kind, type) and type(data) is kind:
            return data
    last: CaseFormatError | None = None
    for kind in (k for k in kinds if k is not type(None)):
        try:
            return _build(kind, data, where)
        except CaseFormatError as problem:
            last = problem
    raise last or CaseFormatError(f"{where}: {data!r} does not fit")


def _build_dataclass(kind: type, data: object, where: str) -> object:
    if not isinstance(data, dict):
        raise CaseFormatError(f"{where}: expected an object, found {type(data).__name__}")
    hints = _hints(kind)
    values: dict[str, object] = {}
    for item in fields(kind):
        key = _key(item)
        if key in data:
            values[item.name] = _build(hints[item.name], data[key], f"{where}.{key}")
        elif item.default is MISSING and item.default_factory is MISSING:
            raise CaseFormatError(f"{where}: {key} is missing")
    return kind(**values)


def _build_plain(kind: Any, data: object, where: str) -> object:
    if kind is object or kind is Any:
        return data
    if kind is float:
        if isinstance(data, str) and data in _WORDS:
            return _WORDS[data]
        if isinstance(data, (int, float)) and not isinstance(data, bool):
            return float(data)
    elif kind is int:
        if isinstance(data, int) and not isinstance(data, bool):
            return data
    elif kind is bool:
        if isinstance(data, bool):
            return data
    elif kind is str and isinstance(data, str):
        return data
    raise CaseFormatError(f"{where}: expected {getattr(kind, '__name__', kind)}, found {data!r:.80}")


_PLAIN: dict[Any, dict[str, Any]] = {
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    str: {"type": "string"},
    float: {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]},
    type(None): {"type": "null"},
    object: {},
}


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin = typing.get_origin(kind)
    if _is_union(origin):
        return {"anyOf": [_schema(k, definitions) for k in typing.get_args(kind)]}
    if origin is tuple:
        return {"type": "array", "items": _schema(typing.get_args(kind)[0], definitions)}
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(typing.get_args(kind)[1], definitions)}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": [member.value for member in kind]}
    if is_dataclass(kind) and isinstance(kind, type):
        return _schema_dataclass(kind, definitions)
    return dict(_PLAIN[kind])


def _schema_dataclass(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}
        hints = _hints(kind)
        definitions[kind.__name__] = {
            "type": "object",
            "description": (kind.__doc__ or "").strip().splitlines()[0],
            "properties": {_key(f): _schema(hints[f.name], definitions) for f in fields(kind)},
            "required": [_key(f) for f in fields(kind)],
        }
    return {"$ref": f"#/$defs/{kind.__name__}"}
