"""The key table never mixes up two keys, whatever their hashes."""

import numpy as np
import pytest
from wandb_records import text

from forensics.parsers import wandb_keys
from forensics.parsers.wandb_framing import PAD


def find(table, names):
    spans = [text(2, name) for name in names]
    length = np.array([len(s) for s in spans], np.int64)
    data = np.frombuffer(bytes(PAD) + b"".join(spans) + bytes(PAD), np.uint8)
    return table.find(data, PAD + np.concatenate([[0], np.cumsum(length)])[:-1], length)


def test_equal_hashes_are_told_apart(monkeypatch):
    monkeypatch.setattr(wandb_keys, "_FACTORS", np.zeros_like(wandb_keys._FACTORS))
    table = wandb_keys.KeyTable()
    number, known = find(table, ["first", "other", "first"])
    assert known.tolist() == [True, False, True]
    assert table.names[number[0]] == "first"


def test_too_long_and_too_many_keys_are_left_alone(monkeypatch):
    monkeypatch.setattr(wandb_keys, "MAX_KEYS", 3)
    _, known = find(wandb_keys.KeyTable(), ["a" * 600, "b", "c", "d", "e"])
    assert known.tolist()[0] is False
    assert sum(known) == 3


@pytest.mark.parametrize("count", [1, 15, 16, 17, 700])
def test_names_that_differ_in_the_middle_only(count):
    table = wandb_keys.KeyTable()
    names = [f"gradient_norm/layers.{i:04d}.attention.query.weight" for i in range(count)] + ["x", "loss", "grad"]
    for _ in range(2):
        number, known = find(table, names)
        assert known.all()
        assert [table.names[n] for n in number] == names


def test_a_key_that_continues_another_one():
    table = wandb_keys.KeyTable()
    names = ["a" * n for n in range(1, 100)]
    number, known = find(table, names)
    assert known.all()
    assert [table.names[n] for n in number] == names
