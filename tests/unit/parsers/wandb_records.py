"""Byte-true ``.wandb`` files for tests: protobuf fields, records and their framing."""

import json
import struct
import zlib

HEADER = b":W&B\xe1\xbe\x00"
BLOCK = 32768


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def text(field, value):
    data = value if isinstance(value, bytes) else value.encode()
    return varint(field << 3 | 2) + varint(len(data)) + data


def integer(field, value):
    return varint(field << 3) + varint(value)


def item(key, value, *, nested=True, raw=None):
    """A HistoryItem; ``key`` may be a tuple for a nested key."""
    parts = key if isinstance(key, tuple) else (key,)
    name = b"".join(text(2, part) for part in parts) if nested else text(1, "/".join(parts))
    return text(1, name + text(16, json.dumps(value) if raw is None else raw))


def history(row, step=None, **options):
    body = b"".join(item(key, value, **options) for key, value in row.items())
    return text(2, body + (b"" if step is None else text(2, integer(1, step) if step else b"")))


def record(number, body):
    return integer(1, number) + body


def run_record(run_id="abc", name="a name", config=(), **fields):
    updates = b"".join(text(1, text(1, key) + text(16, json.dumps(value))) for key, value in dict(config).items())
    extra = b"".join(integer(int(k[1:]), v) for k, v in fields.items())
    start = text(17, integer(1, 1_790_000_000) + integer(2, 500_000_000))
    return text(17, text(1, run_id) + text(3, "project") + text(4, updates) + text(8, name) + text(13, "secrethost") + start + extra)


def metric(name="", glob="", step_metric=""):
    return text(12, text(1, name) + text(2, glob) + text(4, step_metric))


def stats(time, **values):
    items = b"".join(text(3, text(1, k) + text(16, json.dumps(v))) for k, v in values.items())
    return text(7, text(2, integer(1, time)) + items)


def chunk(kind, payload):
    return struct.pack("<IHB", zlib.crc32(bytes([kind]) + payload), len(payload), kind) + payload


def framed(records):
    """Records in blocks, without the file header."""
    start, out = len(HEADER), bytearray()
    for data in records:
        first, rest = True, data
        while True:
            left = BLOCK - (start + len(out)) % BLOCK
            if left < 7:
                out += bytes(left)
                left = BLOCK
            part, rest = rest[: left - 7], rest[left - 7 :]
            kind = (1 if first else 4) if not rest else (2 if first else 3)
            out += chunk(kind, part)
            first = False
            if not rest:
                break
    return bytes(out)


def log(bodies):
    """A whole file from record bodies, numbered from 1."""
    return HEADER + framed(record(i + 1, body) for i, body in enumerate(bodies))


def chunks(data):
    """(position, length, kind) of every chunk of an undamaged file."""
    at, found = len(HEADER), []
    while at + 7 <= len(data):
        left = BLOCK - at % BLOCK
        if left < 7:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        found.append((at, length, kind))
        at += 7 + length
    return found


def flip(data, at, mask=1):
    out = bytearray(data)
    out[at] ^= mask
    return bytes(out)
