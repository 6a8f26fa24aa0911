"""Starts the child, waits for it, and keeps whatever it has written when it ends in any way."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forensics.replay.wire import Request

TICK = 0.1
"""Seconds between two looks at the results file."""

LAST_WORDS = 4000
"""Characters of the child's own output that are kept for the error message."""


@dataclass(slots=True)
class Replay:
    """What came back. ``failed`` is None after a replay that ended by itself; ``output`` the last lines the user's code printed."""

    outcomes: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    reproduced: bool | None = None
    noise: Mapping[str, float] = field(default_factory=dict)
    band: Mapping[str, float] = field(default_factory=dict)
    slide: dict[str, Any] | None = None
    limits: list[str] = field(default_factory=list)
    failed: str | None = None
    failure: str = ""
    trace: str = ""
    output: str = ""
    seconds: float = 0.0
    steps_taken: int = 0

    def take(self, message: Mapping[str, Any]) -> str | None:
        """Note one message; returns a text for the progress line."""
        kind = message.get("message")
        if kind == "outcome":
            self.outcomes[message["outcome"]["id"]] = message["outcome"]
        elif kind == "steps":
            self.rows, self.reproduced = message["rows"], message["reproduced"]
            self.noise, self.band = message["noise"], message["band"]
        elif kind == "slide":
            self.slide = message["slide"]
        elif kind == "limits":
            self.limits, self.steps_taken = list(message["limits"]), message.get("steps_taken", 0)
        elif kind == "failed":
            self.failure, self.failed, self.trace = message["kind"], message["text"], message.get("trace", "")
        elif kind == "phase":
            return str(message["text"])
        elif kind == "done":
            self.failure = "done"
        return None


def run(request: Request, *, timeout: float, progress: Callable[[str], None] = lambda _: None) -> Replay:
    """Run a replay in a child process. A crash, an exit, a hang and a lack of memory are results, not errors."""
    replay = Replay()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="forensics-replay-") as folder:
        asked, results, words = (Path(folder) / n for n in ("request.json", "results.jsonl", "output.txt"))
        asked.write_text(request.to_json(), encoding="utf-8")
        results.touch()
        with words.open("wb") as out:
            child = subprocess.Popen(  # noqa: S603 - our own module; the recipe is the user's, by name
                [sys.executable, "-P", "-m", "forensics.replay.child", str(asked), str(results)],
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            _follow(child, results, replay, began + timeout, progress)
        except KeyboardInterrupt:
            replay.failure, replay.failed = "interrupted", "interrupted"
            raise
        finally:
            _end(child)
        replay.output = words.read_bytes()[-LAST_WORDS:].decode("utf-8", "replace")
    replay.seconds = time.monotonic() - began
    _judge(child.returncode, replay, timeout)
    return replay


def _follow(child: subprocess.Popen[bytes], results: Path, replay: Replay, until: float, progress: Callable[[str], None]) -> None:
    with results.open(encoding="utf-8") as file:
        rest = ""
        while True:
            ended = child.poll() is not None
            rest += file.read()
            *lines, rest = rest.split("\n")
            for line in lines:
                text = _note(line, replay)
                if text:
                    progress(text)
            if ended:
                return
            if time.monotonic() > until:
                replay.failure, replay.failed = "timeout", "it did not end in time"
                return
            time.sleep(TICK)


def _note(line: str, replay: Replay) -> str | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return replay.take(message) if isinstance(message, dict) else None


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and everything it started."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(2)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _judge(code: int, replay: Replay, timeout: float) -> None:
    if replay.failure == "done":
        replay.failure = ""
        return
    words = [line for line in replay.output.strip().splitlines() if line.strip()]
    last = f"; the last it printed: {words[-1][:300]}" if words else ""
    if replay.failure == "timeout":
        replay.failed = f"the replay did not end within {timeout:g} s (--timeout){last}"
    elif replay.failed is None and code < 0:
        name = signal.Signals(-code).name if -code in {s.value for s in signal.Signals} else str(-code)
        memory = "; it may have run out of memory" if -code == signal.SIGKILL else ""
        replay.failure, replay.failed = "crash", f"the process died of signal {name}{memory}{last}"
    elif replay.failed is None:
        replay.failure, replay.failed = "exit", f"the recipe ended the process with exit code {code} before the replay was done{last}"
