"""A real run of Lightning, and its recipe: same batches, same losses to the last bit, through an epoch's end."""

# ruff: noqa: ARG002 - the hooks have Lightning's signatures
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="recipes need PyTorch")
L = pytest.importorskip("lightning", reason="the recipe for Lightning needs lightning")

from forensics.flight.lightning import recording  # noqa: E402
from forensics.flight.reading import OtherBatchError  # noqa: E402
from forensics.recorder import FlightRecorder  # noqa: E402
from forensics.replay.recipes.lightning import LightningRecipe  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

STEPS = 30


class Module(L.LightningModule):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1))

    def training_step(self, batch: Any, _: int) -> Any:
        loss = torch.nn.functional.mse_loss(self.net(batch[0])[:, 0], batch[1])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: Any, _: int) -> None:
        pass

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS), "interval": "step"}}


class Data(L.LightningDataModule):  # type: ignore[misc, name-defined]
    def __init__(self, own: bool, seed: int = 3) -> None:
        super().__init__()
        self.own, self.seed = own, seed

    def setup(self, stage: str) -> None:
        x = torch.randn(50, 8, generator=torch.Generator().manual_seed(self.seed))
        self.data = torch.utils.data.TensorDataset(x, x.sum(1))

    def train_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(self.data, 4, shuffle=True, generator=torch.Generator().manual_seed(5) if self.own else None)

    def val_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(self.data, 25)


class Seeing(L.Callback):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        self.seen: dict[int, list[Any]] = {}

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self.seen.setdefault(trainer.global_step, []).append([tensor.clone() for tensor in batch])


@dataclass(frozen=True)
class Trained:
    folder: Path
    seen: Mapping[int, list[Any]]
    own: bool
    accumulate: int

    def recipe(self, seed: int = 3) -> LightningRecipe:
        L.seed_everything(1, verbose=False)
        context = SimpleNamespace(run_dir=self.folder, config={}, device="cpu")
        return LightningRecipe(context, module=Module(), datamodule=Data(self.own, seed), clip=1.0, accumulate=self.accumulate)


@pytest.fixture(scope="module", params=[(True, 1), (False, 1), (True, 3)], ids=["own-generator", "global-generator", "accumulated"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("lightning")
    torch.set_num_threads(1)
    own, accumulate = request.param
    L.seed_everything(1, verbose=False)
    seeing, module, data = Seeing(), Module(), Data(own)
    saving = L.pytorch.callbacks.ModelCheckpoint(folder / "checkpoints", every_n_train_steps=10, save_top_k=-1, filename="{step}")
    L.Trainer(
        max_steps=STEPS,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
        accumulate_grad_batches=accumulate,
        callbacks=[seeing, recording(FlightRecorder(folder)), saving],
    ).fit(module, datamodule=data)
    return Trained(folder, seeing.seen, own, accumulate)


def test_other_data_is_noticed(run: Trained) -> None:
    with pytest.raises(OtherBatchError, match="step 3"):
        run.recipe(seed=4).batch(3)


def test_a_checkpoint_of_weights_alone_is_refused(run: Trained, tmp_path: Path) -> None:
    made = run.recipe()
    torch.save({"state_dict": {}, "global_step": 3}, tmp_path / "weights.ckpt")
    with pytest.raises(ValueError, match="optimizer"):
        made.load(*made.build(), tmp_path / "weights.ckpt")
    torch.save({"weights": {}}, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match="no checkpoint of Lightning"):
        made.load(*made.build(), tmp_path / "other.ckpt")


def test_several_optimizers_are_refused() -> None:
    class Two(Module):
        def configure_optimizers(self) -> Any:
            return [torch.optim.SGD(self.parameters()), torch.optim.SGD(self.parameters())]

    with pytest.raises(ValueError, match="2 optimizers"):
        LightningRecipe(SimpleNamespace(run_dir=Path(), config={}, device="cpu"), module=Two(), datamodule=Data(True)).build()  # type: ignore[arg-type]


def test_the_batches_are_those_of_the_run(run: Trained) -> None:
    made = run.recipe()
    assert len(run.seen) == STEPS
    for step, parts in run.seen.items():
        if not run.own and step >= 13:  # dropout has moved the generator that shuffles: said, not guessed
            with pytest.raises(OtherBatchError):
                made.batch(step)
            continue
        batch = made.batch(step)
        found = [batch] if run.accumulate == 1 else batch
        assert len(found) == len(parts)
        assert all(torch.equal(a, b) for one, other in zip(found, parts, strict=True) for a, b in zip(one, other, strict=True))
        assert made.flight.check(step, batch)
    assert bool(made.notes) != run.own


def test_a_replay_gives_the_same_numbers(run: Trained) -> None:
    made = run.recipe()
    model, optimizer = made.build()
    first = made.load(model, optimizer, run.folder / "checkpoints/step=10.ckpt")
    assert first == 10
    exact = run.accumulate == 1  # the order of a sum of gradients is another one
    for step in range(first, STEPS if run.own else 13):
        for group in optimizer.param_groups:
            group["lr"] = made.lr(step)
        made.before(step)
        optimizer.zero_grad()
        loss = made.loss(model, made.batch(step))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), made.clip)
        optimizer.step()
        row = made.flight.steps[step].values
        assert made.lr(step) == row["lr"]
        assert loss.item() == (row["loss"] if exact else pytest.approx(row["loss"], rel=1e-5))
        assert norm.item() == (row["grad_norm"] if exact else pytest.approx(row["grad_norm"], rel=1e-4))
    model.eval()
    assert made.losses(model, made.batch(3)).mean().item() == pytest.approx(made.loss(model, made.batch(3)).item(), rel=1e-5)
