"""Framing: what damage costs, what it must not cost, and whole files."""

import io

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from wandb_records import BLOCK, HEADER, chunk, chunks, flip, framed

from forensics.parsers import wandb_framing as framing

RNG = np.random.default_rng(7)
RECORDS = [bytes([n % 251]) * n + RNG.bytes(20) for n in [5, 300, 0, 20_000, 15_000, 40, 90_000, 7, 7, 1, 12_000, 33_000, 64, 64]]
GOOD = HEADER + framed(RECORDS)


def read(data):
    """All records and gaps; gaps as (records before, records lost, why)."""
    records, gaps = [], []
    for batch in framing.read_batches(io.BytesIO(data)):
        gaps += [(len(records) + gap.before, gap.records, gap.why) for gap in batch.gaps]
        records += [batch.data[a : a + n].tobytes() for a, n in zip(batch.starts, batch.lengths, strict=True)]
    return records, gaps


def owners():
    """Which record each chunk belongs to."""
    found, number = [], -1
    for _, _, kind in chunks(GOOD):
        number += kind in {1, 2}
        found.append(number)
    return found


def without(i):
    return RECORDS[:i] + RECORDS[i + 1 :]


@pytest.mark.parametrize("k", range(len(chunks(GOOD))))
def test_one_flipped_payload_byte_costs_one_record(k):
    at, length, _ = chunks(GOOD)[k]
    records, gaps = read(flip(GOOD, at + 7 + length // 2 if length else at + 6))
    assert records == without(owners()[k])
    assert [gap[:2] for gap in gaps] == [(owners()[k], 1)]


@pytest.mark.parametrize("byte", range(7))
@pytest.mark.parametrize("k", range(len(chunks(GOOD))))
def test_one_flipped_header_byte_costs_one_record(k, byte):
    at, _, _ = chunks(GOOD)[k]
    records, gaps = read(flip(GOOD, at + byte, 0x40))
    assert records == without(owners()[k])
    assert sum(gap[1] for gap in gaps) == 1


def test_neighbouring_bad_records_are_counted():
    small = [bytes([i]) * 50 for i in range(20)]
    data = HEADER + framed(small)
    for k in (4, 5, 6):
        data = flip(data, chunks(HEADER + framed(small))[k][0] + 20)
    records, gaps = read(data)
    assert records == small[:4] + small[7:]
    assert [gap[:2] for gap in gaps] == [(4, 3)]


def test_a_block_of_garbage_costs_its_records_only():
    small = [RNG.bytes(100) for _ in range(1500)]
    good = HEADER + framed(small)
    data = good[:BLOCK] + RNG.bytes(BLOCK) + good[2 * BLOCK :]
    records, gaps = read(data)
    assert len(records) > 1500 - 320
    assert [r for r in small if r in records] == records
    assert gaps


def test_every_cut_keeps_the_records_before_it():
    for stop in range(len(HEADER), len(GOOD), 611):
        records, gaps = read(GOOD[:stop])
        assert records == RECORDS[: len(records)]
        whole = stop in {at for at, _, kind in chunks(GOOD) if kind in {1, 2}} | {len(GOOD)}
        assert whole or gaps or stop % BLOCK > BLOCK - 7 or stop % BLOCK == 0


def test_a_cut_says_so():
    _, gaps = read(GOOD[:-3])
    assert gaps == [(len(RECORDS) - 1, 1, framing.CUT_OFF)]
    _, gaps = read(GOOD + b"\x01\x02\x03")
    assert gaps == [(len(RECORDS), 1, framing.CUT_OFF)]


def test_a_file_that_ends_between_the_pieces_of_a_record():
    at = next(at for at, _, kind in chunks(GOOD) if kind == 4)
    _, gaps = read(GOOD[:at])
    assert [gap[1:] for gap in gaps] == [(1, framing.CUT_OFF)]


def test_zero_bytes_at_the_end_are_no_records():
    records, gaps = read(GOOD + bytes(3 * BLOCK))
    assert records == RECORDS
    assert all(gap[1:] == (0, framing.ZEROS) for gap in gaps)


def test_pieces_without_beginning_or_end():
    data = HEADER + chunk(3, b"m") + chunk(4, b"l") + chunk(1, b"one") + chunk(2, b"f") + chunk(1, b"two") + chunk(2, b"g") + chunk(2, b"h") + chunk(4, b"!")
    records, gaps = read(data)
    assert records == [b"one", b"two", b"h!"]
    assert [gap[:2] for gap in gaps] == [(0, 1), (1, 1), (2, 1)]


def test_a_record_without_end_is_not_kept_in_memory(monkeypatch):
    monkeypatch.setattr(framing, "MAX_RECORD", 50_000)
    records, gaps = read(GOOD)
    assert records == [r for r in RECORDS if len(r) <= 50_000]
    assert [gap[1] for gap in gaps] == [1]


def test_searching_stops_when_the_budget_is_spent(monkeypatch):
    monkeypatch.setattr(framing, "SCAN_BUDGET", 0)
    small = [bytes([i]) * 200 for i in range(250)]
    data = flip(HEADER + framed(small), len(HEADER) + 20)
    records, gaps = read(data)
    assert records == small[len(small) - len(records) :]
    assert len(records) < 200
    assert len(gaps) == 1


@given(st.binary(max_size=3000))
@example(b"\x00" * 40)
@settings(max_examples=150, deadline=None)
def test_random_bytes_never_raise(junk):
    read(HEADER + junk)
    read(junk)
    framing.read_head(HEADER + junk)
    framing.read_head(junk)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_random_damage_never_invents_records(data):
    damaged = bytearray(GOOD)
    flips = data.draw(st.lists(st.tuples(st.integers(7, len(GOOD) - 1), st.integers(1, 255)), min_size=1, max_size=6))
    for at, mask in flips:
        damaged[at] ^= mask
    stop = data.draw(st.integers(7, len(GOOD)))
    records, _ = read(bytes(damaged[:stop]))
    rest = iter(RECORDS)
    assert all(any(record == other for other in rest) for record in records)
    first = min([at for at, _ in flips] + [stop])
    ends = [at + 7 + length for at, length, kind in chunks(GOOD) if kind in {1, 4}]
    untouched = sum(end <= first for end in ends)
    assert records[:untouched] == RECORDS[:untouched]


def test_batches_join_records_across_their_border(monkeypatch):
    monkeypatch.setattr(framing, "BATCH", BLOCK)
    assert read(GOOD) == (RECORDS, [])


def test_an_empty_first_piece():
    fill = BLOCK - len(HEADER) - 7 - 7
    records = [b"a" * fill, b"second", b"third"]
    data = HEADER + framed(records)
    assert chunks(data)[1][1:] == (0, 2)
    assert read(data) == (records, [])


def test_whole_and_empty_files():
    assert read(GOOD) == (RECORDS, [])
    assert read(HEADER) == ([], [])
    assert read(b"") == ([], [])


def test_head_gives_the_beginning_of_a_record_that_goes_on():
    batch = framing.read_head(GOOD[: 2 * BLOCK])
    found = [batch.data[a : a + n].tobytes() for a, n in zip(batch.starts, batch.lengths, strict=True)]
    assert found[:-1] == RECORDS[: len(found) - 1]
    assert RECORDS[len(found) - 1].startswith(found[-1])
