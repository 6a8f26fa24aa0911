from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoint_files import torch, trained

from forensics.model import TensorKind
from forensics.parsers.checkpoints.differences import assemble, compare
from forensics.parsers.checkpoints.numbers import NumberReader
from forensics.parsers.checkpoints.reading import read
from forensics.parsers.checkpoints.stats import measure

RANK = """
import os, sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp, warnings
warnings.simplefilter("ignore")
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import distribute_tensor, Shard
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=int(sys.argv[1]), world_size=2)
mesh = init_device_mesh("cpu", (2,))
whole = torch.arange(7 * 6, dtype=torch.float32).reshape(7, 6)
rows, columns = distribute_tensor(whole, mesh, [Shard(0)]), distribute_tensor(whole, mesh, [Shard(1)])
dcp.save({"model": {"rows": rows, "columns": columns, "same": whole}, "step": 11}, checkpoint_id=sys.argv[2])
dist.destroy_process_group()
"""


def write(folder: Path, value: Any) -> Path:
    import torch.distributed.checkpoint as dcp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(value, checkpoint_id=folder)
    return folder


def saved(folder: Path) -> Path:
    net, optimizer = trained()
    return write(folder, {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": 5, "extra": {"note": "x"}})


class Attack:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.system, (self.command,))


def test_metadata_that_run_a_command_run_nothing(tmp_path: Path) -> None:
    folder = saved(tmp_path / "a")
    marker = tmp_path / "it-ran"
    about = pickle.loads((folder / ".metadata").read_bytes())
    about.planner_data["hook"] = Attack(f"touch {marker}")
    (folder / ".metadata").write_bytes(pickle.dumps(about))
    found = read(folder)
    assert not marker.exists()
    assert any("system" in f for f in found.findings)
    assert found.step == 5


def test_metadata_that_point_out_of_the_folder(tmp_path: Path) -> None:
    folder = saved(tmp_path / "a")
    data = (folder / ".metadata").read_bytes()
    name = b"__0_0.distcp"
    assert data.count(name) == 1
    (tmp_path / "0_0.distcp").write_bytes((folder / "__0_0.distcp").read_bytes())
    (folder / ".metadata").write_bytes(data.replace(name, b"../" + name[3:]))
    found = read(folder)
    assert any("outside of the folder" in d.what for d in found.damage)
    assert not any(t.location for t in found.tensors)


def test_torn_files_are_damage(tmp_path: Path) -> None:
    folder = saved(tmp_path / "a")
    whole = (folder / "__0_0.distcp").read_bytes()
    (folder / "__0_0.distcp").write_bytes(whole[: len(whole) // 2])
    found = read(folder)
    assert any("missing or cut off" in d.what for d in found.damage)
    assert 0 < sum(bool(t.location) for t in found.tensors) < len(found.tensors)
    (folder / "__0_0.distcp").unlink()
    assert any("a file of the checkpoint is missing" in d.what for d in read(folder).damage)
    about = (folder / ".metadata").read_bytes()
    for cut in range(0, len(about), 501):
        (folder / ".metadata").write_bytes(about[:cut])
        assert read(folder).damage


def test_everything_that_was_saved(tmp_path: Path) -> None:
    net, optimizer = trained()
    found = read(saved(tmp_path / "a"))
    assert (found.format, found.step, found.optimizer_steps) == ("torch dcp", 5, (5, 5))
    assert not found.damage
    assert not found.findings
    assert [(g.lr, g.betas, len(g.params)) for g in found.param_groups] == [(3e-4, (0.9, 0.999), len(list(net.parameters())))]
    with NumberReader() as reader:
        for name, parameter in net.named_parameters():
            for kind, value in ((TensorKind.PARAM, parameter.detach()), (TensorKind.EXP_AVG, optimizer.state[parameter]["exp_avg"])):
                info = found.tensor(name, kind)
                assert info is not None, (name, kind)
                np.testing.assert_array_equal(assemble(info, reader), value.numpy())


def test_the_same_training_in_two_formats(tmp_path: Path) -> None:
    net, optimizer = trained()
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": 5}, tmp_path / "a.pt")
    found = compare(read(tmp_path / "a.pt"), read(saved(tmp_path / "b")))
    assert len(found.changes) == len(found.before.tensors)
    assert all(c.still for c in found.changes)
    assert not found.appeared + found.vanished


@pytest.mark.skipif(sys.platform == "win32" or multiprocessing.cpu_count() < 1, reason="needs two processes that talk over files")
def test_tensors_cut_by_rows_and_columns(tmp_path: Path) -> None:
    import subprocess

    folder = tmp_path / "a"
    arguments = [str(folder), str(tmp_path / "meet")]
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, str(r), *arguments], stderr=subprocess.PIPE) for r in range(2)]
    errors = [r.communicate(timeout=120)[1] for r in ranks]
    assert [r.returncode for r in ranks] == [0, 0], errors
    found = read(folder)
    assert not found.damage
    assert found.step == 11
    whole = np.arange(42, dtype=np.float32).reshape(7, 6)
    with NumberReader() as reader:
        for name in ("rows", "columns", "same"):
            info = found.tensor(name)
            assert info is not None
            np.testing.assert_array_equal(assemble(info, reader), whole)
    assert [len(t.location) for t in found.tensors] == [2, 2, 1]
    stats = measure(found).stats
    assert {round(s.norm, 3) for s in stats.values()} == {round(float(np.linalg.norm(whole)), 3)}
    write(tmp_path / "b", {"model": dict.fromkeys(("rows", "columns", "same"), torch.from_numpy(whole))})
    assert all(c.still for c in compare(found, read(tmp_path / "b")).changes)
