"""Configuration inside event files: hyperparameters of the hparams plugin, and JSON objects logged as text.

``SummaryWriter.add_hparams`` hides a SessionStartInfo message in the metadata of one tag; the Hugging Face Trainer and
many others log their arguments as one JSON text.
"""

from __future__ import annotations

import json
import struct

from forensics.parsers.tensorboard_wire import Field, Other, fields, varint

MAX_DEPTH = 8
"""Nesting of hyperparameter values that is followed."""

MAX_JSON = 1 << 20
"""Bytes of a text that is tried as JSON: a configuration, not a data set."""

HPARAMS_PLUGIN = "hparams"
TEXT_PLUGIN = "text"
TEXT_SUFFIX = "/text_summary"
"""What add_text appends to the tag it is given."""

_STRING_DTYPE = 7
_TOO_DEEP = "..."


def plugin(data: bytes, value: Other) -> tuple[str, bytes]:
    """Name and content of the plugin in a value's SummaryMetadata; empty where there is none. Raises MalformedError."""
    name, content = "", b""
    for outer in fields(data, value.metadata_start, value.metadata_stop):
        if outer.key == 0x0A:
            for item in fields(data, outer.start, outer.stop):
                if item.key == 0x0A:
                    name = text_of(data[item.start : item.stop])
                elif item.key == 0x12:
                    content = data[item.start : item.stop]
    return name, content


def text_of(data: bytes) -> str:
    """Bytes as text; what is not UTF-8 stays visible as an escape."""
    return data.decode("utf-8", "backslashreplace")


def hparams(content: bytes) -> dict[str, object]:
    """Hyperparameters of an HParamsPluginData with a SessionStartInfo; empty for its other kinds. Raises MalformedError."""
    found: dict[str, object] = {}
    for outer in fields(content, 0, len(content)):
        if outer.key != 0x1A:
            continue
        for entry in fields(content, outer.start, outer.stop):
            if entry.key == 0x0A:
                key, value = _entry(content, entry, 0)
                found[key] = value
    return found


def json_text(data: bytes, value: Other) -> dict[str, object]:
    """The JSON object in a string tensor of one element, or an empty dict where it holds anything else. Raises MalformedError."""
    dtype, texts = 0, []
    for item in fields(data, value.start, value.stop):
        if item.key == 0x08:
            dtype = varint(data, item.start, item.stop)
        elif item.key == 0x42:
            texts.append(item)
    if dtype != _STRING_DTYPE or len(texts) != 1 or texts[0].stop - texts[0].start > MAX_JSON:
        return {}
    text = data[texts[0].start : texts[0].stop].strip()
    if not (text.startswith(b"{") and text.endswith(b"}")):
        return {}
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()  # lone surrogates would break every later writer
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _entry(data: bytes, entry: Field, depth: int) -> tuple[str, object]:
    """One entry of a map<string, Value>."""
    key, value = "", None
    for item in fields(data, entry.start, entry.stop):
        if item.key == 0x0A:
            key = text_of(data[item.start : item.stop])
        elif item.key == 0x12:
            value = _value(data, item, depth)
    return key, value


def _value(data: bytes, outer: Field, depth: int) -> object:
    """A google.protobuf.Value."""
    found: object = None
    if depth > MAX_DEPTH:
        return _TOO_DEEP
    for item in fields(data, outer.start, outer.stop):
        match item.key:
            case 0x08:
                found = None
            case 0x11:
                found = struct.unpack_from("<d", data, item.start)[0]
            case 0x1A:
                found = text_of(data[item.start : item.stop])
            case 0x20:
                found = varint(data, item.start, item.stop) != 0
            case 0x2A:
                entries = (e for e in fields(data, item.start, item.stop) if e.key == 0x0A)
                found = dict(_entry(data, e, depth + 1) for e in entries)
            case 0x32:
                found = [_value(data, e, depth + 1) for e in fields(data, item.start, item.stop) if e.key == 0x0A]
    return found
