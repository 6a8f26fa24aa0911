"""A run of MLflow's file store: ``<experiment>/<run>/{meta.yaml,metrics/,params/,tags/}``."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.mlflow_sqlite import plain
from forensics.parsers.sink import Sink

NAME = "mlflow_files"

STATUS = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
FOLDERS = ("metrics", "params", "tags")
"""Folders of a run that hold its values, one file each."""
MAX_TEXT = 1 << 16
MAX_FILES = 50_000
SMALL = 1 << 14
"""Bytes up to which a plain loop is faster than importing and starting polars."""

MOST_FIELDS = 6
"""Fields of a line: time, value, step, and the ids of a model and a data set."""

_NUMBER = re.compile(rb"[-+.\d]+(e[-+]?\d+)?")
_META = re.compile(r"^(\w+): *(.*?) *$", re.MULTILINE)


def sniff(source: Source) -> Claim | None:
    """Claim a folder with a run's meta.yaml and a metrics folder."""
    if not source.is_dir:
        return None
    try:
        if not (source.path / "meta.yaml").is_file() or not (source.path / "metrics").is_dir():
            return None
    except OSError:  # a folder that may not be entered: the walk says so
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
    sink.note("finished", status not in {"RUNNING", "SCHEDULED", ""})
    if meta.get("start_time"):
        sink.note("start_time", _seconds(meta["start_time"]))
    sink.config({name: plain(_text(path)) for name, path in _files(source.path / "params", sink)})
    for name, path in _files(source.path / "metrics", sink):
        _metric(name, path, sink)


def _metric(name: str, path: Path, sink: Sink) -> None:
    try:
        data = path.read_bytes()
    except OSError as problem:
        sink.damage(f"{name}: {problem.strerror}", f"the metric {name}")
        return
    sink.progress(len(data))
    if len(data) > SMALL and _read_fast(name, data, sink):
        return
    lines = [(number, line.split()) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    width = min(Counter(len(parts) for _, parts in lines).most_common(1)[0][0], 3) if lines else 0
    rows: list[tuple[int, float, int, int]] = []
    bad: list[int] = []
    for number, parts in lines:
        try:
            if len(parts) != width and not _names_model(parts):
                raise ValueError
            rows.append((int(parts[0]), float(parts[1]), int(parts[2]) if width > 2 else len(rows), number))
        except (ValueError, IndexError):
            bad.append(number)
    if rows and rows[-1][3] == lines[-1][0] and not data.endswith(b"\n") and (width < 3 or (len(rows) > 1 and rows[-1][2] <= rows[-2][2])):
        bad.append(rows.pop()[3])  # the file ends inside a number: 1234 may have become 12
    if bad:
        sink.damage(f"metric {name}: {len(bad)} lines are not `timestamp value step` (first: line {bad[0]})", f"{len(bad)} points of {name}")
    if rows:
        times, values, steps, records = zip(*rows, strict=True)
        try:
            sink.points(name, steps, values, wall_times=np.array(times, dtype=np.float64) / 1000, records=records)
        except OverflowError:
            sink.damage(f"metric {name}: a step does not fit into 64 bits", f"the metric {name}")


def _names_model(parts: list[bytes]) -> bool:
    """Whether what follows the step is a model or data set, as newer stores write them, and not a second line."""
    return MOST_FIELDS >= len(parts) > 3 and not _NUMBER.fullmatch(parts[3])


def _read_fast(name: str, data: bytes, sink: Sink) -> bool:
    """Read three clean columns; False where a line is of any other shape."""
    import polars as pl  # noqa: PLC0415 - costs 0.14 s of import, paid only by large files

    codes = np.frombuffer(data, dtype=np.uint8)  # counts many hits ten times faster than bytes.count
    lines = int(np.count_nonzero(codes == ord("\n")))
    if not data.endswith(b"\n") or int(np.count_nonzero(codes == ord(" "))) != 2 * lines:
        return False
    try:
        frame = pl.read_csv(
            data, separator=" ", has_header=False, quote_char=None, schema={"time": pl.Int64, "value": pl.Float64, "step": pl.Int64}
        )
    except pl.exceptions.PolarsError:
        return False
    if frame.height != lines or sum(frame.null_count().row(0)):
        return False
    time, value, step = (frame[column].to_numpy() for column in frame.columns)
    sink.points(name, step, value, wall_times=time / 1000, records=np.arange(1, lines + 1))
    return True


def _files(root: Path, sink: Sink) -> Iterator[tuple[str, Path]]:
    def unlisted(problem: OSError) -> None:
        sink.damage(f"{problem.filename} cannot be listed ({problem.strerror})", "everything in it")

    count = 0
    for folder, folders, files in os.walk(root, onerror=unlisted if root.exists() else None):
        folders.sort()
        for file in sorted(files):
            count += 1
            if count > MAX_FILES:
                sink.damage(f"more than {MAX_FILES} files in {root.name}", "the files past that number")
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


