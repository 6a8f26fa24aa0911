"""A loop of nanoGPT's shape, and its recipe: same batches, same losses to the last bit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="recipes need PyTorch")

from forensics.flight.reading import OtherBatchError  # noqa: E402
from forensics.recorder import FlightRecorder  # noqa: E402
from forensics.replay.recipes.nanogpt import NanoGPTRecipe  # noqa: E402

SETTINGS: dict[str, Any] = {
    "seed": 1337, "batch_size": 4, "block_size": 8, "eval_interval": 10, "eval_iters": 3, "learning_rate": 1e-2, "min_lr": 1e-3,
    "warmup_iters": 5, "lr_decay_iters": 40, "grad_clip": 1.0, "dtype": "float32",
}  # fmt: skip


class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
    """What nanoGPT's model looks like from outside: (logits, loss)."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.drop, self.head = torch.nn.Embedding(64, 16), torch.nn.Identity(), torch.nn.Linear(16, 64)

    def forward(self, inputs: Any, targets: Any = None) -> Any:
        logits = self.head(self.wte(inputs))
        return logits, torch.nn.functional.cross_entropy(logits.view(-1, 64), targets.view(-1), ignore_index=-1)


@dataclass(frozen=True)
class Trained:
    folder: Path
    seen: Mapping[int, list[tuple[Any, Any]]]
    logged: Mapping[int, tuple[float, float, float]]
    settings: Mapping[str, Any]

    def recipe(self, **more: Any) -> NanoGPTRecipe:
        context = SimpleNamespace(run_dir=self.folder, config=dict(self.settings), device="cpu")
        return NanoGPTRecipe(context, model=Model, data=self.folder, **more)


def rate(step: int) -> float:
    if step < 5:
        return 1e-2 * (step + 1) / 6
    return 1e-3 + 0.5 * (1.0 + math.cos(math.pi * (step - 5) / 35)) * 9e-3


@pytest.fixture(scope="module", params=[1, 2])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("nanogpt")
    accumulation = request.param
    rng = np.random.default_rng(0)
    rng.integers(0, 64, 500).astype(np.uint16).tofile(folder / "train.bin")
    rng.integers(0, 64, 100).astype(np.uint16).tofile(folder / "val.bin")
    torch.manual_seed(1337)

    def get_batch(split: str) -> tuple[Any, Any]:
        data = np.memmap(folder / f"{split}.bin", dtype=np.uint16, mode="r")
        ix = torch.randint(len(data) - 8, (4,))
        x = torch.stack([torch.from_numpy(data[i : i + 8].astype(np.int64)) for i in ix])
        y = torch.stack([torch.from_numpy(data[i + 1 : i + 9].astype(np.int64)) for i in ix])
        return x, y

    model = Model()
    recipe = NanoGPTRecipe(SimpleNamespace(run_dir=folder, config=SETTINGS, device="cpu"), model=Model, data=folder)  # type: ignore[arg-type]
    optimizer = recipe._own_optimizer(model)
    seen: dict[int, list[tuple[Any, Any]]] = {}
    logged: dict[int, tuple[float, float, float]] = {}
    recorder = FlightRecorder(folder, endings=False)
    x, y = get_batch("train")
    for step in range(35):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        if step % 10 == 0:
            for split in ("train", "val"):
                for _ in range(3):
                    get_batch(split)
            saved = {"model": {f"_orig_mod.{k}": v.clone() for k, v in model.state_dict().items()}, "optimizer": optimizer.state_dict(), "iter_num": step}
            torch.save(saved, folder / f"ckpt{step}.pt")
        total = 0.0
        for _ in range(accumulation):
            recorder.begin(step, (x, y))
            seen.setdefault(step, []).append((x, y))
            loss = model(x, y)[1] / accumulation
            x, y = get_batch("train")
            loss.backward()
            total += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        recorder.end(loss=total, grad_norm=norm)
        logged[step] = (total, norm.item(), rate(step))
    recorder.close()
    return Trained(folder, seen, logged, {**SETTINGS, "gradient_accumulation_steps": accumulation})


def test_another_seed_is_noticed(run: Trained) -> None:
    with pytest.raises(OtherBatchError):
        run.recipe(seed=1).batch(0)


def test_another_checkpoint_is_refused(run: Trained, tmp_path: Path) -> None:
    made = run.recipe()
    torch.save({"state_dict": {}}, tmp_path / "ckpt.pt")
    with pytest.raises(ValueError, match="iter_num"):
        made.load(*made.build(), tmp_path / "ckpt.pt")
    with pytest.raises(ValueError, match="before step 20"):
        run.recipe(first=20).batch(3)


def test_the_batches_are_those_of_the_run(run: Trained) -> None:
    made = run.recipe()
    for step, parts in run.seen.items():
        batch = made.batch(step)
        found = batch if isinstance(batch, list) else [batch]
        assert all(torch.equal(a, b) for one, other in zip(found, parts, strict=True) for a, b in zip(one, other, strict=True))
        assert made.flight.check(step, batch)
    starts = made.sample_ids(12)
    data = np.memmap(run.folder / "train.bin", dtype=np.uint16, mode="r")
    assert run.seen[12][0][0][1].tolist() == data[starts[1] : starts[1] + 8].tolist()


def test_a_replay_gives_the_same_numbers(run: Trained) -> None:
    made = run.recipe()
    model, optimizer = made.build()
    first = made.load(model, optimizer, run.folder / "ckpt20.pt")
    assert first == 20
    exact = made.micro_batches == 1
    for step in range(first, 35):
        for group in optimizer.param_groups:
            group["lr"] = made.lr(step)
        optimizer.zero_grad()
        loss = made.loss(model, made.batch(step))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), made.clip)
        optimizer.step()
        expected = run.logged[step]
        assert made.lr(step) == pytest.approx(expected[2], rel=1e-12)
        assert loss.item() == (expected[0] if exact else pytest.approx(expected[0], rel=1e-5))
        assert norm.item() == (expected[1] if exact else pytest.approx(expected[1], rel=1e-4))
    assert made.losses(model, made.batch(3)).mean().item() == pytest.approx(made.loss(model, made.batch(3)).item(), rel=1e-5)
