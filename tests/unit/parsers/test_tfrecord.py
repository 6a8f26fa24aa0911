from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard_events import plain_crc, record, stored

from forensics.parsers import tfrecord
from forensics.parsers.tensorboard_crc import crc32c, raw_rows, zeros_crc
from forensics.parsers.tfrecord import GapKind, find_headers, header_length, read_records


def read_all(data: bytes, window: int = 1 << 20) -> tuple[dict[int, bytes], list[int], list[tfrecord.Gap]]:
    payloads: dict[int, bytes] = {}
    bad: list[int] = []
    gaps: list[tfrecord.Gap] = []
    for batch in read_records(io.BytesIO(data).read, window):
        for group in batch.groups:
            for number, row in zip(group.records.tolist(), group.rows, strict=True):
                payloads[number] = row[group.padding : group.padding + group.length].tobytes()
        payloads.update(batch.singles)
        bad += batch.bad
        gaps += batch.gaps
    return payloads, bad, gaps


def payloads(count: int, sizes: tuple[int, ...] = (30, 31, 40, 200)) -> list[bytes]:
    rng = np.random.default_rng(0)
    return [rng.bytes(sizes[i % len(sizes)]) for i in range(count)]


WINDOWS = (64, 300, 1 << 20)


@pytest.mark.parametrize("window", WINDOWS)
def test_flipped_payload_loses_exactly_that_record(window: int) -> None:
    wanted = payloads(60)
    frames = [record(p) for p in wanted]
    frames[20] = frames[20][:14] + bytes([frames[20][14] ^ 1]) + frames[20][15:]
    found, bad, gaps = read_all(b"".join(frames), window)
    assert bad == [21]
    assert gaps == []
    assert [found[n] for n in sorted(found)] == wanted[:20] + wanted[21:]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("at", [0, 3, 7, 8, 11])
def test_damaged_length_is_found_again_and_the_record_mended(window: int, at: int) -> None:
    wanted = payloads(60, (30,))
    frames = [record(p) for p in wanted]
    frames[20] = frames[20][:at] + bytes([frames[20][at] ^ 0x40]) + frames[20][at + 1 :]
    found, bad, gaps = read_all(b"".join(frames), window)
    assert [found[n] for n in range(1, 61)] == wanted
    assert bad == []
    assert gaps == [tfrecord.Gap(21, 20 * 46, 46, GapKind.LENGTH, recovered=True)]


@pytest.mark.parametrize("window", WINDOWS)
def test_bytes_missing_in_the_middle_cost_one_record(window: int) -> None:
    wanted = payloads(60)
    frames = [record(p) for p in wanted]
    frames[30] = frames[30][:20]
    found, bad, gaps = read_all(b"".join(frames), window)
    assert [found[n] for n in sorted(found)] == wanted[:30] + wanted[31:]
    assert bad == []
    assert [(g.record, g.size, g.kind) for g in gaps] == [(31, 20, GapKind.PAYLOAD)]


@pytest.mark.parametrize("window", WINDOWS)
def test_cut_record_whose_claim_ends_at_another_one_swallows_nothing(window: int) -> None:
    wanted = payloads(60, (30,))
    frames = [record(p) for p in wanted]
    long = record(bytes(range(200)))
    frames[20:20] = [long[: 216 - 4 * 46]]  # the missing bytes are as long as four records
    found, bad, gaps = read_all(b"".join(frames), window)
    assert [found[n] for n in sorted(found)] == wanted
    assert bad == []
    assert [(g.record, g.size, g.kind) for g in gaps] == [(21, 32, GapKind.PAYLOAD)]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("left", [1, 11, 12, 13, 45])
def test_cut_tail_is_told_in_bytes(window: int, left: int) -> None:
    wanted = payloads(20, (30,))
    data = b"".join(record(p) for p in wanted)
    found, bad, gaps = read_all(data + record(b"x" * 30)[:left], window)
    assert [found[n] for n in range(1, 21)] == wanted
    assert bad == []
    assert [(g.record, g.offset, g.size, g.kind) for g in gaps] == [(21, len(data), left, GapKind.TAIL)]


@pytest.mark.parametrize("window", WINDOWS)
def test_long_foreign_stretch_is_stepped_over(window: int) -> None:
    wanted = payloads(40)
    frames = [record(p) for p in wanted]
    junk = bytes(range(1, 251)) * 20
    found, _, gaps = read_all(b"".join(frames[:20]) + junk + b"".join(frames[20:]), window)
    assert [found[n] for n in sorted(found)] == wanted
    assert [(g.record, g.size, g.kind) for g in gaps] == [(21, len(junk), GapKind.LENGTH)]


@pytest.mark.parametrize("window", WINDOWS)
def test_reserved_zeros_at_the_end(window: int) -> None:
    wanted = payloads(20)
    found, _, gaps = read_all(b"".join(record(p) for p in wanted) + bytes(5000), window)
    assert [found[n] for n in range(1, 21)] == wanted
    assert [(g.size, g.kind) for g in gaps] == [(5000, GapKind.ZEROS)]


def test_true_length_beyond_the_limit_is_not_believed() -> None:
    head = struct.pack("<Q", (64 << 20) + 1)
    claim = head + stored(head)
    wanted = payloads(20)
    found, _, gaps = read_all(claim + b"".join(record(p) for p in wanted))
    assert [found[n] for n in range(2, 22)] == wanted
    assert [(g.record, g.size, g.kind) for g in gaps] == [(1, 12, GapKind.OVERSIZE)]


