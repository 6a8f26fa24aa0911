"""Layouts of several processes. DeepSpeed's fixtures are its own; Megatron-LM's and llm.c's are built here, byte for byte."""

from __future__ import annotations

import json
import shutil
import struct
from argparse import Namespace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forensics.model import Checkpoint, TensorKind
from forensics.parsers.checkpoints.differences import assemble
from forensics.parsers.checkpoints.inspection import inspect
from forensics.parsers.checkpoints.numbers import NumberReader
from forensics.parsers.checkpoints.reading import read
from forensics.parsers.checkpoints.replicas import unequal_replicas
from forensics.parsers.checkpoints.stats import measure

FIXTURES = Path(__file__).parents[4] / "fixtures" / "checkpoints"
EXPECTED = json.loads((FIXTURES / "expected_zero.json").read_text())


def whole(checkpoint: Checkpoint, name: str, kind: TensorKind = TensorKind.PARAM) -> Any:
    info = checkpoint.tensor(name, kind)
    assert info is not None, [t.name for t in checkpoint.tensors]
    with NumberReader() as reader:
        return assemble(info, reader)


# DeepSpeed


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_share_that_is_missing_is_damage(tmp_path: Path, stage: int) -> None:
    folder = Path(shutil.copytree(FIXTURES / f"zero{stage}", tmp_path / "zero"))
    next(iter(folder.glob("*/*rank_1*optim_states.pt"))).unlink()
    found = read(folder)
    assert any("shares of ranks are missing" in d.what for d in found.damage)


def test_latest_that_leads_out_of_the_folder(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FIXTURES / "zero1", tmp_path / "zero"))
    (folder / "global_step3").rename(tmp_path / "global_step3")
    (folder / "latest").write_text("../global_step3")
    assert read(folder).format == "unknown"


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_zero_is_put_together_as_deepspeed_does(stage: int) -> None:
    found = read(FIXTURES / f"zero{stage}")
    assert not found.damage
    assert not found.findings
    assert (found.format, found.step, found.optimizer_steps) == ("deepspeed", 3, (3, 3))
    assert found.scaler is not None
    assert found.scaler["cur_scale"] == 1.0
    assert "deepspeed.runtime.fp16.loss_scaler.LossScaler" in found.classes
    assert [(g.weight_decay, g.params) for g in found.param_groups] == [(0.1, ("0.weight", "1.weight")), (0.0, ("1.bias", "2.weight", "2.bias"))]
    stats = measure(found).stats
    for name, norm in EXPECTED[f"zero{stage}"].items():
        key = (name, TensorKind.PARAM) if stage == 3 else (f"{name}.master", TensorKind.OTHER)
        assert stats[key].norm == pytest.approx(norm, rel=1e-5)
        assert stats[name, TensorKind.EXP_AVG].elements == stats[key].elements
    assert found.tensor("0.weight", TensorKind.EXP_AVG_SQ) is not None


# Megatron-LM


def rank_state(rank: int, norm: Any) -> dict[str, Any]:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test installs it")
    weight = torch.arange(12, dtype=torch.float32).reshape(3, 4) + 100 * rank
    model = {"decoder.layers.0.mlp.linear_fc1.weight": weight, "decoder.final_layernorm.weight": torch.tensor(norm)}
    moments = {0: {"exp_avg": weight * 0.1, "exp_avg_sq": weight**2}, 1: {"exp_avg": torch.zeros(4), "exp_avg_sq": torch.ones(4)}}
    group = {"params": [0, 1], "lr": 9e-5, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1, "step": 42}
    generators = {"random_rng_state": (3, (1, 2), None), "np_rng_state": ("MT19937", 1), "torch_rng_state": torch.get_rng_state(), "cuda_rng_state": None}
    return {
        "args": Namespace(hidden_size=4, lr=1e-4, tensor_model_parallel_size=2),
        "checkpoint_version": 3.0,
        "iteration": 42,
        "model": model,
        "optimizer": {"optimizer": {"state": moments, "param_groups": [group]}},
        "opt_param_scheduler": {"max_lr": 1e-4, "num_steps": 420, "lr_decay_style": "cosine"},
        "rng_state": [generators],
    }


def megatron(folder: Path, norms: list[list[float]]) -> Path:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test installs it")
    (folder / "latest_checkpointed_iteration.txt").write_text("42")
    for rank, norm in enumerate(norms):
        place = folder / "iter_0000042" / f"mp_rank_{rank:02d}"
        place.mkdir(parents=True)
        torch.save(rank_state(rank, norm), place / "model_optim_rng.pt")
    return folder


def test_megatron_rank_by_rank(tmp_path: Path) -> None:
    found = read(megatron(tmp_path, [[1.0] * 4] * 2))
    assert (found.format, found.step, found.step_from, found.optimizer_steps) == ("megatron torch", 42, "iteration", (42, 42))
    assert not found.damage
    assert found.scheduler is not None
    assert found.scheduler["num_steps"] == 420
    assert found.rng == ("random_rng_state", "np_rng_state", "torch_rng_state")
    assert whole(found, "decoder.layers.0.mlp.linear_fc1.weight")[0, 1] == 1
    assert whole(found, "ranks.mp_rank_01.model.decoder.layers.0.mlp.linear_fc1.weight")[0, 1] == 101
    assert whole(found, "decoder.layers.0.mlp.linear_fc1.weight", TensorKind.EXP_AVG)[0, 1] == pytest.approx(0.1)


