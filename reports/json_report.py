"""case.json, both ways: the contract ``forensics/1`` as stable, strict JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TextIO

from forensics.model import SCHEMA, Case, CaseFormatError, from_json, to_json

LARGEST_FILE = 1 << 28
"""Bytes. A case holds thinned curves and stays far below; a file beyond this is not one of ours."""


def render(case: Case, out: TextIO) -> None:
    """Write the case with sorted keys, one curve a line, and a trailing newline. Same case in, same bytes out."""
    data = to_json(case)
    parts = [f" {json.dumps(key)}: {_series(data[key]) if key == 'series' else _pretty(data[key])}" for key in sorted(data)]
    out.write("{\n" + ",\n".join(parts) + "\n}\n")


def load(path: Path) -> Case:
    """Read a case back.

    Raises CaseFormatError, naming the file and the place, where it is not JSON, not a case, or of another schema; OSError
    where it cannot be read.
    """
    if path.stat().st_size > LARGEST_FILE:
        raise CaseFormatError(f"{path}: larger than any case file ({path.stat().st_size:,} bytes); give the case.json that `forensics analyze` wrote")
    try:
        data = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as problem:
        raise CaseFormatError(f"{path}: not JSON ({problem}); give the case.json that `forensics analyze` wrote") from problem
    if not isinstance(data, dict):
        raise CaseFormatError(f"{path}: expected an object at the top, found {type(data).__name__}; this is not a case.json")
    schema = data.get("schema")
    if schema != SCHEMA:
        found = "no schema" if schema is None else f"schema {schema!r:.60}"
        raise CaseFormatError(f"{path}: {found}, but this version reads {SCHEMA!r}; analyse the run again to get a case it can read")
    try:
        return from_json(Case, data)
    except CaseFormatError as problem:
        raise CaseFormatError(f"{path}: {problem}") from problem


def _pretty(value: object) -> str:
    """Indented JSON, shifted to stand below a top-level key."""
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False).replace("\n", "\n ")


def _series(value: dict[str, object]) -> str:
    """One line per curve: a number per line would make most of the file white space."""
    rows = (f"  {json.dumps(name)}: {json.dumps(value[name], sort_keys=True, allow_nan=False, separators=(',', ':'))}" for name in sorted(value))
    body = ",\n".join(rows)
    return f"{{\n{body}\n }}" if body else "{}"
