"""Speed of reading: ``forensics inspect LOG --json OUT --quiet`` against what a user would run instead, in one run.

Whole processes are measured, start-up and imports included: user + system seconds and peak memory, the median of three.
Ratios are gates for the full sizes; on small logs start-up decides, so theirs are only shown.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
MISSING = 69
REPEATS = 3
LONG = 30.0
"""CPU seconds from which a reference is measured once: its spread is then far below the ratios judged."""
OURS = "from forensics.cli.main import run; run()"


@dataclass(frozen=True, slots=True)
class Case:
    """One log and its references with the least ratio (reference / ours) each must reach. Limits are for the full size."""

    name: str
    kind: str
    small: int
    full: int
    references: tuple[tuple[str, float | None], ...]
    cpu_limit: float | None = None
    memory_limit: float | None = None
    run: str = ""


CASES = (
    Case("TensorBoard, 6 tags", "tensorboard", 33_000, 200_000, (("tbparse", 20.0),)),
    Case("TensorBoard, 6 tags, long", "tensorboard", 0, 1_000_000, (("tbparse", 40.0),), memory_limit=600.0),
    Case("TensorBoard, 300 tags", "tensorboard_tags", 700, 4_000, (("tbparse", 20.0),)),
    Case("W&B, 9 keys", "wandb", 22_000, 1_000_000, (("wandb leet + json", 18.0), ("wandb protobuf", 3.0)), memory_limit=600.0),
    Case("MLflow sqlite, 6 keys", "mlflow_sqlite", 33_000, 100_000, (("MlflowClient (sqlite)", 20.0),)),
    Case("MLflow files, 6 keys", "mlflow_files", 33_000, 100_000, (("MlflowClient (files)", 25.0),)),
    Case("trainer_state.json", "trainer_state", 50_000, 100_000, (("json + numpy", None),), cpu_limit=0.7),
    Case("CSV, 7 columns", "csv", 33_000, 1_000_000, (("polars read_csv", 1 / 1.5),)),
    Case("JSON lines, 7 keys", "jsonl", 33_000, 1_000_000, (("polars read_ndjson", 1 / 1.5),)),
    Case("JSON lines with NaN", "jsonl_nan", 33_000, 1_000_000, (("polars read_ndjson", 1 / 1.5),), run="run"),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Median of whole processes: user + system seconds, peak memory in MiB, and the points they say they read."""

    cpu: float
    memory: float
    points: int
    runs: int


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table. ``passed`` is None where nothing is gated or nothing could be measured."""

    log: str
    steps: int
    points: int
    reference: str
    cpu: float
    memory: float
    reference_cpu: float | None
    reference_memory: float | None
    ratio: float | None
    gate: str
    passed: bool | None
    note: str = ""


class SkippedError(Exception):
    """A package that a writer or a reference needs is not installed."""


class FailedError(Exception):
    """A child ended with an error."""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the logs that are not there yet, measure, print and write the table."""
    options = _arguments().parse_args(argv)
    rows: list[Row] = []
    for case in CASES:
        steps = getattr(case, options.size)
        if steps == 0 or (options.only and not any(word.lower() in case.name.lower() for word in options.only)):
            continue
        found = _case(case, steps, options)
        rows.extend(found)
        for row in found:
            sys.stderr.write(f"{row.log} against {row.reference}: {_ratio(row)} {row.note}\n")
    text = _markdown(rows, options.size)
    sys.stdout.write(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "ingest.md").write_text(text)
        (options.out / "ingest.json").write_text(json.dumps({"machine": _machine(), "size": options.size, "rows": [asdict(r) for r in rows]}, indent=1) + "\n")
    return int(options.gate and any(row.passed is False for row in rows))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ingest", description=__doc__)
    parser.add_argument("--size", choices=("small", "full"), default="small", help="200,000 points a log, or the sizes the gates are for (half an hour)")
    parser.add_argument("--logs", type=Path, default=Path(tempfile.gettempdir(), "forensics-ingest-logs"), help="where the logs are written and kept")
    parser.add_argument("--out", type=Path, help="a folder for ingest.json and ingest.md")
    parser.add_argument("--only", action="append", metavar="WORD", help="only logs with this word in their name; repeatable")
    parser.add_argument("--gate", action="store_true", help="exit with 1 where a gate of the full size fails")
    return parser


