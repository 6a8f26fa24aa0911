"""What a replay costs beside the plain training step: R1 per step, and the microscope for one step.

    python -m tests.benchmarks.replay [--device cpu|cuda] [--steps N]

A small GPT (4 layers, width 128, context 128, batch 8) is trained by a plain loop and by a replay session in turn; the times
are the best of the repeats, and the ratios gate: 1.3 for a step of R1, 3 for the microscope.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from forensics.replay.child import microscope
from forensics.replay.child.session import Session
from forensics.replay.child.user import Recipe
from forensics.replay.wire import Request, State, Target

STEP_GATE, MICROSCOPE_GATE = 1.3, 3.0
REPEATS = 5


class Block(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj, self.up, self.down = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = (z.view(b, t, 4, d // 4).transpose(1, 2) for z in self.qkv(self.ln1(x)).split(d, 2))
        att = (q @ k.transpose(-2, -1) / math.sqrt(d // 4)).masked_fill(torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1), float("-inf"))
        x = x + self.proj((att.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.down(nn.functional.gelu(self.up(self.ln2(x))))


class Gpt:
    """A recipe."""

    clip = 1.0

    def build(self) -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(512, 128), *(Block(128) for _ in range(4)), nn.Linear(128, 512))
        return model, torch.optim.AdamW(model.parameters(), lr=1e-3)

    def batch(self, step: int) -> torch.Tensor:
        return torch.randint(0, 512, (8, 129), generator=torch.Generator().manual_seed(step))

    def loss(self, model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    def lr(self, step: int) -> float:  # noqa: ARG002 - a recipe
        return 1e-3


def main() -> int:
    """Measure and print; 1 where a gate is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    torch.set_num_threads(1)
    recipe = Gpt()
    request = Request("", "", "", {}, args.device, Target("none", "loss", 0, args.steps), State("", 0), args.steps)
    session = Session(Recipe(recipe), request)
    start = session.snapshot(0)
    model, optimizer = recipe.build()
    model.to(args.device)

    def plain() -> None:
        for step in range(args.steps):
            loss = recipe.loss(model, recipe.batch(step).to(args.device))
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            loss.item(), norm.item()

    def replayed() -> None:
        for step in range(args.steps):
            session.take(step)

    def looked() -> None:
        microscope.look(session, start)

    times = {name: [] for name in ("plain", "replayed", "looked")}
    session.put(start)
    for work in (plain, replayed, looked):
        work()
    for _ in range(REPEATS):
        for name, work in (("plain", plain), ("replayed", replayed), ("looked", looked)):
            times[name].append(_seconds(work, args.device))
    step = min(times["plain"]) / args.steps
    rows = [
        ("plain step", step, None),
        ("step of R1", min(times["replayed"]) / args.steps, STEP_GATE),
        ("microscope", min(times["looked"]), MICROSCOPE_GATE),
    ]
    missed = False
    print(f"device {args.device}, PyTorch {torch.__version__}\n{'':<14}{'ms':>9}{'ratio':>8}{'gate':>7}")
    for name, seconds, gate in rows:
        ratio = seconds / step
        missed |= gate is not None and ratio > gate
        print(f"{name:<14}{1000 * seconds:>9.2f}{ratio:>8.2f}{'' if gate is None else f'{gate:g}':>7}")
    return int(missed)


def _seconds(work: Callable[[], None], device: str) -> float:
    clock = time.perf_counter if device.startswith("cuda") else time.process_time
    began = clock()
    work()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return clock() - began


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    sys.exit(main())
