"""A run of MLflow's file store: ``<experiment>/<run>/{meta.yaml,metrics/,params/,tags/}``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.mlflow_sqlite import plain
from forensics.parsers.sink import Sink

NAME = "mlflow_files"

STATUS = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
MAX_TEXT = 1 << 16
MAX_FILES = 50_000

_META = re.compile(r"^(\w+): *(.*?) *$", re.MULTILINE)


def sniff(source: Source) -> Claim | None:
    """Claim a folder with a run's meta.yaml and a metrics folder."""
    if not source.is_dir or not (source.path / "meta.yaml").is_file() or not (source.path / "metrics").is_dir():
        return None
    meta = _meta(source.path)
    identity = meta.get("run_id") or meta.get("run_uuid")
    if not identity or meta.get("lifecycle_stage") == "deleted":
        return None
    return Claim(NAME, 90, (RunKey(identity, meta.get("run_name", ""), _seconds(meta.get("start_time"))),))


def parse(source: Source, sink: Sink, run: RunKey) -> None:
    """Read every metric file; a slash in a metric's name is a sub-folder."""
    meta = _meta(source.path)
    sink.note("run_id", run.id)
    sink.note("run_name", meta.get("run_name") or _text(source.path / "tags" / "mlflow.runName") or run.id)
    code = meta.get("status", "")
    status = STATUS.get(int(code), code) if code.isdigit() else code
    sink.note("status", status)
    sink.note("finished", status == "FINISHED")
    if meta.get("start_time"):
        sink.note("start_time", _seconds(meta["start_time"]))
    sink.config({name: plain(_text(path)) for name, path in _files(source.path / "params")})
    for name, path in _files(source.path / "metrics"):
        _metric(name, path, sink)


def _metric(name: str, path: Path, sink: Sink) -> None:
    try:
        data = path.read_bytes()
    except OSError as problem:
        sink.damage(f"{name}: {problem.strerror}", f"the metric {name}")
        return
    sink.progress(len(data))
    steps, values, times, records = [], [], [], []
    bad: list[int] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        parts = line.split()
        if not parts:
            continue
        try:
            time, value, step = int(parts[0]), float(parts[1]), int(parts[2]) if len(parts) > 2 else len(steps)
        except (ValueError, IndexError):
            bad.append(number)
            continue
        steps.append(step)
        values.append(value)
        times.append(time / 1000)
        records.append(number)
    if bad:
        sink.damage(f"metric {name}: {len(bad)} lines are not `timestamp value step` (first: line {bad[0]})", f"{len(bad)} points of {name}")
    sink.points(name, steps, values, wall_times=times, records=records)


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    count = 0
    for folder, folders, files in os.walk(root):
        folders.sort()
        for file in sorted(files):
            count += 1
            if count > MAX_FILES:
                return
            path = Path(folder, file)
            yield path.relative_to(root).as_posix(), path


def _meta(run: Path) -> dict[str, str]:
    return {key: value.strip("'\"") for key, value in _META.findall(_text(run / "meta.yaml"))}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_TEXT).decode("utf-8", errors="replace").strip()
    except OSError:
        return ""


def _seconds(text: str | None) -> float:
    try:
        return int(text or 0) / 1000
    except ValueError:
        return 0.0


