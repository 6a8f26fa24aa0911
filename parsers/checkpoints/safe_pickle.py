"""Reads a pickle without making any object of it.

A pickle is a program. This is a machine for it that knows numbers, texts, lists, dicts and tuples, and nothing that acts:
a class or function that the file names becomes a Global (its name), a call of it becomes a Made (the name and the
arguments). Nothing is imported and nothing is called; ``meanings`` lets a reader of tensors say what a few known names
stand for. What a file would have run is listed in ``calls``, for the report.

Memory and time are bounded by the length of the file: every opcode reads bytes from it, repeats are references.
Whoever walks the result has to bound that walk, as references can make a small file a huge or endless tree.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_OPCODES = 20_000_000
"""Opcodes of a pickle: a checkpoint of 100,000 tensors has about ten million."""

MAX_STACK = 5_000_000
"""Objects on the stack at once, and objects remembered: more is no checkpoint."""

MAX_INTEGER_BYTES = 512
"""Length of an integer: turning a longer one into text takes time that grows with its square."""

MAX_LINE_BYTES = 1 << 26
"""Length of a text in a pickle of protocol 0."""

MAX_COPIED = 5_000_000
"""Items that calls such as list(x) may copy in all: references would let a small file copy one list without end."""

MAX_KEY_DEPTH = 3
MAX_KEY_LENGTH = 16
"""Tuples in a key of a dict; real keys are texts, numbers, or a pair of them."""

MAX_NAMES = 1_000
"""Different classes and functions that are listed; a real file names a few dozen."""


class PickleError(ValueError):
    """The pickle is torn, malformed, or past a bound. The message says which, and where."""


@dataclass(frozen=True, slots=True)
class Global:
    """A class or function, by name alone."""

    name: str


@dataclass(slots=True, eq=False)
class Made:
    """What a call in the pickle would have made: the name of what was called, its arguments, and the state set afterwards."""

    name: str
    args: tuple[Any, ...] = ()
    state: Any = None
    items: list[Any] = field(default_factory=list)
    pairs: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pickled:
    """The value, every name that the file mentions, the names that it calls, and where the pickle ends in the data."""

    value: Any
    names: tuple[str, ...]
    calls: tuple[str, ...]
    end: int


Meaning = Callable[[tuple[Any, ...]], Any]
"""What a call of a known name stands for, given its arguments; raises ValueError or TypeError where they do not fit."""

Persistent = Callable[[Any], Any]
"""What a persistent id stands for: in a checkpoint, a storage."""


def load(data: bytes | memoryview, meanings: Mapping[str, Meaning], persistent: Persistent | None = None, start: int = 0) -> Pickled:
    """Read one pickle that begins at ``start``. Raises PickleError; never runs or imports anything."""
    machine = _Machine(data, start, meanings, persistent)
    try:
        value = machine.run()
    except PickleError:
        raise
    except RecursionError as problem:
        raise PickleError(f"nested too deep at byte {machine.at}") from problem
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error) as problem:
        raise PickleError(f"malformed at byte {machine.at}: {type(problem).__name__}: {str(problem)[:120]}") from problem
    return Pickled(value, tuple(machine.names), tuple(machine.calls), machine.at)


_SIZED = (list, tuple, dict, str, bytes)
"""What a call may copy."""

_ALIASES = {"__builtin__": "builtins", "copy_reg": "copyreg", "cPickle": "pickle", "exceptions": "builtins"}
"""Names of modules in Python 2, which protocol 2 still writes."""


def _plain_meanings() -> dict[str, Meaning]:
    """Calls that make plain containers and numbers, and cannot do anything else."""
    return {
        "collections.OrderedDict": lambda args: dict(args[0]) if args else {},
        "collections.defaultdict": lambda args: dict(args[1]) if len(args) > 1 else {},
        "collections.Counter": lambda args: dict(args[0]) if args else {},
        "collections.deque": lambda args: list(args[0]) if args else [],
        "builtins.set": lambda args: list(args[0]) if args else [],
        "builtins.frozenset": lambda args: list(args[0]) if args else [],
        "builtins.list": lambda args: list(args[0]) if args else [],
        "builtins.dict": lambda args: dict(args[0]) if args else {},
        "builtins.tuple": lambda args: tuple(args[0]) if args else (),
        "builtins.complex": lambda args: [float(args[0]), float(args[1])],
        "builtins.slice": list,
        "builtins.bytearray": _bytes,
        "builtins.bytes": _bytes,
        "_codecs.encode": _bytes,
        "torch.Size": lambda args: tuple(args[0]) if args else (),
        "pathlib.Path": lambda args: "/".join(str(a) for a in args),
        "pathlib.PosixPath": lambda args: "/".join(str(a) for a in args),
        "pathlib.WindowsPath": lambda args: "\\".join(str(a) for a in args),
        "pathlib._local.PosixPath": lambda args: "/".join(str(a) for a in args),
        "torch.device": lambda args: ":".join(str(a) for a in args),
        "torch.serialization._get_layout": lambda args: str(args[0]),
    }


def _bytes(args: tuple[Any, ...]) -> bytes:
    """Bytes as protocol 2 writes them: a text and its encoding. A number would ask for that many zeros, and is refused."""
    if not args:
        return b""
    value = args[0]
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode("latin-1")
    if isinstance(value, (list, tuple)):
        return bytes(value)
    raise TypeError("bytes of neither text nor bytes")


_PLAIN = _plain_meanings()


class _Machine:
    """The stack machine. One method per opcode, found by its byte."""

    def __init__(self, data: bytes | memoryview, start: int, meanings: Mapping[str, Meaning], persistent: Persistent | None) -> None:
        self.data = memoryview(data)
        self.at = start
        self.meanings = meanings
        self.persistent = persistent
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.names: dict[str, None] = {}
        self.calls: dict[str, None] = {}
        self.copied = 0

    def run(self) -> Any:
        """Run to STOP and return what is on top of the stack."""
        data, table, end = self.data, _TABLE, len(self.data)
        for _ in range(MAX_OPCODES):
            if self.at >= end:
                raise PickleError(f"torn: it goes on after byte {self.at}, where the data end")
            code = data[self.at]
            self.at += 1
            if code == 0x2E:  # STOP
                return self.pop()
            method = table[code]
            if method is None:
                raise PickleError(f"unknown opcode {code:#04x} at byte {self.at - 1}")
            method(self)
            if len(self.stack) > MAX_STACK or len(self.memo) > MAX_STACK:
                raise PickleError(f"more than {MAX_STACK} objects at byte {self.at}")
        raise PickleError(f"more than {MAX_OPCODES} opcodes")

    # reading

    def take(self, count: int) -> memoryview:
        if count < 0 or self.at + count > len(self.data):
            raise PickleError(f"torn: {count} bytes are announced at byte {self.at}, {len(self.data) - self.at} are left")
        part = self.data[self.at : self.at + count]
        self.at += count
        return part

    def byte(self) -> int:
        at = self.at
        if at >= len(self.data):
            raise PickleError(f"torn at byte {at}")
        self.at = at + 1
        return self.data[at]

    def number(self, shape: str) -> int:
        return int(struct.unpack(shape, self.take(struct.calcsize(shape)))[0])

    def line(self) -> bytes:
        width = 256
        while True:
            part = bytes(self.data[self.at : self.at + width])
            end = part.find(b"\n")
            if end >= 0:
                self.at += end + 1
                return part[:end]
            if len(part) < width or width > MAX_LINE_BYTES:
                raise PickleError(f"torn: no end of line after byte {self.at}")
            width *= 8

    # stack

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if not self.stack or (self.marks and len(self.stack) <= self.marks[-1]):
            raise PickleError(f"nothing on the stack at byte {self.at}")
        return self.stack.pop()

    def to_mark(self) -> list[Any]:
        if not self.marks:
            raise PickleError(f"no mark at byte {self.at}")
        at = self.marks.pop()
        items = self.stack[at:]
        del self.stack[at:]
        return items

    def top(self) -> Any:
        if not self.stack:
            raise PickleError(f"nothing on the stack at byte {self.at}")
        return self.stack[-1]

    # names and calls

    def name(self, module: str, name: str) -> Global:
        full = f"{_ALIASES.get(module, module)}.{name}"[:200]
        if len(self.names) < MAX_NAMES:
            self.names[full] = None
        return Global(full)

    def call(self, target: Any, args: Any) -> Any:
        name = target.name if isinstance(target, Global) else f"<{type(target).__name__}>"
        if not isinstance(args, tuple):
            args = (args,)
        if len(self.calls) < MAX_NAMES:
            self.calls[name] = None
        meaning = self.meanings.get(name) or _PLAIN.get(name)
        if meaning is not None:
            for item in args:
                if isinstance(item, _SIZED):
                    self.copied += len(item)
            if self.copied > MAX_COPIED + len(self.data):
                raise PickleError(f"calls copy more than {MAX_COPIED} items")
            try:
                return meaning(args)
            except (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError):
                return Made(name, args)
        return Made(name, args)

    # opcodes

    def op_mark(self) -> None:
        self.marks.append(len(self.stack))
        if len(self.marks) > MAX_STACK:
            raise PickleError("too many marks")

    def op_proto(self) -> None:
        version = self.byte()
        if version > 5:
            raise PickleError(f"pickle protocol {version} is unknown")

    def op_frame(self) -> None:
        self.take(8)

    def op_pop(self) -> None:
        if self.marks and len(self.stack) == self.marks[-1]:
            self.marks.pop()
        else:
            self.pop()

    def op_pop_mark(self) -> None:
        self.to_mark()

    def op_dup(self) -> None:
        self.push(self.top())

    def op_int(self) -> None:
        text = self.line()
        if text in {b"00", b"01"}:
            self.push(text == b"01")
        else:
            self.push(_integer(text))

    def op_long(self) -> None:
        self.push(_integer(self.line().rstrip(b"L")))

    def op_long1(self) -> None:
        self.long(self.byte())

    def op_long4(self) -> None:
        self.long(self.number("<i"))

    def long(self, count: int) -> None:
        if count > MAX_INTEGER_BYTES:
            raise PickleError(f"an integer of {count} bytes at byte {self.at}")
        self.push(int.from_bytes(self.take(count), "little", signed=True))

    def op_float(self) -> None:
        self.push(float(self.line()))

    def op_binfloat(self) -> None:
        self.push(struct.unpack(">d", self.take(8))[0])

    def op_string(self) -> None:
        text = self.line()
        if len(text) < 2 or text[:1] not in b"'\"" or text[:1] != text[-1:]:
            raise PickleError(f"a text without quotes at byte {self.at}")
        self.push(text[1:-1].decode("latin-1"))

    def op_unicode(self) -> None:
        self.push(self.line().decode("raw-unicode-escape", "replace"))

    def text(self, count: int) -> None:
        self.push(str(self.take(count), "utf-8", "replace"))

    def raw(self, count: int) -> None:
        self.push(bytes(self.take(count)))

    def op_binstring(self) -> None:
        self.push(str(self.take(self.number("<i")), "latin-1"))

    def op_short_binstring(self) -> None:
        self.push(str(self.take(self.byte()), "latin-1"))

    def op_get(self) -> None:
        self.push(self.memo[_integer(self.line())])

    def op_put(self) -> None:
        self.memo[_integer(self.line())] = self.top()

    def op_memoize(self) -> None:
        self.memo[len(self.memo)] = self.top()

    def op_append(self) -> None:
        value = self.pop()
        self.extend(self.top(), [value])

    def op_appends(self) -> None:
        items = self.to_mark()
        self.extend(self.top(), items)

    def extend(self, target: Any, items: list[Any]) -> None:
        if isinstance(target, list):
            target.extend(items)
        elif isinstance(target, Made):
            target.items.extend(items)
        else:
            raise PickleError(f"append to {type(target).__name__} at byte {self.at}")

    def op_setitem(self) -> None:
        value, key = self.pop(), self.pop()
        self.store(self.top(), [key, value])

    def op_setitems(self) -> None:
        items = self.to_mark()
        self.store(self.top(), items)

    def store(self, target: Any, items: list[Any]) -> None:
        if isinstance(target, Made):
            target = target.pairs
        if not isinstance(target, dict):
            raise PickleError(f"a key set on {type(target).__name__} at byte {self.at}")
        for i in range(0, len(items) - 1, 2):
            target[_key(items[i])] = items[i + 1]

    def op_dict(self) -> None:
        items = self.to_mark()
        made: dict[Any, Any] = {}
        self.store(made, items)
        self.push(made)

    def op_additems(self) -> None:
        items = self.to_mark()
        self.extend(self.top(), items)

    def op_global(self) -> None:
        module = self.line().decode("utf-8", "replace")
        self.push(self.name(module, self.line().decode("utf-8", "replace")))

    def op_stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        self.push(self.name(str(module)[:200], str(name)[:200]))

    def op_inst(self) -> None:
        module = self.line().decode("utf-8", "replace")
        target = self.name(module, self.line().decode("utf-8", "replace"))
        self.push(self.call(target, tuple(self.to_mark())))

    def op_obj(self) -> None:
        items = self.to_mark()
        self.push(self.call(items[0], tuple(items[1:])))

    def op_reduce(self) -> None:
        args = self.pop()
        self.push(self.call(self.pop(), args))

    def op_newobj(self) -> None:
        args = self.pop()
        self.push(self.call(self.pop(), args))

    def op_newobj_ex(self) -> None:
        keywords, args = self.pop(), self.pop()
        made = self.call(self.pop(), args)
        if isinstance(made, Made) and isinstance(keywords, dict):
            made.pairs.update(keywords)
        self.push(made)

    def op_build(self) -> None:
        state = self.pop()
        target = self.top()
        setter = getattr(target, "set_state", None)
        if isinstance(target, Made):
            target.state = state
        elif setter is not None:
            setter(state)

    def op_persid(self) -> None:
        self.push(self.stored(self.line().decode("utf-8", "replace")))

    def op_binpersid(self) -> None:
        self.push(self.stored(self.pop()))

    def stored(self, key: Any) -> Any:
        if self.persistent is None:
            raise PickleError(f"a persistent id at byte {self.at} where the format has none")
        return self.persistent(key)

    def op_ext(self) -> None:
        raise PickleError(f"an extension code at byte {self.at - 1}: its meaning is in no file")

    def op_buffer(self) -> None:
        raise PickleError(f"a buffer outside the pickle at byte {self.at - 1}")


def _integer(text: bytes) -> int:
    if len(text) > 2 * MAX_INTEGER_BYTES:
        raise PickleError(f"an integer of {len(text)} digits")
    return int(text)


def _key(key: Any, depth: int = 0) -> Any:
    """The key, if it is one that can be hashed at once: a hash of tuples in tuples without end would overflow the stack of C."""
    if isinstance(key, tuple):
        if depth > MAX_KEY_DEPTH or len(key) > MAX_KEY_LENGTH:
            raise PickleError("tuples nested too deep in a key")
        for part in key:
            _key(part, depth + 1)
    elif not isinstance(key, (str, int, float, bytes, Global, Made, type(None))):
        raise PickleError(f"a {type(key).__name__} as key")
    return key


def _table() -> list[Callable[[_Machine], None] | None]:
    machine = _Machine
    codes: dict[bytes, Callable[[_Machine], None]] = {
        b"(": machine.op_mark,
        b"0": machine.op_pop,
        b"1": machine.op_pop_mark,
        b"2": machine.op_dup,
        b"F": machine.op_float,
        b"G": machine.op_binfloat,
        b"I": machine.op_int,
        b"J": lambda m: m.push(m.number("<i")),
        b"K": lambda m: m.push(m.byte()),
        b"L": machine.op_long,
        b"M": lambda m: m.push(m.number("<H")),
        b"N": lambda m: m.push(None),
        b"P": machine.op_persid,
        b"Q": machine.op_binpersid,
        b"R": machine.op_reduce,
        b"S": machine.op_string,
        b"T": machine.op_binstring,
        b"U": machine.op_short_binstring,
        b"V": machine.op_unicode,
        b"X": lambda m: m.text(m.number("<I")),
        b"a": machine.op_append,
        b"b": machine.op_build,
        b"c": machine.op_global,
        b"d": machine.op_dict,
        b"}": lambda m: m.push({}),
        b"e": machine.op_appends,
        b"g": machine.op_get,
        b"h": lambda m: m.push(m.memo[m.byte()]),
        b"j": lambda m: m.push(m.memo[m.number("<I")]),
        b"i": machine.op_inst,
        b"l": lambda m: m.push(m.to_mark()),
        b"]": lambda m: m.push([]),
        b"o": machine.op_obj,
        b"p": machine.op_put,
        b"q": lambda m: m.memo.__setitem__(m.byte(), m.top()),
        b"r": lambda m: m.memo.__setitem__(m.number("<I"), m.top()),
        b"s": machine.op_setitem,
        b"t": lambda m: m.push(tuple(m.to_mark())),
        b")": lambda m: m.push(()),
        b"u": machine.op_setitems,
        b"\x80": machine.op_proto,
        b"\x81": machine.op_newobj,
        b"\x82": machine.op_ext,
        b"\x83": machine.op_ext,
        b"\x84": machine.op_ext,
        b"\x85": lambda m: m.push((m.pop(),)),
        b"\x86": lambda m: m.push((m.pop(), m.pop())[::-1]),
        b"\x87": lambda m: m.push((m.pop(), m.pop(), m.pop())[::-1]),
        b"\x88": lambda m: m.push(True),
        b"\x89": lambda m: m.push(False),
        b"\x8a": machine.op_long1,
        b"\x8b": machine.op_long4,
        b"B": lambda m: m.raw(m.number("<I")),
        b"C": lambda m: m.raw(m.byte()),
        b"\x8c": lambda m: m.text(m.byte()),
        b"\x8d": lambda m: m.text(m.number("<Q")),
        b"\x8e": lambda m: m.raw(m.number("<Q")),
        b"\x8f": lambda m: m.push([]),
        b"\x90": machine.op_additems,
        b"\x91": lambda m: m.push(m.to_mark()),
        b"\x92": machine.op_newobj_ex,
        b"\x93": machine.op_stack_global,
        b"\x94": machine.op_memoize,
        b"\x95": machine.op_frame,
        b"\x96": lambda m: m.raw(m.number("<Q")),
        b"\x97": machine.op_buffer,
        b"\x98": machine.op_buffer,
    }
    table: list[Callable[[_Machine], None] | None] = [None] * 256
    for code, method in codes.items():
        table[code[0]] = method
    return table


_TABLE = _table()
