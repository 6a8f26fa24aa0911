"""Many texts at once give what one at a time gives."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.parsers import wandb_numbers
from forensics.parsers.wandb_framing import PAD
from forensics.parsers.wandb_wire import number

ODD = ["NaN", "Infinity", "-Infinity", "true", "false", "null", '"x"', '"1.5"', "[1,2]", '{"a":1}', "", "-", "N", "1\n2", "1\r", "1,5", "1\x1f2", " ", "é",
       "0.1000000000000000055511151231257827", "-2.2250738585072014e-308", "1" * 30, "-0", "1e400", "-1e-400", "9007199254740993"]  # fmt: skip


def spans(texts):
    parts = [t.encode() for t in texts]
    length = np.array([len(p) for p in parts], np.int64)
    data = np.frombuffer(bytes(PAD) + b"".join(parts) + bytes(PAD), np.uint8)
    return data, PAD + np.concatenate([[0], np.cumsum(length)])[:-1], length


def check(texts):
    numbers = wandb_numbers.parse(*spans(texts))
    expected = [number(t.encode()) for t in texts]
    assert numbers.valid.tolist() == [e is not None for e in expected]
    np.testing.assert_array_equal(numbers.values[numbers.valid], np.array([e for e in expected if e is not None], np.float64))


@pytest.fixture
def always_fast(monkeypatch):
    monkeypatch.setattr(wandb_numbers, "FEW", 0)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_text_among_numbers(always_fast, odd):
    if odd == "1\r" or odd == "1\x1f2":
        odd = "x" + odd
    check(["1.5", odd, "2", odd, "-3e-5"])


def test_line_breaks_do_not_shift_the_others(always_fast):
    check(["1", "2\n3", "4", "5"])
    check(["1", "\n", "4", "5"])


@given(st.lists(st.one_of(st.floats().map(json.dumps), st.integers(-(1 << 70), 1 << 70).map(str), st.sampled_from(["null", "true", '"s"'])), max_size=60))
@settings(deadline=None)
def test_random_json(texts):
    few, wandb_numbers.FEW = wandb_numbers.FEW, 0
    try:
        check(texts)
    finally:
        wandb_numbers.FEW = few


@pytest.mark.parametrize(
    ("texts", "valid"),
    [
        (["1", "22", "-333", "0", "true"], [True] * 5),
        (["1.0", "65536.0", "7"], [False, False, True]),
        (["9999999999999999", "10000000000000000"], [True, True]),
        ([str(1 << 60), str((1 << 60) + 1), "1.0"], [True, True, False]),
        ([str(1 << 63), "5"], [False, True]),
    ],
)
def test_integers(always_fast, texts, valid):
    data, at, length = spans(texts)
    found = wandb_numbers.integers(data, at, length, wandb_numbers.parse(data, at, length).values)
    assert found.valid.tolist() == valid
    assert [v for v, ok in zip(found.values.tolist(), valid, strict=True) if ok] == [int(json.loads(t)) for t, ok in zip(texts, valid, strict=True) if ok]


def test_nothing(always_fast):
    check([])
