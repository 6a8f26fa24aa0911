"""What a parser is: a module with NAME, ``sniff`` and ``parse``.

``sniff`` looks at a bounded head and says "mine" (a Claim) or None. ``parse`` reads everything into a Sink. A parser that
finds out late that a file is not its own raises NotMine; whatever it cannot read of its own file becomes Damage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from forensics.parsers.sink import Sink

HEAD_BYTES = 1 << 16
"""How much of a file ``sniff`` may see: enough for any header, little enough for a folder of thousands of files."""

Progress = Callable[[int], None]
"""Called with the number of bytes just read."""


class NotMine(Exception):
    """The file turned out to be of another format. Not an error: discovery tries the next claim."""


@dataclass(frozen=True, slots=True)
class Source:
    """A candidate input: a file with its first bytes, or a folder (``head`` empty)."""

    path: Path
    size: int
    head: bytes
    is_dir: bool = False

    @classmethod
    def of(cls, path: Path) -> Source:
        """Open a path for sniffing. Raises OSError where it cannot be read."""
        if path.is_dir():
            return cls(path, 0, b"", is_dir=True)
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        return cls(path, path.stat().st_size, head)


@dataclass(frozen=True, slots=True)
class RunKey:
    """A run inside a source. ``id`` is the format's own id ("" where a file holds exactly one anonymous run).

    ``order`` sorts the sources of one run (wall time of the first record where known).
    """

    id: str = ""
    name: str = ""
    order: float = 0.0


@dataclass(frozen=True, slots=True)
class Claim:
    """"This is mine." ``confidence`` 1..100 decides between parsers; ``adjunct`` marks config files, which are no run."""

    parser: str
    confidence: int
    runs: tuple[RunKey, ...] = (RunKey(),)
    adjunct: bool = False


class Parser(Protocol):
    """The shape of a parser module."""

    NAME: str

    def sniff(self, source: Source) -> Claim | None:
        """Claim the source, or None."""

    def parse(self, source: Source, sink: Sink, run: RunKey) -> None:
        """Read the run ``run`` of the source into the sink. Raises NotMine or OSError; everything else is Damage."""
