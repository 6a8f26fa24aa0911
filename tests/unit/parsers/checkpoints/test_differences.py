from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checkpoint_files import save, state, torch, trained

from forensics.cli.main import main
from forensics.model import TensorKind
from forensics.parsers.checkpoints.differences import Difference, compare, settings_changed
from forensics.parsers.checkpoints.reading import read


def changed(tmp_path: Path, before: Any, after: Any) -> Difference:
    return compare(read(save(tmp_path / "a.pt", before)), read(save(tmp_path / "b.pt", after)))


def test_a_torn_file_is_damage_and_the_rest_is_compared(tmp_path: Path) -> None:
    before, path = save(tmp_path / "a.pt", state()), save(tmp_path / "b.pt", state(), legacy=True)
    path.write_bytes(path.read_bytes()[:-600])
    found = compare(read(before), read(path))
    assert found.damage
    assert found.changes


def test_a_checkpoint_and_itself(tmp_path: Path) -> None:
    found = changed(tmp_path, state(), state())
    assert all(c.still for c in found.changes)
    assert settings_changed(found.before, found.after) == {}
    assert not found.appeared + found.vanished + found.reshaped + found.retyped


def test_what_moved_and_what_did_not(tmp_path: Path) -> None:
    before = {"w": torch.ones(4, 100), "frozen": torch.randn(50), "gone": torch.ones(3), "shape": torch.ones(4), "type": torch.ones(4)}
    after = {"w": torch.ones(4, 100) * 1.5, "frozen": before["frozen"], "new": torch.ones(2), "shape": torch.ones(2, 2), "type": torch.ones(4).half()}
    found = changed(tmp_path, before, after)
    by_name = {c.name: c for c in found.changes}
    assert by_name["w"].relative == pytest.approx(0.5)
    assert (by_name["w"].unchanged, by_name["frozen"].unchanged) == (0, 50)
    assert by_name["frozen"].still
    assert not by_name["w"].still
    assert [t.name for t in found.appeared] == ["new"]
    assert [t.name for t in found.vanished] == ["gone"]
    assert [a.name for a, _ in found.reshaped] == ["shape"]
    assert [(a.dtype, b.dtype) for a, b in found.retyped] == [("float32", "float16")]


def test_one_element_that_jumped_is_named_with_its_bit(tmp_path: Path) -> None:
    before = torch.randn(300, 400, generator=torch.Generator().manual_seed(1)) * 0.02
    after = before + torch.randn(300, 400, generator=torch.Generator().manual_seed(2)) * 1e-4
    bits = after[200:201, 7:8].contiguous().view(torch.int32)
    after[200, 7] = (bits ^ (1 << 30)).view(torch.float32)[0, 0]
    (change,) = changed(tmp_path, {"w": before}, {"w": after}).changes
    assert change.jump is not None
    assert (change.jump.index, change.jump.bit) == ((200, 7), 30)
    assert change.was == pytest.approx(float(before[200, 7]))


def test_an_update_is_no_jump(tmp_path: Path) -> None:
    found = changed(tmp_path, state(5), state(25))
    assert [c.name for c in found.changes if c.jump] == []
    assert settings_changed(found.before, found.after)["step"] == (5, 25)


def test_values_that_are_not_finite(tmp_path: Path) -> None:
    bad = torch.ones(1000)
    bad[3], bad[4] = float("nan"), float("inf")
    (change,) = changed(tmp_path, {"w": torch.ones(1000)}, {"w": bad}).changes
    assert (change.non_finite_before, change.non_finite_after, change.change) == (0, 2, 0.0)
    (same,) = changed(tmp_path, {"w": bad}, {"w": bad}).changes
    assert (same.non_finite_before, same.non_finite_after, same.still) == (2, 2, True)


def test_wrapped_and_bare_names_meet(tmp_path: Path) -> None:
    net, _ = trained()
    wrapped = {"state_dict": {f"backbone.{k}": v for k, v in net.state_dict().items()}}
    found = changed(tmp_path, net.state_dict(), wrapped)
    assert len(found.changes) == len(net.state_dict())
    assert all(c.still for c in found.changes)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = save(tmp_path / "a.pt", state(5)), save(tmp_path / "b.pt", state(25))
    assert main(["diff", str(before), str(after), "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["settings"]["step"] == [5, 25]
    assert {t["name"] for t in document["tensors"]} >= {"0.weight", "4.bias"}
    assert {t["name"] for t in document["still"]} == {"3.running_mean", "3.running_var", "3.num_batches_tracked"}
    assert main(["diff", str(before), str(after)]) == 0
    assert "did not move at all: 3.running_mean" in capsys.readouterr().out


def test_the_command_on_what_is_no_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(tmp_path / "a.pt"), str(tmp_path / "b.pt")]) == 2
    assert "does not exist" in capsys.readouterr().err
    (tmp_path / "a.pt").write_bytes(b"x" * 100)
    assert main(["diff", str(tmp_path / "a.pt"), str(tmp_path / "a.pt")]) == 2
    assert "no checkpoint" in capsys.readouterr().err


def test_kinds_can_be_chosen(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pt", state())
    found = compare(read(path), read(path), kinds=(TensorKind.PARAM,))
    assert {c.kind for c in found.changes} == {TensorKind.PARAM}
