"""Speed of reading checkpoints, beside PyTorch on the same file.

    python -m tests.benchmarks.checkpoints [--megabytes 1000] [--repeats 5]

A training state of an AdamW run is written by PyTorch into a temporary folder. Every row is the processor time (user and
system) of a whole new process, imports included, median of the repeats; the file is in the page cache. The reference
answers the same question: step and learning rates, or the L2 norm and the number of non-finite elements of every tensor.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

WRITE = """
import sys, torch
torch.set_num_threads(1)
torch.manual_seed(0)
layers = max(1, round(float(sys.argv[2]) * 1e6 / 12 / (12 * 768 * 768)))
block = lambda: torch.nn.ModuleDict(dict(
    norm=torch.nn.LayerNorm(768), qkv=torch.nn.Linear(768, 2304), out=torch.nn.Linear(768, 768),
    up=torch.nn.Linear(768, 3072), down=torch.nn.Linear(3072, 768)))
model = torch.nn.ModuleDict(dict(tokens=torch.nn.Embedding(256, 768), blocks=torch.nn.ModuleList(block() for _ in range(layers))))
matrices, vectors = [p for p in model.parameters() if p.ndim > 1], [p for p in model.parameters() if p.ndim < 2]
optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}], lr=3e-4)
for p in model.parameters():
    p.grad = torch.randn_like(p) * 1e-3
optimizer.step()
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
torch.save({"step": 1, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": schedule.state_dict(),
            "rng": torch.get_rng_state()}, sys.argv[1])
"""

TORCH_FACTS = """
import sys, torch
state = torch.load(sys.argv[1], mmap=True, weights_only=True)
print(state["step"], [g["lr"] for g in state["optimizer"]["param_groups"]], state["scheduler"]["last_epoch"])
"""

TORCH_NORMS = """
import sys, torch
torch.set_num_threads(2)
state = torch.load(sys.argv[1], mmap=True, weights_only=True)
tensors = [*state["model"].values(), *(t for s in state["optimizer"]["state"].values() for t in s.values())]
print(sum(float(t.norm()) for t in tensors), sum(int((~torch.isfinite(t)).sum()) for t in tensors))
"""

OURS = "import sys; from forensics.cli.main import main; sys.exit(main(['inspect', sys.argv[1], '--quiet', '--json', '-', *sys.argv[2:]]))"


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds, seconds on the clock, and the largest resident memory in MiB, of one process."""

    cpu: float
    wall: float
    memory: float


def measure(code: str, *arguments: str, repeats: int) -> Cost:
    """The median cost of a process that runs ``code``. Raises CalledProcessError where it fails."""
    runs = [_once(code, *arguments) for _ in range(repeats)]
    return Cost(statistics.median(r.cpu for r in runs), statistics.median(r.wall for r in runs), statistics.median(r.memory for r in runs))


def _once(code: str, *arguments: str) -> Cost:


    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, code)
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - began, usage.ru_maxrss / 1024)


def main() -> None:
    """Write the checkpoint, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    if find_spec("torch") is None:
        print("PyTorch is not installed: nothing to compare with (pip install torch)")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.pt"
        subprocess.run([sys.executable, "-c", WRITE, str(path), str(args.megabytes)], check=True)
        print(f"checkpoint of {path.stat().st_size / 1e6:,.0f} MB; processor seconds of a whole process, median of {args.repeats}")
        print(f"{'question':<34}{'PyTorch':>9}{'forensics':>11}{'ratio':>7}{'MiB':>7}{'MiB':>7}")
        for question, theirs, ours in (
            ("step, learning rates, scheduler", TORCH_FACTS, ("--no-norms",)),
            ("norms and non-finite elements", TORCH_NORMS, ("--norms",)),
        ):
            a, b = measure(theirs, str(path), repeats=args.repeats), measure(OURS, str(path), *ours, repeats=args.repeats)
            print(f"{question:<34}{a.cpu:>9.2f}{b.cpu:>11.2f}{a.cpu / b.cpu:>6.1f}x{a.memory:>7.0f}{b.memory:>7.0f}")


if __name__ == "__main__":
    main()
