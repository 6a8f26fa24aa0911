"""Wire walk and single messages: broken bytes first, then odd ones, then real shapes."""

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wandb_records import integer, item, metric, run_record, stats, text, varint

from forensics.parsers import wandb_wire as wire


def body(message):
    """The inside of a record's one field."""
    (found,) = wire.fields(message)
    return found[1]


@given(st.binary(max_size=200))
def test_any_bytes_give_fields_or_a_clear_refusal(data):
    kept = wire.known_fields(data)
    with contextlib.suppress(wire.MalformedError):
        assert list(wire.fields(data)) == kept
    wire.row(data)
    wire.run_facts(data)
    wire.config_changes(data)
    wire.metric(data)
    wire.stats(data)
    wire.exit_code(data)
    wire.writer_version(data)


@pytest.mark.parametrize("data", [b"\x80", b"\x0a", b"\x0a\x05ab", b"\x09\x00", b"\x0b", b"\x80" * 11, b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"])
def test_malformed(data):
    with pytest.raises(wire.MalformedError):
        list(wire.fields(data))


def test_a_row_that_breaks_off_keeps_its_first_items():
    row = wire.row(text(1, item("a", 1)[2:]) + b"\x0a\x7f")
    assert [i.name for i in row.items] == ["a"]
    assert not row.whole


@pytest.mark.parametrize(
    "raw", [b"", b'"1.5"', b"[1]", b"{}", b"null", b"1_0", b"0x10", b"1e", b" 1", b"nan", b"inf", b"+1", b"--1", b"9" * 5000 + b"x", b"truely"]
)
def test_texts_that_are_no_number(raw):
    assert wire.number(raw) is None


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"0", 0), (b"-7", -7), (b"true", 1), (b"false", 0), (b"1152921504606846977", 1152921504606846977),
        (b"-9223372036854775808", -(1 << 63)), (b"9223372036854775808", 9223372036854775808.0), (b"9" * 400, math.inf),
        (b"1.0", 1.0), (b"1e5", 1e5), (b"1.79e+09", 1.79e9), (b"Infinity", math.inf), (b"-Infinity", -math.inf), (b"5e-324", 5e-324),
    ],
)  # fmt: skip
def test_numbers(raw, value):
    found = wire.number(raw)
    assert found == value
    assert type(found) is type(value)


def test_nan():
    assert math.isnan(wire.number(b"NaN"))


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        (integer(3, 0), None), (integer(4, 1), 1), (integer(5, 3), -2), (integer(5, 2 * (1 << 60) + 2), (1 << 60) + 1),
        (varint(6 << 3 | 1) + b"\x00\x00\x00\x00\x00\x00\xf8\x3f", 1.5), (text(7, "x"), None), (text(8, "[1]"), None), (text(8, "2.5"), 2.5),
    ],
)  # fmt: skip
def test_typed_value_stands_in_for_a_missing_text(typed, value):
    assert wire.item(text(2, "k") + typed) == wire.Item("k", value)
    assert wire.item(text(2, "k") + text(16, "7") + typed) == wire.Item("k", 7)
    assert wire.item(text(2, "k") + typed + text(16, "7")) == wire.Item("k", 7)


def test_names_of_both_styles():
    assert wire.item(text(1, "a/b") + text(16, "1")).name == "a/b"
    assert wire.item(text(2, "a") + text(2, "b") + text(2, "c d") + text(16, "1")).name == "a/b/c d"
    assert wire.item(text(2, b"\xff") + text(16, "1")).name == "\ufffd"


def test_negative_step_is_signed():
    assert wire.row(text(2, integer(1, -5))).step == -5


def test_run_facts():
    facts = wire.run_facts(body(run_record("id1", "night run", {"lr": 0.1}, f18=1)))
    assert (facts.id, facts.name, facts.project, facts.resumed) == ("id1", "night run", "project", True)
    assert facts.start_time == 1_790_000_000.5
    assert facts.config == (wire.ConfigChange(("lr",), 0.1),)
    assert "secrethost" not in repr(facts)


def test_a_run_record_that_is_cut_off_still_names_the_run():
    record = run_record("id1", "n", {"long": "x" * 500})[:100]
    (found,) = wire.known_fields(record, cut=True)
    assert wire.run_facts(found[1]).id == "id1"
    assert wire.known_fields(record) == []


def test_configuration_changes():
    data = text(1, text(2, "a") + text(2, "b") + text(16, "1")) + text(2, text(1, "gone")) + text(1, text(1, "bad") + text(16, "{"))
    assert wire.config_changes(data) == (
        wire.ConfigChange(("a", "b"), 1),
        wire.ConfigChange(("gone",), None, remove=True),
        wire.ConfigChange(("bad",), "{"),
    )
    deep = text(1, text(1, "deep") + text(16, "[" * 100_000))
    assert wire.config_changes(deep)[0].path == ("deep",)


def test_metric_and_stats():
    assert wire.metric(body(metric("", "train/*", "step"))) == wire.Metric("", "train/*", "step")
    sample = wire.stats(body(stats(100, cpu=1.5, note="x")))
    assert sample == wire.Stats(100.0, (wire.Item("cpu", 1.5),))