def _case(case: Case, steps: int, options: argparse.Namespace) -> list[Row]:
    try:
        folder = _log(case.kind, steps, options.logs)
    except SkippedError as missing:
        return [Row(case.name, steps, 0, "", 0.0, 0.0, None, None, None, "", None, f"skipped: the writer needs {missing}, which is not installed")]
    ours = _ours(folder / case.run)
    rows: list[Row] = []
    gated = options.size == "full"
    for name, least in case.references:
        try:
            other = _reference(name, folder)
        except SkippedError as missing:
            note = f"skipped: {missing} is not installed"
            rows.append(Row(case.name, steps, ours.points, name, ours.cpu, ours.memory, None, None, None, "", None, note))
            continue
        ratio = other.cpu / ours.cpu
        checks = [(_least(least), ratio >= least)] if least is not None else []
        if case.cpu_limit is not None:
            checks.append((f"under {case.cpu_limit:g} s", ours.cpu < case.cpu_limit))
        if case.memory_limit is not None:
            checks.append((f"within {case.memory_limit:g} MiB", ours.memory <= case.memory_limit))
        note = "" if other.points == ours.points else f"the reference read {other.points:,} points"
        passed = all(good for _, good in checks) if gated and checks else None
        gate = ", ".join(text for text, _ in checks)
        rows.append(Row(case.name, steps, ours.points, name, ours.cpu, ours.memory, other.cpu, other.memory, ratio, gate, passed, note))
    return rows


def _least(ratio: float) -> str:
    return f"{ratio:g}x" if ratio >= 1 else f"{1 / ratio:g}x its time"


def _log(kind: str, steps: int, logs: Path) -> Path:
    """The folder of a log, written unless a whole one is there."""
    folder = logs / f"{kind}-{steps}"
    mark = logs / f"{kind}-{steps}.whole"
    if not mark.exists():
        sys.stderr.write(f"writing {folder}\n")
        subprocess.run(["rm", "-rf", str(folder)], check=True)
        folder.mkdir(parents=True)
        _child([sys.executable, "-m", "tests.benchmarks._ingest_logs", kind, str(folder.resolve()), str(steps)])
        mark.touch()
    return folder


def _ours(log: Path) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "inspect.json")
        command = [sys.executable, "-c", OURS, "inspect", str(log.resolve()), "--json", str(out), "--quiet"]
        runs = [_child(command) for _ in range(REPEATS)]
        found = json.loads(out.read_text())
        if found["damage"]:
            raise FailedError(f"damage in a log that has none: {found['damage'][:3]}")
        points = sum(signal["points"] for signal in found["signals"])
    return Cost(median(r.cpu for r in runs), median(r.memory for r in runs), points, len(runs))


def _reference(name: str, folder: Path) -> Cost:
    runs: list[_Spent] = []
    while not runs or (len(runs) < REPEATS and runs[0].cpu < LONG):
        runs.append(_child([sys.executable, "-m", "tests.benchmarks._ingest_references", name, str(folder.resolve())]))
    return Cost(median(r.cpu for r in runs), median(r.memory for r in runs), int(runs[-1].output.split()[-1]), len(runs))


@dataclass(frozen=True, slots=True)
class _Spent:
    cpu: float
    memory: float
    output: str


def _child(command: list[str]) -> _Spent:
    """Run a process to its end: its user + system seconds and peak memory, those of its own children included."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode == MISSING:
        raise SkippedError(text.split()[-1])
    if process.returncode:
        raise FailedError(f"{command}: exit status {process.returncode}\n{text[-2000:]}")
    per_mib = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return _Spent(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / per_mib, text)


def _machine() -> str:
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, load {load:.1f}"


def _markdown(rows: Sequence[Row], size: str) -> str:
    lines = [
        f"Reading speed, {size} logs; {_machine()}. cpu = user + system seconds of the whole process.",
        "",
        "| log | points | cpu s | MiB | instead of | cpu s | MiB | ratio | gate at full size | |",
        "|---|--:|--:|--:|---|--:|--:|--:|---|---|",
    ]
    for row in rows:
        theirs = ("-", "-") if row.reference_cpu is None or row.reference_memory is None else (f"{row.reference_cpu:.2f}", f"{row.reference_memory:.0f}")
        verdict = {True: "pass", False: "FAIL", None: ""}[row.passed]
        remark = "; ".join(filter(None, (verdict, row.note)))
        ours = (row.log, f"{row.points:,}", f"{row.cpu:.2f}", f"{row.memory:.0f}")
        lines.append("| " + " | ".join((*ours, row.reference, *theirs, _ratio(row), row.gate, remark)) + " |")
    return "\n".join(lines) + "\n"


def _ratio(row: Row) -> str:
    return "-" if row.ratio is None else f"{row.ratio:.1f}x" if row.ratio >= 2 else f"{row.ratio:.2f}x"


if __name__ == "__main__":
    sys.exit(main())
