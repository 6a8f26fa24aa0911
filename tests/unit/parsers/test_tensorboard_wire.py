from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard_events import event, message, simple, tensor, varint

from forensics.parsers.tensorboard_wire import Form, Kind, MalformedError, fields, number, signed, walk_event
from forensics.parsers.tensorboard_wire import varint as read_varint


@pytest.mark.parametrize(
    "data",
    [b"\x09\0\0", b"\x2a\x05ab", b"\x10", b"\x10" + b"\x80" * 10 + b"\x01", b"\x0b", b"\x0c", b"\x07", b"\x00\x01", b"\x2a" + b"\xff" * 9 + b"\x01"],
    ids=["fixed cut", "bytes cut", "no varint", "long varint", "group", "group end", "wire type 7", "field 0", "huge length"],
)
def test_malformed_messages(data: bytes) -> None:
    with pytest.raises(MalformedError):
        walk_event(data)


@given(st.binary(max_size=120))
def test_any_bytes_are_mapped_or_malformed(data: bytes) -> None:
    try:
        found = walk_event(data)
    except MalformedError:
        return
    for scalar in found.scalars:
        assert 0 <= scalar.tag_start <= scalar.tag_stop <= len(data)
        assert 0 <= scalar.start <= scalar.stop <= len(data)
        number(data, scalar.form, scalar.start, scalar.stop)


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_survive(value: int) -> None:
    data = varint(value)
    assert signed(read_varint(data, 0, len(data))) == value


@pytest.mark.parametrize(
    "content",
    [
        b"\x08\x01\x12\x04\x12\x02\x08\x02\x22\x08" + bytes(8),  # two elements
        b"\x08\x01\x2a\x08" + bytes(8),  # two packed elements
        b"\x08\x01\x2d\0\0\0\0\x2d\0\0\0\0",  # two elements one by one
        b"\x08\x01\x22\x03abc",  # content of another size
        b"\x08\x07\x42\x01a",  # a string
        b"\x08\x08\x4a\x00",  # complex
        b"\x08\x01\x12\x04\x12\x02\x08\x00",  # no element
        b"",  # no dtype
    ],
)
def test_tensors_that_are_no_scalars(content: bytes) -> None:
    data = event(1, tensor("t", content))
    found = walk_event(data)
    assert found.scalars == []
    assert [other.kind for other in found.others] == [Kind.TENSOR]
    assert not found.plain


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"\x08\x01\x22\x04" + struct.pack("<f", 1.5), 1.5),
        (b"\x08\x01\x12\x00\x2a\x04" + struct.pack("<f", 1.5), 1.5),
        (b"\x2d" + struct.pack("<f", 1.5) + b"\x08\x01", 1.5),  # not packed, dtype last
        (b"\x08\x02\x22\x08" + struct.pack("<d", 0.1), 0.1),
        (b"\x08\x02\x32\x08" + struct.pack("<d", 0.1), 0.1),
        (b"\x08\x03\x22\x04" + struct.pack("<i", -7), -7),
        (b"\x08\x03\x3a\x0a" + varint(-7), -7),
        (b"\x08\x03\x38" + varint(-7), -7),
        (b"\x08\x09\x22\x08" + struct.pack("<q", 2**60), 2**60),
        (b"\x08\x09\x52\x09" + varint(2**60), 2**60),
        (b"\x08\x01\x12\x08\x12\x02\x08\x01\x12\x02\x08\x01\x22\x04" + struct.pack("<f", 1.5), 1.5),  # rank 2, one element
        (b"\x08\x09\x12\x00", 0),  # zero is left out
        (b"\x08\x01", 0.0),
    ],
)
def test_tensor_scalars(content: bytes, value: float) -> None:
    data = event(1, tensor("t", content, message(1, message(1, b"scalars"))))
    found = walk_event(data)
    (scalar,) = found.scalars
    read = number(data, scalar.form, scalar.start, scalar.stop)
    assert read == value
    assert isinstance(read, int) == scalar.form.is_int
    assert data[scalar.tag_start : scalar.tag_stop] == b"t"
    assert found.plain


def test_last_of_two_contents_counts() -> None:
    value = message(1, message(1, b"t") + b"\x15" + struct.pack("<f", 1.0) + message(5, b"abc"))
    found = walk_event(event(1, value))
    assert (found.scalars, [other.kind for other in found.others]) == ([], [Kind.HISTOGRAM])


def test_positions_of_a_plain_event() -> None:
    data = event(300, simple("loss", 0.25), wall=5.0)
    found = walk_event(data)
    assert struct.unpack_from("<d", data, found.wall)[0] == 5.0
    assert read_varint(data, found.step_start, found.step_stop) == 300
    assert found.scalars[0].form is Form.FLOAT32
    assert [f.key for f in fields(data, 0, len(data))] == [0x09, 0x10, 0x2A]
