"""Configuration files: hostile ones first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.parsers import config_files
from forensics.parsers.interface import RunKey, Source
from forensics.parsers.sink import Collector


def read(path: Path, text: str) -> Collector:
    path.write_text(text)
    collector = Collector()
    claim = config_files.sniff(Source.of(path))
    assert claim is not None
    assert claim.adjunct
    config_files.parse(Source.of(path), collector.sink(str(path), "config"), RunKey())
    return collector


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.json", '{"a": ' * 10_000 + "1" + "}" * 10_000),
        ("config.json", '{"lr": 0.1'),
        ("config.json", "\x00\x01"),
        ("config.yaml", "[" * 10_000 + "]" * 10_000),
        ("config.yaml", "lr: [0.1\nx: }"),
        ("config.yaml", "? !!python/object/apply:os.system ['true']\n: [unclosed"),
        ("config.yaml", "a: 1\n" * 200_000),
    ],
)
def test_unreadable_files_are_damage(tmp_path: Path, name: str, text: str) -> None:
    collector = read(tmp_path / name, text)
    assert len(collector.damage) == 1
    assert not collector.config


def test_aliases_that_multiply_are_cut(tmp_path: Path) -> None:
    levels = "".join(f"l{i}: &l{i} {{" + ", ".join(f"k{j}: *l{i - 1}" for j in range(9)) + "}\n" for i in range(1, 9))
    collector = read(tmp_path / "config.yaml", "l0: &l0 {x: 1}\n" + levels)
    assert len(collector.config) <= config_files.MAX_NODES
    assert "settings" in collector.damage[0].what


def test_tags_do_not_run_code(tmp_path: Path) -> None:
    marker = tmp_path / "made"
    text = f"lr: 0.1\nbad: !!python/object/apply:pathlib.Path.touch ['{marker}']\nbetas: !!python/tuple [0.9, 0.95]\n"
    collector = read(tmp_path / "hparams.yaml", text)
    assert not marker.exists()
    assert collector.config["lr"] == 0.1
    assert collector.config["betas"] == [0.9, 0.95]


def test_lists_and_scalars_are_no_settings(tmp_path: Path) -> None:
    assert not read(tmp_path / "params.json", "[1, 2]").config
    assert not read(tmp_path / "args.yaml", "").config


def test_wandb_shape(tmp_path: Path) -> None:
    text = "_wandb:\n  value:\n    cli_version: 0.31.0\nlr:\n  value: 0.001\nmodel:\n  value:\n    depth: 12\n"
    assert read(tmp_path / "config.yaml", text).config == {"lr": 0.001, "model.depth": 12}


@pytest.mark.parametrize("name", sorted(config_files.NAMES))
def test_plain(tmp_path: Path, name: str) -> None:
    collector = read(tmp_path / name, json.dumps({"lr": 0.001, "optimizer": {"betas": [0.9, 0.95]}, "fp16": True}))
    assert collector.config == {"lr": 0.001, "optimizer.betas": [0.9, 0.95], "fp16": True}
    assert not collector.damage


def test_other_names_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    assert config_files.sniff(Source.of(path)) is None