def test_copies_that_differ_between_ranks_are_a_fault(tmp_path: Path) -> None:
    found = read(megatron(tmp_path, [[1.0] * 4, [1.0] * 4, [1.0, 1.0, 1.0000001, 1.0]]))
    (fault,) = unequal_replicas(found)
    assert fault.name == "decoder.final_layernorm.weight"
    assert "1 of 4 elements differ on rank 2" in fault.text
    assert inspect(found).good is False


def test_copies_that_are_equal_and_shards_that_differ_are_none(tmp_path: Path) -> None:
    assert unequal_replicas(read(megatron(tmp_path, [[1.0, float("nan"), 1.0, 1.0]] * 2))) == ()


def test_megatron_torch_dist(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test installs it")
    import warnings

    import torch.distributed.checkpoint as dcp

    folder = tmp_path / "iter_0000042"
    name = "decoder.layers.self_attention.linear_qkv.weight"
    shards = {name: torch.ones(2, 6, 4), **{f"optimizer.state.{s}.{name}": torch.full((2, 6, 4), 0.5) for s in ("exp_avg", "exp_avg_sq", "fp32_param")}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(shards, checkpoint_id=folder)
    common = {"args": Namespace(lr=1e-4), "iteration": 42, "opt_param_scheduler": {"max_lr": 1e-4, "num_steps": 420}}
    group = {"lr": 9e-5, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1, "step": 42}
    torch.save({**common, "optimizer": {"param_groups": [group]}}, folder / "common.pt")
    (folder / "metadata.json").write_text('{"sharded_backend": "torch_dist", "sharded_backend_version": 1, "common_backend": "torch"}')
    found = read(folder)
    assert (found.format, found.step) == ("megatron torch_dist", 42)
    assert {(t.name, t.kind) for t in found.tensors} >= {(name, k) for k in (TensorKind.PARAM, TensorKind.EXP_AVG, TensorKind.EXP_AVG_SQ)}
    assert [(g.lr, g.weight_decay) for g in found.param_groups] == [(9e-5, 0.1)]
    assert found.optimizer_steps == (42, 42)


# llm.c


def llmc(folder: Path, processes: int, version: int = 3) -> tuple[Path, Any, Any]:
    """A model of one layer and four channels, and the state of each process (ZeRO 1: every tensor in equal shares)."""
    positions, words, layers, heads, width, padded = 4, 7, 1, 2, 4, 8
    header = [20240326, version, positions, words, layers, heads, width, padded] + [0] * 248
    sizes = [padded * width, positions * width, width, width, 3 * width * width, 3 * width, width * width, width]
    sizes += [width, width, 4 * width * width, 4 * width, 4 * width * width, width, width, width]
    weights = np.arange(sum(sizes), dtype=np.float32)
    raw = (weights.view(np.uint32) >> 16).astype(np.uint16) if version == 5 else weights
    path = folder / "model_00000100.bin"
    path.write_bytes(struct.pack("<256i", *header) + raw.tobytes())
    m = weights * 0.5
    cuts = np.cumsum([0, *sizes])
    for rank in range(processes):
        state = [20240527, 1, processes, rank, 0, 0, 0, 0, 0, 0, 100] + [0] * 245
        state[32] = 7
        shares = []
        for moment in (m, m**2):
            for a, b in pairwise(cuts):
                step = (b - a) // processes
                shares.append(moment[a + rank * step : a + (rank + 1) * step])
        (folder / f"state_00000100_{rank:05d}.bin").write_bytes(struct.pack("<256i", *state) + np.concatenate(shares).astype(np.float32).tobytes())
    return path, weights, sizes


@pytest.mark.parametrize("cut", [3, 500, 1024, 1100, 2000])
def test_a_cut_llmc_file_is_damage(tmp_path: Path, cut: int) -> None:
    path, _, _ = llmc(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:cut])
    assert read(path).damage


def test_a_missing_llmc_state_is_damage(tmp_path: Path) -> None:
    path, _, _ = llmc(tmp_path, 2)
    (tmp_path / "state_00000100_00001.bin").unlink()
    assert any("processes are missing" in d.what for d in read(path).damage)


@pytest.mark.parametrize("processes", [1, 2, 4])
@pytest.mark.parametrize("version", [3, 5])
def test_llmc(tmp_path: Path, processes: int, version: int) -> None:
    path, weights, sizes = llmc(tmp_path, processes, version)
    found = read(path)
    assert not found.damage
    assert (found.format, found.step, found.rng) == ("llm.c", 100, ("model",))
    assert found.loader is not None
    ends = np.cumsum(sizes)
    stored = ((weights.view(np.uint32) >> 16) << 16).view(np.float32) if version == 5 else weights
    assert whole(found, "lnfb").tolist() == stored[ends[-2] :].tolist()
    np.testing.assert_array_equal(whole(found, "wte", TensorKind.EXP_AVG).ravel(), weights[: sizes[0]] * np.float32(0.5))
    np.testing.assert_array_equal(whole(found, "lnfb", TensorKind.EXP_AVG).ravel(), weights[ends[-2] :] * np.float32(0.5))
