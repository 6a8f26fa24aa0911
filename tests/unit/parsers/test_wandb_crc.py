"""The register arithmetic agrees with zlib on every chunk length, and one wrong bit shows."""

import struct

import numpy as np
from wandb_records import chunk

from forensics.parsers.wandb_crc import after_chunk, register_of


def follow(chain):
    register = np.zeros(1, np.uint32)
    for data in chain:
        header = np.array(struct.unpack("<Q", (data + bytes(8))[:8]), np.uint64)
        register = after_chunk(register, header, np.array([len(data) - 6]))
    return int(register[0])


def test_a_wrong_bit_anywhere_makes_a_difference():
    good = [chunk(1, b"abc"), chunk(2, b"defgh" * 100), chunk(4, b"")]
    truth = register_of(memoryview(b"".join(good)))
    for k in range(3):
        for at in range(len(good[k])):
            bad = bytearray(good[k])
            bad[at] ^= 0x10
            chain = [*good[:k], bytes(bad), *good[k + 1 :]]
            assert follow(chain) != register_of(memoryview(b"".join(chain))) or follow(chain) != truth


def test_payload_damage_is_seen_against_the_bytes_on_disk():
    good = [chunk(1, bytes(range(200))), chunk(1, b"x" * 300)]
    bad = bytearray(b"".join(good))
    bad[50] ^= 1
    assert follow(good) != register_of(memoryview(bytes(bad)))


def test_lengths_from_empty_to_a_whole_block():
    rng = np.random.default_rng(1)
    chain = [chunk(1 + n % 4, rng.bytes(n)) for n in [*range(260), 511, 512, 513, 4095, 32760, 32761]]
    assert follow(chain) == register_of(memoryview(b"".join(chain)))
