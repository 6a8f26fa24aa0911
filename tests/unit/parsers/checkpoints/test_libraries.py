"""Checkpoints that libraries wrote (fixtures/checkpoints), against what the libraries said of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from forensics.model import TensorKind
from forensics.parsers.checkpoints.beside import checkpoints_of
from forensics.parsers.checkpoints.reading import is_checkpoint, looks_like_checkpoint, read
from forensics.parsers.checkpoints.stats import measure

FIXTURES = Path(__file__).parents[4] / "fixtures" / "checkpoints"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())
OURS = {"gpt2": "gpt2/checkpoint-3", "llama": "llama/checkpoint-3", "accelerate": "accelerate", "lightning": "lightning.ckpt"}


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURES / "sharded", tmp_path / "sharded"))


def test_a_missing_shard_is_damage_and_the_others_are_read(shards: Path) -> None:
    (shards / "model-00002-of-00002.safetensors").unlink()
    found = read(shards)
    assert any("none of its shards" in d.what for d in found.damage)
    assert 0 < len(found.tensors) < len(EXPECTED["sharded"])


def test_a_shard_that_is_a_pointer_is_damage(shards: Path) -> None:
    (shards / "model-00001-of-00002.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    assert any("git lfs pull" in d.what for d in read(shards).damage)


@pytest.mark.parametrize("text", ["{", "[]", '{"weight_map": 3}', '{"weight_map": {"a": "../../secret.safetensors"}}'])
def test_an_index_that_is_wrong_is_damage(shards: Path, text: str) -> None:
    (shards.parent / "secret.safetensors").write_bytes((shards / "model-00001-of-00002.safetensors").read_bytes())
    (shards.parents[1] / "secret.safetensors").write_bytes((shards / "model-00001-of-00002.safetensors").read_bytes())
    (shards / "model.safetensors.index.json").write_text(text)
    found = read(shards)
    assert found.damage
    assert found.tensors == ()


@pytest.mark.parametrize("cut", [0, 4, 9, 500, 1500])
def test_a_torn_shard(shards: Path, cut: int) -> None:
    path = shards / "model-00001-of-00002.safetensors"
    path.write_bytes(path.read_bytes()[:cut])
    found = read(shards)
    measure(found)
    assert found.damage


@pytest.mark.parametrize("name", OURS)
def test_moments_have_the_names_that_the_library_gives_them(name: str) -> None:
    found = read(FIXTURES / OURS[name])
    assert not found.damage
    stats = measure(found).stats
    assert {t.name for t in found.tensors if t.kind is TensorKind.EXP_AVG} == set(EXPECTED[name])
    for parameter, (exp_avg, exp_avg_sq, norm) in EXPECTED[name].items():
        assert stats[parameter, TensorKind.EXP_AVG].norm == pytest.approx(exp_avg, rel=1e-5)
        assert stats[parameter, TensorKind.EXP_AVG_SQ].norm == pytest.approx(exp_avg_sq, rel=1e-5)
        assert stats[parameter, TensorKind.PARAM].norm == pytest.approx(norm, rel=1e-5)


def test_a_sharded_model() -> None:
    found = read(FIXTURES / "sharded")
    stats = measure(found).stats
    assert {t.name: pytest.approx(stats[t.name, t.kind].norm, rel=1e-5) for t in found.tensors} == EXPECTED["sharded"]
    assert len({t.location[0].path for t in found.tensors}) == 2


def test_facts_of_the_trainer() -> None:
    found = read(FIXTURES / "gpt2" / "checkpoint-3")
    assert (found.format, found.step, found.step_from, found.optimizer_steps) == ("hugging face", 3, "trainer_state.global_step", (3, 3))
    assert found.rng == ("python", "numpy", "cpu")
    assert found.scheduler is not None
    assert found.scheduler["last_epoch"] == 3
    assert [(g.weight_decay, len(g.params)) for g in found.param_groups] == [(0.1, 10), (0.0, 18)]
    assert found.findings == ()


def test_facts_of_lightning() -> None:
    found = read(FIXTURES / "lightning.ckpt")
    assert (found.step, found.step_from, found.optimizer_steps) == (5, "global_step", (5, 5))
    assert found.facts["epoch"] == 1
    assert found.loader is not None
    assert found.scheduler is not None


def test_facts_of_accelerate() -> None:
    found = read(FIXTURES / "accelerate")
    assert (found.format, found.step, found.optimizer_steps) == ("accelerate", 4, (4, 4))
    assert found.rng == ("random_state", "numpy_random_seed", "torch_manual_seed")


def test_a_folder_is_one_checkpoint() -> None:
    assert is_checkpoint(FIXTURES / "gpt2" / "checkpoint-3")
    assert not is_checkpoint(FIXTURES / "gpt2")
    assert [Path(c.path).name for c in checkpoints_of(FIXTURES / "gpt2")] == ["checkpoint-3"]


def test_the_folder_of_a_run_is_a_run_even_with_a_model_in_it(tmp_path: Path) -> None:
    out = Path(shutil.copytree(FIXTURES / "gpt2", tmp_path / "out"))
    for name in ("model.safetensors", "trainer_state.json"):
        shutil.copy(out / "checkpoint-3" / name, out)
    assert not looks_like_checkpoint(out)
    assert looks_like_checkpoint(out / "checkpoint-3")
    assert [Path(c.path).name for c in checkpoints_of(out)] == ["out", "checkpoint-3"]
    assert looks_like_checkpoint(FIXTURES / "zero1")
    (tmp_path / "zero").mkdir()
    shutil.copytree(FIXTURES / "zero1", tmp_path / "zero", dirs_exist_ok=True)
    (tmp_path / "zero" / "log.jsonl").write_text("{}")
    assert not looks_like_checkpoint(tmp_path / "zero")
    assert len(checkpoints_of(tmp_path / "zero")) == 1


def test_a_checkpoint_folder_is_one_and_not_its_files() -> None:
    assert [Path(c.path).name for c in checkpoints_of(FIXTURES / "gpt2" / "checkpoint-3")] == ["checkpoint-3"]
