"""``python -m tests.fuzz.run --cases 100000 --seed 1 [--seconds N] [--case N]``: damage real logs and read them.

A case is its seed and number alone, so that each failure can be run again by itself.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from forensics.model import Damage, Run
from forensics.parsers.discovery import discover
from forensics.parsers.reading import read
from tests.fuzz.mutations import mutate
from tests.fuzz.samples import Sample, samples

SAYING = frozenset({"null_values", "rows_without_step", "header_repeated", "lines_not_used", "step_axis", "deleted_runs", "tensorboard_skipped"})
"""Notes that say that something written is not among the points."""
MOST_SHOWN = 40

Point = tuple[str, float]


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a log: its points as (name, value), and whether anything was said to be lost."""

    points: Counter[Point]
    damage: tuple[Damage, ...]
    noted: bool
    formats: frozenset[str]


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that broke a rule."""

    case: int
    sample: Sample
    done: str
    why: str

    def __str__(self) -> str:
        return f"case {self.case}: {self.sample.format} {self.sample.folder.name}/{self.sample.file} ({self.done}): {self.why}"


@dataclass(slots=True)
class Bench:
    """The samples, read once whole, and a folder to damage copies in."""

    folder: Path
    seed: int
    all: tuple[Sample, ...] = ()
    data: list[bytes] = field(default_factory=list)
    whole: list[Reading] = field(default_factory=list)
    known: dict[str, set[Point]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.all = samples(self.folder / "made")
        for number, sample in enumerate(self.all):
            self.data.append((sample.folder / sample.file).read_bytes())
            place = self._place(number)
            if not place.exists():
                shutil.copytree(sample.folder, place)
            reading = _read(place / sample.target)
            assert reading.points, sample
            assert not any("failed" in damage.what for damage in reading.damage), reading.damage
            self.whole.append(reading)
            self.known.setdefault(sample.format, set()).update(reading.points)

    def _place(self, number: int) -> Path:
        return self.folder / f"sample-{number}" / self.all[number].folder.name

    def run(self, case: int) -> Failure | None:
        """Damage one sample and judge what is read of it."""
        chance = random.Random(f"{self.seed}-{case}")
        kind = chance.choice(sorted(self.known))
        number = chance.choice([place for place, sample in enumerate(self.all) if sample.format == kind])
        sample = self.all[number]
        done, broken = mutate(self.data[number], chance, self.data)
        place = self._place(number)
        (place / sample.file).write_bytes(broken)
        try:
            reading = _read(place / sample.target)
        except Exception:  # noqa: BLE001 - that is what is looked for
            return Failure(case, sample, done, traceback.format_exc(limit=-4))
        why = self._judge(sample, self.whole[number], reading, broken)
        return Failure(case, sample, done, why) if why else None

    def _judge(self, sample: Sample, whole: Reading, reading: Reading, broken: bytes) -> str:
        raised = [damage.what for damage in reading.damage if "the parser failed" in damage.what or "parser failed on its head" in damage.what]
        if raised:
            return raised[0]
        total, possible = reading.points.total(), len(broken) // sample.least if sample.least else whole.points.total()
        if total > max(possible, 0) + (whole.points.total() if sample.format == "mlflow_files" else 0):
            return f"{total} points in {len(broken)} bytes"
        if sample.sealed and reading.formats <= {sample.format} and (invented := set(reading.points) - self.known[sample.format]):
            return f"{len(invented)} points that no file holds: {sorted(invented)[:3]}"
        lost = whole.points.total() - total
        # Without a single point the commands end with an error that says so.
        silent = lost > 0 and total > 0 and not reading.damage and not reading.noted
        if silent and sample.whole is not None and not sample.whole(broken):
            return f"{lost} of {whole.points.total()} points lost in silence"
        return ""


def _read(path: Path) -> Reading:
    found = discover(path)
    runs = [read(run) for run in found.runs]
    points: Counter[Point] = Counter()
    for run in runs:
        points.update(_points(run))
    damage = (*found.damage, *(d for run in runs for d in run.damage))
    return Reading(points, damage, any(SAYING & set(run.notes) for run in runs), frozenset(source.format for run in runs for source in run.sources))


def _points(run: Run) -> Counter[Point]:
    out: Counter[Point] = Counter()
    for signal in run.signals:
        assert len(signal.steps) == len(signal.values)
        assert signal.wall_times is None or len(signal.wall_times) == len(signal.steps)
        values = np.where(np.isnan(signal.values), 1e308, signal.values) if signal.values.dtype == np.float64 else signal.values
        out.update((signal.name, value) for value in values.tolist())
    return out


def fuzz(cases: range, seed: int, seconds: float | None = None, folder: Path | None = None) -> tuple[int, list[Failure], float]:
    """Run cases: how many were run, the failures, and the seconds of the slowest one."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        bench = Bench(Path(scratch), seed)
        began = time.monotonic()
        failures: list[Failure] = []
        slowest = 0.0
        for done, case in enumerate(cases):
            start = time.monotonic()
            if seconds is not None and start - began > seconds:
                return done, failures, slowest
            failure = bench.run(case)
            slowest = max(slowest, time.monotonic() - start)
            if failure is not None:
                failures.append(failure)
                if len(failures) <= MOST_SHOWN:
                    sys.stdout.write(f"{failure}\n")
                    sys.stdout.flush()
        return len(cases), failures, slowest


def main(argv: Sequence[str] | None = None) -> int:
    """Run and report; 1 where a case failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="stop after so many seconds")
    parser.add_argument("--case", type=int, help="run one case again")
    options = parser.parse_args(argv)
    cases = range(options.cases) if options.case is None else range(options.case, options.case + 1)
    done, failures, slowest = fuzz(cases, options.seed, options.seconds)
    kinds = Counter(failure.sample.format for failure in failures)
    sys.stdout.write(f"{done} cases with seed {options.seed}, {len(failures)} failed {dict(kinds) or ''}, slowest {slowest:.2f} s\n")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
