from __future__ import annotations

import ast
import json
import zipfile
from pathlib import Path

import pytest

from forensics.cli.main import main
from forensics.replay.recipes.templates import HUGGINGFACE, LIGHTNING, NANOGPT, OWN, TEMPLATES, Template, detect


def checkpoint(path: Path, index: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", index)
    return path


def test_damaged_and_foreign_files_are_no_framework(tmp_path: Path) -> None:
    (tmp_path / "a.ckpt").write_bytes(b"PK\x03\x04 torn")
    (tmp_path / "b.pt").write_bytes(b"")
    checkpoint(tmp_path / "c.pt", b"state_dict")
    assert detect(tmp_path)[0] is OWN


def test_a_file_that_is_there_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "recipe.py"
    out.write_text("mine")
    assert main(["recipe", "new", str(tmp_path), "--out", str(out)]) == 2
    assert "left as it is" in capsys.readouterr().err
    assert out.read_text() == "mine"


@pytest.mark.parametrize("arguments", [["new", "nowhere"], ["new", "--kind", "jax"], []])
def test_wrong_use_is_one_message(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["recipe", *arguments]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "index", "expected"),
    [("a.ckpt", b"..pytorch-lightning_version..", LIGHTNING), ("ckpt.pt", b"..model_args..iter_num..", NANOGPT), ("ckpt.pt", b"..iter_num..", OWN)],
)
def test_the_framework_is_told_by_its_checkpoint(tmp_path: Path, name: str, index: bytes, expected: Template) -> None:
    checkpoint(tmp_path / name, index)
    assert detect(tmp_path)[0] is expected


def test_a_trainer_is_told_by_its_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "checkpoint-10"
    folder.mkdir()
    (folder / "trainer_state.json").write_text(json.dumps({"log_history": []}))
    out = tmp_path / "recipe.py"
    assert main(["recipe", "new", str(tmp_path), "--out", str(out)]) == 0
    assert out.read_text() == HUGGINGFACE.text
    said = capsys.readouterr().out
    assert "TODO (1)" in said
    assert "trainer_state.json is there" in said


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda t: t.kind)
def test_every_template_is_python_with_a_recipe_in_it(template: Template, capsys: pytest.CaptureFixture[str]) -> None:
    tree = ast.parse(template.text)
    assert "recipe" in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert len(template.text.splitlines()) <= 35
    assert "TODO" in template.text
    assert main(["recipe", "new", "--kind", template.kind, "-o", "-"]) == 0
    assert capsys.readouterr().out == template.text


def test_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipe", "list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[:4]] == ["huggingface", "lightning", "nanogpt", "own"]
