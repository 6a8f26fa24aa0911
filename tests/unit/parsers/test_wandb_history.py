"""Rows read in step and rows read one by one give the same columns."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wandb_records import history, integer, item, text, varint

from forensics.parsers import wandb_history
from forensics.parsers.wandb_framing import PAD


def columns(messages, *, narrow=1):
    """Columns and steps of HistoryRecord messages as plain lists."""
    saved, wandb_history.NARROW = wandb_history.NARROW, narrow
    try:
        data = np.frombuffer(bytes(PAD) + b"".join(messages) + bytes(PAD), np.uint8)
        ends = PAD + np.cumsum([len(m) for m in messages])
        log = wandb_history.History()
        log.add(data, ends - [len(m) for m in messages], ends)
    finally:
        wandb_history.NARROW = saved
    steps, stepped = log.steps()
    found = {c.name: (c.rows.tolist(), repr(c.values.tolist()), c.values.dtype.kind) for c in log.columns()}
    return found, steps.tolist(), stepped.tolist(), sorted(set(log.broken))


def both(messages):
    fast, slow = columns(messages, narrow=1), columns(messages, narrow=10**9)
    assert fast == slow
    return fast


def body(row, step=None, **options):
    message = history(row, step, **options)
    return message[1 + len(varint(len(message))) :] if len(message) > 129 else message[2:]


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=8))
@settings(max_examples=200, deadline=None)
def test_random_messages_never_raise(messages):
    columns(messages, narrow=1)
    columns(messages, narrow=10**9)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_messages_never_raise_or_touch_their_neighbours(data):
    rows = [body({"loss": 1.5 + i, "n": i}, i) for i in range(6)]
    bad = bytearray(rows[3])
    bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    found, _, _, _ = columns([*rows[:3], bytes(bad), *rows[4:]])
    assert [r for r in found["loss"][0] if r != 3] == [0, 1, 2, 4, 5]


def test_a_row_that_breaks_off():
    whole = body({"a": 1, "b": 2}, 5)
    found, _, _, broken = both([whole, whole[:-9], whole])
    assert found["a"][0] == [0, 1, 2]
    assert broken == [1]


NESTED = st.lists(st.sampled_from(["a", "b", "loss"]), min_size=1, max_size=4).map(tuple)
KEYS = st.one_of(st.sampled_from(["loss", "train/loss", "a", "x" * 140, "k" * 40]), NESTED)
VALUES = st.one_of(
    st.floats(), st.integers(-(1 << 63), (1 << 63) - 1), st.booleans(), st.none(), st.text(max_size=5), st.lists(st.integers(), max_size=80), st.just("y" * 200)
)


@given(st.lists(st.tuples(st.dictionaries(KEYS, VALUES, max_size=6), st.one_of(st.none(), st.integers(0, 1 << 40)), st.booleans()), min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_both_ways_agree(rows):
    fast = columns([body(row, step, nested=nested) for row, step, nested in rows], narrow=1)
    slow = columns([body(row, step, nested=nested) for row, step, nested in rows], narrow=10**9)
    assert fast[1:] == slow[1:]
    assert {k: sorted(v[0]) for k, v in fast[0].items()} == {k: sorted(v[0]) for k, v in slow[0].items()}


def test_values_of_every_kind():
    other = {"nan": math.nan, "inf": -math.inf, "text": "x", "none": None, "list": [1]}
    rows = [{"f": 0.5 * i, "i": (1 << 60) + i, "mixed": 1 if i else 0.5, **other} for i in range(4)]
    found, steps, stepped, broken = both([body(row, 10 * i) for i, row in enumerate(rows)])
    assert found["i"] == ([0, 1, 2, 3], repr([(1 << 60) + i for i in range(4)]), "i")
    assert found["f"][1:] == (repr([0.0, 0.5, 1.0, 1.5]), "f")
    assert found["mixed"][2] == "f"
    assert found["nan"][1] == "[nan, nan, nan, nan]"
    assert set(found) == {"f", "i", "nan", "inf", "mixed"}
    assert (steps, stepped, broken) == ([0, 10, 20, 30], [True] * 4, [])


@pytest.mark.parametrize("step", [0, 1, 127, 128, 16383, 16384, (1 << 35) - 1, 1 << 35, 1 << 62, -3])
def test_steps_of_every_size(step):
    _, steps, stepped, _ = both([body({"a": 1}, step)] * 3)
    assert (steps, stepped) == ([step] * 3, [True] * 3)


def test_rows_without_step():
    _, steps, stepped, _ = both([body({"a": 1}), body({"a": 2}, 7), body({}), body({}, 8)])
    assert (steps, stepped) == ([0, 7, 0, 8], [False, True, False, True])


def test_fields_in_unusual_order_and_unknown_fields():
    odd = text(2, integer(1, 4)) + text(1, text(16, "2.5") + text(2, "late")) + integer(9, 1) + text(1, item("a", 1)[2:])
    found, steps, _, broken = both([odd, odd])
    assert found == {"late": ([0, 1], "[2.5, 2.5]", "f"), "a": ([0, 1], "[1, 1]", "i")}
    assert (steps, broken) == ([4, 4], [])


def test_typed_values_beside_and_instead_of_the_text():
    beside = text(1, text(2, "a") + text(16, "3") + integer(5, 6))
    instead = text(1, text(2, "b") + integer(5, 6))
    found, _, _, _ = both([beside + instead] * 3)
    assert found == {"a": ([0, 1, 2], "[3, 3, 3]", "i"), "b": ([0, 1, 2], "[3, 3, 3]", "i")}


def test_many_rows_cross_every_inner_border(monkeypatch):
    monkeypatch.setattr(wandb_history, "SLICE", 2000)
    monkeypatch.setattr(wandb_history, "STEP", 300)
    count = 2000 + 300 + 3
    rows = [body({"n": i, "v": i / 7} if i % 3 else {"v": i / 7, "n": i, "e": -i}, i) for i in range(count)]
    found, steps, _, _ = columns(rows, narrow=16)
    assert found["n"] == (list(range(count)), repr(list(range(count))), "i")
    assert found["v"][1] == repr([i / 7 for i in range(count)])
    assert found["e"][0] == list(range(0, count, 3))
    assert steps == list(range(count))


def test_one_very_wide_row():
    found, _, _, _ = columns([body({f"k{i}": i for i in range(3000)}, 1)])
    assert len(found) == 3000
