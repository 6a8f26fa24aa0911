"""What tells one process of a job from another, and the ways in which a process ends."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
WORLD_VARIABLES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name))
"""The end by a scheduler, and SLURM's usual warning before it."""

ENDED = "the process ended"
"""The reason given at an ordinary exit."""

Flush = Callable[[str, bool], None]
"""Called with the reason, and whether the process is sure to end now."""


def rank_and_world() -> tuple[int, int]:
    """Rank of the process and the number of ranks: from torch.distributed where it runs, else from the launcher's environment."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()), int(distributed.get_world_size())
    return _number(RANK_VARIABLES, 0), max(1, _number(WORLD_VARIABLES, 1))


def _number(names: tuple[str, ...], default: int) -> int:
    return next((int(v) for name in names if (v := os.environ.get(name, "")).isdecimal()), default)


class Endings:
    """Calls ``flush(why, final)`` when the process is told to end, dies of an exception, or ends; in this process only, never in a fork.

    What was there before (signal handlers, the exception hook) is called afterwards.
    """

    def __init__(self, flush: Flush) -> None:
        self._flush = flush
        self._process = os.getpid()
        self._before: dict[int, Any] = {}
        self._hook = sys.excepthook
        self._installed_hook = self._excepthook
        sys.excepthook = self._installed_hook
        atexit.register(self._at_exit)
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.getsignal(number)
                if before is not None and not (number != signal.SIGTERM and before == signal.SIG_DFL):
                    self._before[number] = before
                    signal.signal(number, self._signalled)

    def remove(self) -> None:
        """Put back what was there, as far as nobody came in between."""
        atexit.unregister(self._at_exit)
        if sys.excepthook == self._installed_hook:
            sys.excepthook = self._hook
        if threading.current_thread() is threading.main_thread():
            for number, before in self._before.items():
                if signal.getsignal(number) == self._signalled:
                    signal.signal(number, before)
        self._before.clear()

    def _call(self, why: str, final: bool) -> None:
        if os.getpid() == self._process:
            self._flush(why, final)

    def _at_exit(self) -> None:
        self._call(ENDED, True)

    def _excepthook(self, kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        self._call(f"{kind.__name__}: {str(value)[:200]}", True)
        self._hook(kind, value, trace)

    def _signalled(self, number: int, stack: FrameType | None) -> None:
        before = self._before.get(number, signal.SIG_DFL)
        self._call(signal.Signals(number).name, before == signal.SIG_DFL)
        if callable(before):
            before(number, stack)
        elif before == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