def test_overlapping_claims_end_in_linear_work() -> None:
    head = struct.pack("<Q", 40_000)
    found, _, gaps = read_all((head + stored(head)) * 20_000)
    assert found == {}
    assert sum(g.size for g in gaps) == 240_000


def test_too_many_damaged_places_end_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord, "MAX_GAPS", 5)
    frames = [record(p) for p in payloads(60, (30,))]
    frames[::2] = [b"\x07" * 9] * 30
    found, _, gaps = read_all(b"".join(frames))
    assert len(found) == 5
    assert [g.kind for g in gaps] == [GapKind.LENGTH] * 5 + [GapKind.GIVEN_UP]
    assert sum(g.size for g in gaps) == 30 * 9 + 25 * 46


def test_mixed_sizes_and_windows_give_the_same_records() -> None:
    rng = np.random.default_rng(2)
    wanted = [rng.bytes(int(n)) for n in rng.choice([0, 1, 2, 3, 4, 5, 38, 39, 257, 900, 901, 902, 903, 5000], 300)]
    data = b"".join(record(p) for p in wanted)
    for window in (64, 1000, 50_000, 1 << 22):
        found, bad, gaps = read_all(data, window)
        assert [found[n] for n in range(1, 301)] == wanted
        assert (bad, gaps) == ([], [])


def test_regular_records_broken_by_rare_ones() -> None:
    rng = np.random.default_rng(3)
    wanted = []
    for step in range(3000):
        wanted += [rng.bytes(n) for n in (30, 35, 30)]
        if step % 700 == 699:
            wanted += [rng.bytes(300), rng.bytes(70_000 if step == 1399 else 20)]
    data = b"".join(record(p) if len(p) < 1000 else _big(p) for p in wanted)
    found, bad, gaps = read_all(data)
    assert [found[n] for n in range(1, len(wanted) + 1)] == wanted
    assert (bad, gaps) == ([], [])


def _big(payload: bytes) -> bytes:
    """A record with the checksum of the tested code: the plain one takes a second."""
    head = struct.pack("<Q", len(payload))
    crc = crc32c(payload)
    return head + stored(head) + payload + struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


DATA = b"".join(record(p) for p in payloads(40))
SPANS = np.cumsum([0] + [len(p) + 16 for p in payloads(40)]).tolist()


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400), st.sampled_from([20, 64, 1 << 20]))
def test_any_bytes_are_read_without_an_error(data: bytes, window: int) -> None:
    read_all(data, window)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([64, 500, 1 << 20]))
def test_flips_leave_every_other_record(draw: st.DataObject, window: int) -> None:
    flips = draw.draw(st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(1, 255)), max_size=6))
    damaged = bytearray(DATA)
    for at, bits in flips:
        damaged[at] ^= bits
    whole = [p for p, a, b in zip(payloads(40), SPANS, SPANS[1:], strict=False) if bytes(damaged[a:b]) == DATA[a:b]]
    found, bad, gaps = read_all(bytes(damaged), window)
    values = [found[n] for n in sorted(found)]
    assert _is_subsequence(whole, values)
    assert len(values) + len(bad) + sum(not g.recovered for g in gaps) <= 40
    if bytes(damaged) != DATA:
        assert bad or gaps


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(DATA)), st.integers(0, len(DATA)), st.binary(max_size=60), st.sampled_from([64, 1 << 20]))
def test_splices_leave_every_whole_record(first: int, second: int, junk: bytes, window: int) -> None:
    damaged = DATA[:first] + junk + DATA[second:]
    whole = [p for p, b in zip(payloads(40), SPANS[1:], strict=False) if b <= first]
    whole += [p for p, a in zip(payloads(40), SPANS, strict=False) if a >= second]
    found, _, _ = read_all(damaged, window)
    assert _is_subsequence(whole, [found[n] for n in sorted(found)])


def _is_subsequence(short: list[bytes], long: list[bytes]) -> bool:
    rest = iter(long)
    return all(item in rest for item in short)


def test_search_finds_headers_and_nothing_else() -> None:
    assert find_headers(DATA).tolist() == SPANS[:-1]
    assert find_headers(bytes(1000)).tolist() == []
    assert find_headers(b"short").tolist() == []


def test_header_length() -> None:
    assert header_length(DATA) == 30
    assert header_length(DATA[:11]) is None
    assert header_length(b"\0" * 12) is None


@pytest.mark.parametrize(("data", "crc"), [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)])
def test_published_checksums(data: bytes, crc: int) -> None:
    assert crc32c(data) == crc


@pytest.mark.parametrize("size", [1, 255, 256, 257, 511, 3000, 70_000])
def test_long_checksums(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    assert crc32c(data) == plain_crc(data)
    assert zeros_crc(size) == plain_crc(bytes(size))


def test_rows_ignore_leading_zeros() -> None:
    data = np.random.default_rng(5).bytes(37)
    row = np.frombuffer(bytes(11) + data, "<u4").reshape(1, 12)
    assert int(raw_rows(row)[0]) ^ zeros_crc(37) == plain_crc(data)
