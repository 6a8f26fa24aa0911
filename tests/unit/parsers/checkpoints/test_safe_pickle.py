from __future__ import annotations

import collections
import os
import pickle
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.parsers.checkpoints import safe_pickle
from forensics.parsers.checkpoints.safe_pickle import Made, PickleError, load
from forensics.parsers.checkpoints.tree import TreeError, leaves, plain


class Attack:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.system, (self.command,))


class Thing:
    def __init__(self) -> None:
        self.scale = 4.0


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_runs_a_command_runs_nothing(tmp_path: Path, protocol: int) -> None:
    marker = tmp_path / "it-ran"
    data = pickle.dumps({"step": 3, "model": [Attack(f"touch {marker}")]}, protocol)
    found = load(data, {})
    assert not marker.exists()
    assert found.value["step"] == 3
    assert isinstance(found.value["model"][0], Made)
    assert any(name.endswith(".system") for name in found.calls)
    pickle.loads(data)
    assert marker.exists(), "the payload of this test must be a real one"


def test_every_prefix_of_a_pickle_is_torn_not_a_crash() -> None:
    data = pickle.dumps({"a": [1, 2.5, None, True, "x" * 300, b"y" * 300, (1, 2, 3, 4)], "o": collections.OrderedDict(b=1)}, 4)
    for cut in range(len(data)):
        with pytest.raises(PickleError):
            load(data[:cut], {})


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=80), st.integers(0, 5))
def test_garbage_is_refused_or_read(data: bytes, protocol: int) -> None:
    for tail in (data, b"\x80" + bytes([protocol]) + data, data + b"."):
        try:
            load(tail, {})
        except PickleError:
            continue


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_changed_byte_is_refused_or_read(data: st.DataObject) -> None:
    whole = bytearray(pickle.dumps({"step": 7, "groups": [{"lr": 1e-3, "betas": (0.9, 0.95)}], "n": 2**70, "t": Thing()}, data.draw(st.integers(0, 5))))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        load(bytes(whole), {})
    except PickleError:
        return


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x80\x02\x8b\xff\xff\xff\x7f" + b"\x01" * 2000 + b".", "integer"),
        (b"\x80\x02\x8b\x00\x04\x00\x00" + b"\x01" * 2000 + b".", "integer"),
        (b"I" + b"9" * 5000 + b"\n.", "integer"),
        (b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x.", "torn"),
        (b"\x80\x02X\xff\xff\xff\xffabc.", "torn"),
        (b"\x80\x02\x82\x01.", "extension"),
        (b"\x80\x05\x97.", "buffer"),
        (b"\x80\x63.", "protocol"),
        (b"\x80\x02.", "nothing on the stack"),
        (b"\x80\x02t.", "mark"),
        (b"\x80\x02h\x05.", "malformed"),
        (b"\x80\x02]]K\x01s.", "key"),
        (b"\xff.", "opcode"),
        (b"(" * 10 + b".", "nothing on the stack"),
    ],
)
def test_bounds(data: bytes, why: str) -> None:
    with pytest.raises(PickleError, match=why):
        load(data, {})


def test_tuples_without_end_are_no_key() -> None:
    with pytest.raises(PickleError, match="key"):
        load(b"\x80\x02})" + b"\x85" * 200_000 + b"K\x01s.", {})


def test_nesting_without_end_is_read_and_walked() -> None:
    found = load(b"\x80\x02" + b"]" + b"]" * 200_000 + b"a" * 200_000 + b".", {})
    assert list(leaves(found.value)) == []
    assert plain(found.value) is not None


def test_references_that_make_a_huge_tree_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb: list[object] = [0] * 10
    for _ in range(30):
        bomb = [bomb] * 10
    found = load(pickle.dumps(bomb, 2), {})
    monkeypatch.setattr("forensics.parsers.checkpoints.tree.MAX_NODES", 10_000)
    with pytest.raises(TreeError):
        list(leaves(found.value))


def test_a_container_that_holds_itself_ends() -> None:
    loop: dict[str, object] = {"a": 1}
    loop["self"] = loop
    found = load(pickle.dumps(loop, 4), {})
    assert [leaf.value for leaf in leaves(found.value)] == [1]


def test_calls_that_copy_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_pickle, "MAX_COPIED", 10_000)
    many = b"\x80\x02(" + b"K\x01" * 3000 + b"lq\x01" + b"cbuiltins\nlist\nh\x01\x85R" * 50 + b"."
    with pytest.raises(PickleError, match="copy"):
        load(many, {})


def test_a_number_of_zeros_is_not_made() -> None:
    found = load(b"\x80\x02cbuiltins\nbytearray\nJ\x00\x00\x00\x7f\x85R.", {})
    assert isinstance(found.value, Made)


def test_too_many_opcodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_pickle, "MAX_OPCODES", 100)
    with pytest.raises(PickleError, match="opcodes"):
        load(b"\x80\x02" + b"N0" * 100 + b"N.", {})


def test_an_unknown_class_becomes_its_name_with_its_state() -> None:
    found = load(pickle.dumps(Thing(), 4), {})
    assert found.value.name.endswith("test_safe_pickle.Thing")
    assert found.value.state == {"scale": 4.0}
    assert any(name.endswith("Thing") for name in found.names)


@pytest.mark.parametrize("protocol", range(6))
def test_plain_values_come_out_as_they_went_in(protocol: int) -> None:
    value = {
        "ints": [0, 1, -1, 255, 256, 65536, -(2**31), 2**31, 2**63, -(2**200)],
        "floats": [0.0, -1.5, 1e300, float("inf")],
        "texts": ["", "a", "ü€", "x" * 70_000, "line\nbreak"],
        "bytes": [b"", b"\x00\xff", b"y" * 300],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        "none": None,
        "flags": (True, False),
        3: "number as key",
        ("a", 1): "pair as key",
    }
    assert load(pickle.dumps(value, protocol), {}).value == value


@pytest.mark.parametrize("protocol", range(6))
def test_containers_of_the_standard_library(protocol: int) -> None:
    value = {"o": collections.OrderedDict([("a", 1), ("b", 2)]), "d": collections.defaultdict(list, x=[1]), "s": {1}, "f": frozenset({2}), "c": 1 + 2j}
    found = load(pickle.dumps(value, protocol), {}).value
    assert found == {"o": {"a": 1, "b": 2}, "d": {"x": [1]}, "s": [1], "f": [2], "c": [1.0, 2.0]}
