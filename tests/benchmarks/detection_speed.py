"""Cost of detection by the number of points: processor time, memory, and how it grows.

    python -m tests.benchmarks.detection_speed [--repeats N] [--largest POINTS]

Every case runs in a fresh process. The time is that of the processor, the smallest of the repeats; beside it stands what numpy
takes on the same machine at the same moment to sort a signal of as many points and to take its logarithm, because a shared
machine is not always equally fast.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np
from numpy.typing import NDArray

from forensics.detectors import find_incidents
from forensics.model import Run, Signal

EIGHT = ("loss", "val_loss", "grad_norm", "lr", "loss_scale", "step_time", "bs", "epoch")
"""Roles of the signals of a run as wide as most."""

CASES = ((100_000, EIGHT[:1]), (1_000_000, EIGHT[:1]), (10_000_000, EIGHT[:1]), (100_000, EIGHT), (1_000_000, EIGHT))


def make_run(points: int, roles: tuple[str, ...]) -> Run:
    """A falling, noisy run with five spikes in each noisy signal."""
    rng = np.random.default_rng(0)
    steps = np.arange(points, dtype=np.int64)
    return Run("memory", "speed", (), tuple(Signal(role, steps, _values(role, points, rng), role=role) for role in roles))


def _values(role: str, points: int, rng: np.random.Generator) -> NDArray[np.float64]:
    steps = np.arange(points)
    if role == "lr":
        return np.asarray(1.5e-4 * (1.1 + np.cos(np.pi * steps / points)), dtype=np.float64)
    if role == "loss_scale":
        return np.asarray(2.0 ** (16 + (steps // 2000) % 2), dtype=np.float64)
    if role == "bs":
        return np.full(points, 512.0)
    if role == "epoch":
        return np.asarray(steps / 10_000, dtype=np.float64)
    log = 0.03 * rng.standard_normal(points)
    if role != "step_time":
        log += np.log(2 + 8 * (1 + steps / (0.01 * points)) ** -0.7)
    for at in rng.choice(points - 4, 5, replace=False).tolist():
        log[at : at + 4] += 0.5
    return np.exp(log)


def _reference(points: int) -> float:
    """Processor seconds of sorting as many numbers and taking their logarithm."""
    values = np.random.default_rng(1).random(points)
    begin = time.process_time()
    np.sort(values)
    np.log(values)
    return time.process_time() - begin


def measure(points: int, roles: tuple[str, ...]) -> str:
    """One line: seconds of detection, seconds of the reference, peak memory in MiB."""
    run = make_run(points, roles)
    reference = _reference(points)
    begin = time.process_time()
    found = find_incidents(run)
    seconds = time.process_time() - begin
    if found.failed:
        raise RuntimeError(found.failed)
    return f"{seconds} {reference} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--largest", type=int, default=10_000_000, help="leave out cases with more points")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        sys.stdout.write(measure(int(args.one[0]), tuple(args.one[1].split(","))) + "\n")
        return 0
    sys.stdout.write(f"{'points':>10}  signals  cpu s  ns/point  x sort+log  peak MiB\n")
    for points, roles in CASES:
        if points > args.largest:
            continue
        runs = [_child(points, roles) for _ in range(args.repeats)]
        seconds, ratio = min(r[0] for r in runs), min(r[0] / r[1] for r in runs) / len(roles)
        memory = min(r[2] for r in runs)
        sys.stdout.write(f"{points:>10}  {len(roles):>7}  {seconds:>5.2f}  {1e9 * seconds / points / len(roles):>8.0f}  {ratio:>10.1f}  {memory:>8.0f}\n")
        sys.stdout.flush()
    return 0


def _child(points: int, roles: tuple[str, ...]) -> tuple[float, float, float]:
    command = [sys.executable, "-m", "tests.benchmarks.detection_speed", "--one", str(points), ",".join(roles)]
    seconds, reference, memory = map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    return seconds, reference, memory


if __name__ == "__main__":
    sys.exit(main())
