"""A real run of Hugging Face's Trainer, and its recipe: same batches, same losses to the last bit, through an epoch's end and dropout."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="recipes need PyTorch")
transformers = pytest.importorskip("transformers", reason="the recipe for Hugging Face's Trainer needs transformers")
pytest.importorskip("accelerate", reason="the recipe for Hugging Face's Trainer needs accelerate")

from forensics.flight.huggingface import watch  # noqa: E402
from forensics.flight.reading import OtherBatchError  # noqa: E402
from forensics.loading import load  # noqa: E402
from forensics.recorder import FlightRecorder  # noqa: E402
from forensics.replay.recipes.huggingface import HuggingFaceRecipe, read_arguments  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@dataclass(frozen=True)
class Trained:
    folder: Path
    seen: Mapping[int, list[Mapping[str, Any]]]
    logged: Mapping[int, Mapping[str, float]]


def rows(seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    tokens = [torch.from_numpy(rng.integers(0, 64, 12)) for _ in range(50)]
    return [{"input_ids": row, "labels": row} for row in tokens]


def trained(folder: Path, accumulation: int) -> Trained:
    torch.set_num_threads(1)
    transformers.set_seed(7)
    config = transformers.GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    args = transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=4,
        gradient_accumulation_steps=accumulation,
        max_steps=20,
        logging_steps=1,
        save_steps=10,
        learning_rate=1e-2,
        warmup_steps=5,
        lr_scheduler_type="cosine",
        seed=7,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(model=transformers.GPT2LMHeadModel(config), args=args, train_dataset=rows())
    seen: dict[int, list[Mapping[str, Any]]] = {}
    plain = trainer.training_step

    def step(model: Any, inputs: Any, *rest: Any, **more: Any) -> Any:
        seen.setdefault(trainer.state.global_step + 1, []).append({k: v.clone() for k, v in inputs.items()})
        return plain(model, inputs, *rest, **more)

    trainer.training_step = step
    watch(trainer, FlightRecorder(folder))
    trainer.train()
    history = json.loads((folder / "checkpoint-20/trainer_state.json").read_text())["log_history"]
    return Trained(folder, seen, {row["step"]: row for row in history if "loss" in row})


@pytest.fixture(scope="module", params=[1, 3])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return trained(tmp_path_factory.mktemp("hf"), request.param)


def recipe(run: Trained, **more: Any) -> HuggingFaceRecipe:
    context = SimpleNamespace(run_dir=run.folder, config={}, device="cpu")
    return HuggingFaceRecipe(context, **(more or {"dataset": rows()}))  # type: ignore[arg-type]


def test_other_data_is_noticed(run: Trained) -> None:
    with pytest.raises(OtherBatchError, match="step 3"):
        recipe(run, dataset=rows(seed=1)).batch(3)


def test_without_data_it_says_what_to_give(run: Trained) -> None:
    with pytest.raises(ValueError, match="dataset="):
        recipe(run, collator=None)


def test_arguments_are_read_without_running_anything(tmp_path: Path, run: Trained) -> None:
    found = read_arguments(run.folder)
    assert (found["learning_rate"], found["lr_scheduler_type"], found["seed"]) == (1e-2, "cosine", 7)

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "touched",))

    folder = tmp_path / "checkpoint-1"
    folder.mkdir()
    torch.save(SimpleNamespace(seed=1, evil=Evil()), folder / "training_args.bin", pickle_module=pickle)
    assert read_arguments(tmp_path) == {"seed": 1}
    assert not (tmp_path / "touched").exists()


def test_the_batches_are_those_of_the_run(run: Trained) -> None:
    made = recipe(run)
    for step, parts in run.seen.items():
        batch = made.batch(step)
        found = batch if isinstance(batch, list) else [batch]
        assert len(found) == len(parts)
        for one, other in zip(found, parts, strict=True):
            assert {k: v.tolist() for k, v in one.items()} == {k: v.tolist() for k, v in other.items()}
        assert made.flight.check(step, batch)
        assert len(made.sample_ids(step)) == sum(len(part["labels"]) for part in parts)


def test_a_replay_gives_the_same_numbers(run: Trained) -> None:
    made = recipe(run)
    model, optimizer = made.build()
    first = made.load(model, optimizer, run.folder / "checkpoint-10")
    assert (first, made.notes) == (11, [])
    exact = made.micro_batches == 1  # the order of a sum of gradients is another one
    for step in range(first, 21):
        for group in optimizer.param_groups:
            group["lr"] = made.lr(step)
        made.before(step)
        optimizer.zero_grad()
        loss = made.loss(model, made.batch(step))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), made.clip)
        optimizer.step()
        row = run.logged[step]
        assert made.lr(step) == row["learning_rate"]
        assert loss.item() == (row["loss"] if exact else pytest.approx(row["loss"], rel=1e-5))
        assert norm.item() == (row["grad_norm"] if exact else pytest.approx(row["grad_norm"], rel=1e-4))


def test_every_sample_has_its_loss(run: Trained) -> None:
    made = recipe(run)
    model, _ = made.build()
    model.eval()
    batch = made.batch(2)
    losses = made.losses(model, batch)
    assert losses.shape == (4 * made.micro_batches,)
    assert losses.mean().item() == pytest.approx(made.loss(model, batch).item(), rel=1e-5)


def test_the_recorder_agrees_with_the_log(run: Trained) -> None:
    signals = {s.name: s for s in load(run.folder).signals}
    assert signals["loss"].steps.tolist() == list(range(1, 21))
    assert signals["loss"].values.tolist() == pytest.approx([run.logged[s]["loss"] for s in range(1, 21)], rel=1e-6)
    assert signals["grad_norm"].values.tolist() == [run.logged[s]["grad_norm"] for s in range(1, 21)]
    assert signals["lr"].values.tolist() == [run.logged[s]["learning_rate"] for s in range(1, 21)]
