"""Ways in which files break: flipped bytes, cuts, splices of other files, blocks written twice, zeros, a torn end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

MAX_PLACES = 6
"""Damaged places of one case: enough for two of them to meet."""
LARGEST_BLOCK = 8192

Mutation = Callable[[bytearray, Random, Sequence[bytes]], None]


def mutate(data: bytes, random: Random, others: Sequence[bytes]) -> tuple[str, bytes]:
    """What was done, and the damaged copy. ``others`` are files that blocks are taken from."""
    broken = bytearray(data)
    told = []
    for _ in range(random.choice((1, 1, 1, 2, 3, MAX_PLACES))):
        name = random.choice(tuple(MUTATIONS))
        MUTATIONS[name](broken, random, others)
        told.append(name)
    return " ".join(told), bytes(broken)


def _flip_bit(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _set_byte(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] = random.choice((0, 0xFF, 0x0A, 0x22, 0x2C, 0x7B, random.randrange(256)))


def _tear(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    del data[random.randrange(len(data) + 1) :]


def _cut(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    start, stop = _block(data, random)
    del data[start:stop]


def _repeat(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    start, stop = _block(data, random)
    data[stop:stop] = data[start:stop]


def _splice(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    other = random.choice(others)
    start, stop = _block(other, random)
    at = random.randrange(len(data) + 1)
    data[at : at + (stop - start) * random.randrange(2)] = other[start:stop]


def _blank(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    start, stop = _block(data, random)
    data[start:stop] = bytes([random.choice((0, 0, 0xFF, 0x20))]) * (stop - start)


def _shuffle(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    start, stop = _block(data, random)
    moved = data[start:stop]
    del data[start:stop]
    at = random.randrange(len(data) + 1)
    data[at:at] = moved


def _block(data: bytes | bytearray, random: Random) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + 1 + int(random.random() ** 3 * LARGEST_BLOCK))


MUTATIONS: dict[str, Mutation] = {
    "flip": _flip_bit,
    "set": _set_byte,
    "tear": _tear,
    "cut": _cut,
    "repeat": _repeat,
    "splice": _splice,
    "blank": _blank,
    "shuffle": _shuffle,
}
