"""Train a labelled set of runs: python -m tests.benchmarks.lab --out DIR --seed S --runs N [--mix tune|holdout]

Writes DIR/labels.json (the format of ``forensics bench``) and one folder per run. Three of five runs are healthy. Every faulty
run is trained twice, with and without the fault, to tell whether the fault left a trace. Needs PyTorch; one thread, no network.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.benchmarks.lab.labelled import make_run, plan
from tests.benchmarks.lab.recipes import MIXES


def main() -> int:
    """Make the set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=120)
    parser.add_argument("--mix", choices=sorted(MIXES), default="tune")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    kinds = plan(args.runs, args.seed)
    labels = []
    with ProcessPoolExecutor(args.jobs, get_context("spawn")) as pool:
        for label in pool.map(partial(make_run, args.out, args.seed, args.mix), range(args.runs), kinds):
            labels.append(label)
            label["id"] = f"{label['id']}-{label['fault'].get('kind', 'clean')}"  # type: ignore[attr-defined]
            sys.stdout.write(f"{label['id']:32} {label['trained']} visible {label['visible']} onset {label['onset']}\n")
            sys.stdout.flush()
    (args.out / "labels.json").write_text(json.dumps(labels, indent=1))
    sys.stdout.write(f"{len(labels)} runs in {time.monotonic() - begin:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
