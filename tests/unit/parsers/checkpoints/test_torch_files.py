from __future__ import annotations

import math
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoint_files import save, state, torch, trained

from forensics.model import Checkpoint, TensorKind
from forensics.parsers.checkpoints.numbers import NumberReader
from forensics.parsers.checkpoints.reading import is_checkpoint, read
from forensics.parsers.checkpoints.stats import measure


class Attack:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.system, (self.command,))


def numbers(checkpoint: Checkpoint, name: str, kind: TensorKind = TensorKind.PARAM) -> Any:
    info = checkpoint.tensor(name, kind)
    assert info is not None, [t.name for t in checkpoint.tensors]
    with NumberReader() as reader:
        return np.concatenate([b.values.copy() for b in reader.blocks(info)]).reshape(info.shape)


@pytest.mark.parametrize("legacy", [False, True])
def test_a_checkpoint_that_runs_a_command_is_a_finding_and_nothing_ran(tmp_path: Path, legacy: bool) -> None:
    marker = tmp_path / "it-ran"
    path = save(tmp_path / "a.pt", {**state(), "hook": {"deep": [Attack(f"touch {marker}")]}}, legacy=legacy)
    found = read(path)
    measure(found)
    assert not marker.exists()
    assert len(found.findings) == 1
    assert "system" in found.findings[0]
    assert found.step == 5
    torch.load(path, weights_only=False)
    assert marker.exists(), "the payload of this test must be a real one"


@pytest.mark.parametrize("legacy", [False, True])
def test_a_file_cut_off_anywhere_is_damage(tmp_path: Path, legacy: bool) -> None:
    whole = save(tmp_path / "a.pt", state(), legacy=legacy).read_bytes()
    path = tmp_path / "cut.pt"
    for cut in range(0, len(whole) - 1, 997):
        path.write_bytes(whole[:cut])
        found = read(path)
        measure(found)
        assert found.damage, cut
        assert str(path) in found.damage[0].path


def test_a_pointer_is_damage_that_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "optimizer.pt"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 123\n")
    assert "git lfs pull" in read(path).damage[0].what


