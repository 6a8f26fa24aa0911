from __future__ import annotations

from pathlib import Path

import pytest
from checkpoint_files import save, state, torch

from forensics.parsers.checkpoints.beside import checkpoints_of, folder_of
from forensics.parsers.checkpoints.health import around, health, last_good_before


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "log.jsonl").write_text('{"step": 0, "loss": 1}\n')
    (tmp_path / "data.bin").write_bytes(b"hello" * 1000)
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for step in (300, 20, 100):
        value = {**state(), "step": step}
        if step == 300:
            value["model"]["1.weight"][4, 2] = 1e9
        save(folder / f"x{step}.pt", value)
    save(tmp_path / "batch.pt", {"tokens": torch.zeros(4, 4, dtype=torch.int64)})
    return tmp_path


def test_broken_files_do_not_hide_the_others(run: Path) -> None:
    (run / "checkpoints" / "x400.pt").write_bytes((run / "checkpoints" / "x100.pt").read_bytes()[:5000])
    (run / "checkpoints" / "x500.pt").write_text("version https://git-lfs.github.com/spec/v1\n")
    found = checkpoints_of(run)
    assert [c.step for c in found if not c.damage] == [20, 100, 300]
    assert len([c for c in found if c.damage]) == 2


def test_a_link_that_leads_out_is_not_followed(run: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    save(other / "x999.pt", {**state(), "step": 999})
    (run / "link").symlink_to(other)
    (run / "checkpoints" / "x999.pt").symlink_to(other / "x999.pt")
    assert [c.step for c in checkpoints_of(run)] == [20, 100, 300]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert checkpoints_of(tmp_path / "log.jsonl") == ()


def test_checkpoints_in_the_order_of_their_steps(run: Path) -> None:
    assert [c.step for c in checkpoints_of(run)] == [20, 100, 300]
    assert [c.step for c in checkpoints_of(run / "log.jsonl")] == [20, 100, 300]


def test_the_last_good_one(run: Path) -> None:
    found = checkpoints_of(run)
    assert last_good_before(found, 10) is None
    assert getattr(last_good_before(found, 99), "step", None) == 20
    assert getattr(last_good_before(found, 5000), "step", None) == 100
    assert [getattr(c, "step", None) for c in (around(found, 150).last_good, around(found, 150).first_bad)] == [100, 300]


def test_a_fault_names_tensor_and_element(run: Path) -> None:
    (fault,) = health(checkpoints_of(run)[-1]).faults
    assert (fault.name, fault.index, fault.value) == ("1.weight", (4, 2), 1e9)
    assert "1.weight: element [4, 2] is 1e+09" in fault.text


def test_numbers_are_not_read_above_the_limit(run: Path) -> None:
    assert health(checkpoints_of(run)[-1], limit=10).good is None


def test_checkpoints_among_several_logs_are_nobodys(run: Path) -> None:
    assert folder_of(run) == run
    assert folder_of(run / "log.jsonl") == run
    assert folder_of(run / "missing.jsonl") is None
    (run / "other.jsonl").write_text("{}")
    assert folder_of(run / "log.jsonl") is None
    (run / "log").mkdir()
    assert folder_of(run / "log.jsonl") == run / "log"