@pytest.mark.parametrize("content", [b"", b"\x00" * 5000, b"PK\x03\x04 and nothing else", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", b"hello"])
def test_other_files_are_damage(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(content)
    found = read(path)
    assert found.format == "unknown"
    assert found.damage[0].lost == "the whole file"


def test_compressed_entries_are_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", b"\x00" * 50_000_000)
    assert path.stat().st_size < 100_000
    assert "compressed" in read(path).damage[0].what


def test_a_storage_that_is_compressed_or_missing_is_damage_of_its_tensors(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pt", state())
    again = tmp_path / "b.pt"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(again, "w") as new:
        for info in old.infolist():
            if info.filename.endswith("data/0"):
                continue
            kind = zipfile.ZIP_DEFLATED if info.filename.endswith("data/1") else zipfile.ZIP_STORED
            new.writestr(info.filename, old.read(info), kind)
    found = read(again)
    assert found.damage[0].lost.startswith("2 tensors: model.0.weight")
    assert len(measure(found).stats) == len(found.tensors) - 2


def test_a_tensor_that_reaches_past_its_storage_is_damage(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pt", {"a": torch.zeros(3), "b": torch.ones(4)})
    data = path.read_bytes()
    size = b"K\x03\x85"
    assert data.count(size) == 1
    path.write_bytes(data.replace(size, b"K\x7f\x85"))
    found = read(path)
    assert "outside of their storage" in found.damage[0].what
    assert len(measure(found).stats) == 1


def test_an_expanded_tensor_is_not_blown_up(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pt", {"a": torch.ones(1).expand(10_000_000, 1000)})
    found = read(path)
    assert found.damage
    assert measure(found).stats == {}


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("groups", [False, True])
def test_everything_a_script_saves_is_read(tmp_path: Path, legacy: bool, groups: bool) -> None:
    value = state(groups=groups)
    found = read(save(tmp_path / "a.pt", value, legacy=legacy))
    assert not found.damage
    assert not found.findings
    assert found.classes == ()
    assert (found.step, found.step_from) == (5, "step")
    assert found.optimizer_steps == (5, 5)
    assert found.scaler is not None
    assert found.scaler["scale"] == 1024.0
    assert found.scheduler is not None
    assert found.scheduler["last_epoch"] == value["scheduler"]["last_epoch"]
    assert found.rng == ("torch", "numpy", "python")
    assert found.facts["epoch"] == 1
    assert [(g.lr, g.betas, g.eps, g.weight_decay) for g in found.param_groups] == [
        (g["lr"], g["betas"], g["eps"], g["weight_decay"]) for g in value["optimizer"]["param_groups"]
    ]
    assert [len(g.params) for g in found.param_groups] == [len(g["params"]) for g in value["optimizer"]["param_groups"]]


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("groups", [False, True])
def test_moments_carry_the_name_of_their_parameter(tmp_path: Path, legacy: bool, groups: bool) -> None:
    net, optimizer = trained(groups=groups)
    found = read(save(tmp_path / "a.pt", {"model": net.state_dict(), "optimizer": optimizer.state_dict()}, legacy=legacy))
    for name, parameter in net.named_parameters():
        np.testing.assert_array_equal(numbers(found, name), parameter.detach().numpy())
        np.testing.assert_array_equal(numbers(found, name, TensorKind.EXP_AVG), optimizer.state[parameter]["exp_avg"].numpy())
        np.testing.assert_array_equal(numbers(found, name, TensorKind.EXP_AVG_SQ), optimizer.state[parameter]["exp_avg_sq"].numpy())
    assert {t.name for t in found.tensors if t.kind is TensorKind.BUFFER} == {"3.running_mean", "3.running_var", "3.num_batches_tracked"}


def test_a_bare_state_dict(tmp_path: Path) -> None:
    net, _ = trained()
    found = read(save(tmp_path / "pytorch_model.bin", net.state_dict()))
    assert [t.name for t in found.tensors] == list(net.state_dict())
    assert found.step is None


FLOATS = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
DTYPES = [*FLOATS, "int64", "int32", "int16", "int8", "uint8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_every_type(tmp_path: Path, dtype: str) -> None:
    kind = getattr(torch, dtype)
    if dtype.startswith("float8"):
        value = torch.arange(256, dtype=torch.uint8).view(kind)
    elif dtype == "bool":
        value = torch.tensor([True, False, True])
    else:
        value = (torch.randn(300, generator=torch.Generator().manual_seed(1)) * 30).to(kind)
    found = read(save(tmp_path / "a.pt", {"a": value, "b": value[3:]}))
    expected = value.to(torch.float64).numpy()
    np.testing.assert_array_equal(numbers(found, "a", found.tensors[0].kind).astype(float), expected)
    stats = measure(found).stats["b", found.tensors[1].kind]
    rest = expected[3:]
    finite = rest[np.isfinite(rest)]
    assert stats.non_finite == len(rest) - len(finite)
    assert stats.elements == len(rest)
    if len(finite):
        assert stats.norm == pytest.approx(math.sqrt((finite**2).sum()), rel=1e-5)
        assert stats.max_abs == np.abs(finite).max()


def test_views_and_orders(tmp_path: Path) -> None:
    base = torch.arange(60, dtype=torch.float32).reshape(3, 4, 5)
    value = {"plain": base, "turned": base.permute(2, 0, 1), "part": base[1:, :, 2:4], "one": base[2, 3, 4], "none": base[:0]}
    found = read(save(tmp_path / "a.pt", value))
    assert not found.damage
    for name in ("plain", "turned", "part", "one"):
        np.testing.assert_array_equal(numbers(found, name), value[name].numpy())
    assert len({t.location[0].path for t in found.tensors}) == 1


def test_numbers_that_float32_sums_lose(tmp_path: Path) -> None:
    found = read(save(tmp_path / "a.pt", {"tiny": torch.full((100,), 1e-25), "huge": torch.full((100,), 1e30)}))
    stats = measure(found).stats
    assert stats["tiny", TensorKind.PARAM].norm == pytest.approx(1e-24, rel=1e-5)
    assert stats["huge", TensorKind.PARAM].norm == pytest.approx(1e31, rel=1e-5)
    assert stats["huge", TensorKind.PARAM].non_finite == 0


def test_a_flipped_exponent_bit_is_named(tmp_path: Path) -> None:
    value = torch.randn(200, 300, generator=torch.Generator().manual_seed(2)) * 0.02
    (bits,) = struct.unpack("<I", struct.pack("<f", 0.0173))
    (flipped,) = struct.unpack("<f", struct.pack("<I", bits ^ (1 << 30)))
    value[117, 43] = flipped
    stats = measure(read(save(tmp_path / "a.pt", {"w": value, "v": value[:3]}))).stats["w", TensorKind.PARAM]
    (stray,) = stats.outliers
    assert stray.index == (117, 43)
    assert stray.bit == 30
    assert stray.unflipped == pytest.approx(0.0173, rel=1e-6)
    assert stats.non_finite == 0


def test_large_dimensions_of_a_healthy_model_are_not_stray(tmp_path: Path) -> None:
    gain = torch.ones(768)
    gain[138] = 17.0
    heavy = torch.from_numpy(np.random.default_rng(0).standard_t(3, 100_000).astype(np.float32))
    sparse = torch.zeros(50, 64)
    sparse[7] = torch.randn(64)
    stats = measure(read(save(tmp_path / "a.pt", {"gain": gain, "heavy": heavy, "sparse": sparse}))).stats
    assert [s.outliers for s in stats.values()] == [(), (), ()]


def test_the_first_element_that_is_not_finite_is_named(tmp_path: Path) -> None:
    value = torch.ones(1000, 100)
    value[700, 3], value[900, 2] = float("nan"), float("-inf")
    stats = measure(read(save(tmp_path / "a.pt", {"w": value}))).stats["w", TensorKind.PARAM]
    assert (stats.non_finite, stats.first_bad) == (2, (700, 3))
    assert stats.norm == pytest.approx(math.sqrt(99_998))


def test_content_decides_what_is_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"hello world" * 100)
    assert not is_checkpoint(tmp_path / "data.bin")
    assert is_checkpoint(save(tmp_path / "odd.name", {"a": torch.ones(2)}))


@pytest.mark.parametrize("size", [16, 48, 5000])
def test_a_stray_element_of_a_small_tensor(tmp_path: Path, size: int) -> None:
    gain = 1 + 0.05 * torch.randn(size, generator=torch.Generator().manual_seed(1))
    gain[3] = 300.0
    (stray,) = measure(read(save(tmp_path / "a.pt", {"gain": gain, "other": gain}))).stats["gain", TensorKind.PARAM].outliers
    assert (stray.index, stray.value) == ((3,), 300.0)
