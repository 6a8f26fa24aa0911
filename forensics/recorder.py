"""The flight recorder: what a log does not keep, so that a later replay is exact.

    from forensics.recorder import FlightRecorder

    recorder = FlightRecorder("runs/my-run")
    for step in range(steps):
        batch, ids = next(data)
        recorder.begin(step, batch, sample_ids=ids)
        ...                                             # forward, backward, clip, optimizer
        recorder.end(loss=loss, grad_norm=norm, scaler=scaler, lr=lr)

Every step leaves a record of some hundred bytes in ``runs/my-run/flight``. The last batches are held in memory and written
when a step looks wrong or the process dies. Nothing here raises into the training loop, and nothing waits for a device.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec

from forensics.flight import batches, rng
from forensics.flight.files import BATCHES, RecordFile, batch_name, keep_batch
from forensics.flight.process import ENDED, Endings, rank_and_world
from forensics.flight.records import MAX_IDS, MAX_VALUES, Kind, StepRecord, digest_of_ids, digest_text, encode_json, encode_step
from forensics.flight.spread import Spread

RING = 8
"""Steps whose batches are held: the wrong one, and enough before it to tell data from state."""
AFTER = 2
"""Steps whose batches are kept after a wrong one."""
RING_BYTES = 256 << 20
"""Bytes of batches in the ring; larger batches shorten it."""
RECORD_BYTES = 512 << 20
"""Bytes of records on the disk per rank: some two million steps of 32 samples."""
BATCH_BYTES = 1 << 30
"""Bytes of kept batches on the disk per rank."""
PENDING = 4
"""Steps whose values may be on their way from the device before one is waited for."""
PATIENCE = 2.0
"""Seconds that a dying process waits for values from the device, which may hang."""

log = logging.getLogger("forensics.recorder")

_P = ParamSpec("_P")


@dataclass(slots=True)
class _Step:
    """A step in the ring: complete once its values have arrived from the device."""

    step: int
    began: float
    rng: rng.RngState
    batch: batches.Batch | None = None
    parts: list[batches.Batch] = field(default_factory=list)
    ids: list[int | str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    arrival: Any = None
    """A CUDA event after which everything of the step has arrived; None where nothing is under way."""
    digest: int = 0
    recorded: bool = False
    kept: bool = False

    def join(self) -> None:
        """The parts as one batch with its digest; call it when everything has arrived."""
        if self.parts and self.batch is None:
            self.batch = self.parts[0] if len(self.parts) == 1 else batches.joined(self.parts)
            self.digest = self.batch.digest()


def _never_raising(method: Callable[Concatenate[FlightRecorder, _P], None]) -> Callable[Concatenate[FlightRecorder, _P], None]:
    """A method that does nothing in a forked process, and turns any failure into one warning."""

    @wraps(method)
    def guarded(self: FlightRecorder, /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        if self._file is None or os.getpid() != self._process:
            return
        try:
            method(self, *args, **kwargs)
        except Exception as problem:  # noqa: BLE001 - a recorder must not end a training run
            self._warn(problem)

    return guarded


class FlightRecorder:
    """Records every step of a run into ``run_dir/flight``, one file per rank.

    ``ring`` steps of batches are held, up to ``ring_bytes``; ``record_bytes`` and ``batch_bytes`` bound the disk per rank.
    ``rank`` is found out by default. ``endings`` = False leaves signals, exit and the exception hook alone.
    Batches: arrays and tensors in any nesting of mappings, lists, tuples and plain objects.
    """

    def __init__(
        self,
        run_dir: str | os.PathLike[str],
        *,
        ring: int = RING,
        ring_bytes: int = RING_BYTES,
        record_bytes: int = RECORD_BYTES,
        batch_bytes: int = BATCH_BYTES,
        rank: int | None = None,
        endings: bool = True,
    ) -> None:
        self._process = os.getpid()
        self._ring: deque[_Step] = deque()
        self._ring_size, self._ring_bytes, self._batch_bytes = max(1, ring), ring_bytes, batch_bytes
        self._held_bytes = 0
        self._open: _Step | None = None
        self._names: list[str] = []
        self._loss, self._norm = Spread(), Spread(logarithmic=True)
        self._was_wrong, self._keep_until = False, 0
        self._count = 0
        self._before: rng.RngState | None = None
        self._warned: set[str] = set()
        self._file: RecordFile | None = None
        self._endings: Endings | None = None
        found, world = rank_and_world()
        self.rank, self.world = (found if rank is None else rank), world
        try:
            self._file = RecordFile(Path(run_dir), self.rank, max(record_bytes, 1 << 16), self._opening)
            self._before = rng.capture()
            if endings:
                self._endings = Endings(self._ended)
        except Exception as problem:  # noqa: BLE001 - a recorder must not end a training run
            self._warn(problem)

    @property
    def path(self) -> Path | None:
        """The file of records; None where it could not be opened."""
        return None if self._file is None else self._file.path

    @_never_raising
    def begin(self, step: int, batch: object = None, *, sample_ids: Iterable[Any] | None = None) -> None:
        """A step begins: call it when its batch is there and nothing random has been drawn for it.

        Called again for the same step, it adds a micro-batch.
        """
        self._begin(int(step), None, batch, sample_ids)

    @_never_raising
    def end(self, /, *, loss: object = None, grad_norm: object = None, scaler: object = None, **values: object) -> None:
        """The step ends. Values are numbers or tensors with one element; ``scaler`` is a GradScaler or its scale."""
        self._end({"loss": loss, "grad_norm": grad_norm, "loss_scale": _scale_of(scaler), **values})

    @_never_raising
    def step(self, step: int, /, batch: object = None, *, sample_ids: Iterable[Any] | None = None, scaler: object = None, **values: object) -> None:
        """Begin and end in one call, at the end of the step: ``recorder.step(n, batch, loss=loss, grad_norm=norm)``.

        The RNG states kept are those of the end of the step before.
        """
        self._begin(int(step), self._before, batch, sample_ids)
        self._end({**values, "loss_scale": _scale_of(scaler)})
        self._before = rng.capture(self._before)

    @_never_raising
    def flush(self, why: str = "asked for") -> None:
        """Write every batch of the ring that is not on the disk yet."""
        self._settle(wait=True)
        for entry in self._ring:
            self._keep(entry, why)

    @_never_raising
    def note(self, what: str, /, **facts: object) -> None:
        """Write a remark of your own into the file."""
        self._note(what, **facts)

    def close(self) -> None:
        """Write what is under way and close. The ring is not written: the run went well."""
        if self._file is None or os.getpid() != self._process:
            return
        try:
            self._end({})
            self._settle(wait=True)
            self._note("closed")
            self._file.close()
        except Exception as problem:  # noqa: BLE001 - a recorder must not end a training run
            self._warn(problem)
        self._file = None
        self._ring.clear()
        if self._endings is not None:
            self._endings.remove()

    def __enter__(self) -> FlightRecorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self._died(f"{kind.__name__}: {str(value)[:200]}")
        self.close()

    def _opening(self) -> bytes:
        """What every file begins with: without it no record could be read."""
        facts = {"rank": self.rank, "world": self.world, "pid": self._process, "time": time.time()}
        return encode_json(Kind.SESSION, facts) + encode_json(Kind.NAMES, self._names)

    def _begin(self, step: int, state: rng.RngState | None, batch: object, ids: Iterable[Any] | None) -> None:
        current = self._open
        if current is None or current.step != step:
            if current is not None:
                self._end({})
            self._before = state or rng.capture(self._before)
            current = self._open = _Step(step, time.time(), self._before)
        if batch is not None:
            current.parts.append(batches.take(batch))
        if ids is not None:
            current.ids.extend(_plain_ids(ids))

    def _end(self, values: Mapping[str, object]) -> None:
        """A step is over: into the ring, its values on their way, and whatever has arrived into the file."""
        current, self._open = self._open, None
        if current is None:
            return
        for name, value in values.items():
            if value is not None and len(current.values) < MAX_VALUES:
                current.values[name] = batches.on_its_way(value) if _on_device(value) else _number(value)
        if any(_on_device(value) for value in values.values()) or any(part.on_device for part in current.parts):
            import torch  # noqa: PLC0415 - a tensor was passed

            current.arrival = torch.cuda.Event()
            current.arrival.record()
        self._ring.append(current)
        self._held_bytes += sum(part.size for part in current.parts)
        self._trim()
        self._settle()

    def _note(self, what: str, **facts: object) -> None:
        assert self._file is not None
        self._file.append(encode_json(Kind.NOTE, {"what": what, "time": time.time(), **facts}))

    def _warn(self, problem: Exception) -> None:
        kind = type(problem).__name__ + str(getattr(problem, "errno", ""))
        if kind not in self._warned:
            self._warned.add(kind)
            log.warning("the flight recorder failed and training goes on (said once): %s: %s", type(problem).__name__, problem)

    def _trim(self) -> None:
        while len(self._ring) > 1 and (len(self._ring) > self._ring_size or self._held_bytes > self._ring_bytes):
            if not self._ring[0].recorded:
                self._settle(wait=True)
            self._held_bytes -= sum(part.size for part in self._ring.popleft().parts)

    def _settle(self, *, wait: bool = False) -> None:
        """Record the steps whose values have arrived, in order."""
        waiting = [entry for entry in self._ring if not entry.recorded]
        for place, entry in enumerate(waiting):
            if entry.arrival is not None and not entry.arrival.query():
                if not wait and len(waiting) - place <= PENDING:
                    return
                entry.arrival.synchronize()
            self._record(entry)

    def _record(self, entry: _Step) -> None:
        entry.recorded = True
        numbers = {name: _number(value) for name, value in entry.values.items()}
        known = {name: value for name, value in numbers.items() if value is not None}
        entry.values = dict(known)
        entry.join()
        if not entry.digest and entry.ids:
            entry.digest = digest_of_ids(entry.ids)
        self._write(entry, known)
        wrong = self._judge(known)
        if wrong and not self._was_wrong:
            self._note("wrong", step=entry.step, why=wrong)
            self._keep_until = self._count + AFTER
            for other in list(self._ring):
                if other.recorded:
                    self._keep(other, wrong)
            self._sync()
        elif self._count <= self._keep_until and self._keep_until:
            self._keep(entry, "after a wrong step")
        self._was_wrong = bool(wrong)
        self._count += 1

    def _write(self, entry: _Step, values: Mapping[str, float]) -> None:
        assert self._file is not None
        new = [name for name in values if name not in self._names]
        if new:
            self._names = [*self._names, *new][:MAX_VALUES]
            self._file.append(encode_json(Kind.NAMES, self._names))
        record = StepRecord(entry.step, entry.began, entry.digest, entry.rng.digest, values, tuple(entry.ids[:MAX_IDS]))
        self._file.append(encode_step(record, self._names))

    def _judge(self, values: Mapping[str, float]) -> str:
        for name, spread in (("loss", self._loss), ("grad_norm", self._norm)):
            if name in values and spread.far(values[name]):
                kind = "far above its recent level" if math.isfinite(values[name]) else "not finite"
                return f"{name} is {kind} ({values[name]:.6g})"
        return ""

    def _keep(self, entry: _Step, why: str) -> None:
        """Write the batch of a step with its RNG states, once."""
        entry.join()
        if entry.kept or entry.batch is None or self._file is None:
            return
        entry.kept = True
        facts = {
            "step": entry.step,
            "why": why,
            "digest": digest_text(entry.digest),
            "intact": entry.batch.current_digest() == entry.digest,
            "sample_ids": entry.ids[:MAX_IDS],
            "values": {name: value for name, value in entry.values.items() if isinstance(value, float)},
            "rank": self.rank,
            "micro_batches": len(entry.parts),
        }
        data = batches.encode(entry.batch, entry.rng.arrays(), facts)
        name = batch_name(entry.step, self._file.owner)
        if keep_batch(self._file.folder / BATCHES, name, data, self._batch_bytes) is None:
            self._note("batch larger than the budget", step=entry.step, bytes=len(data))
        else:
            self._note("batch kept", step=entry.step, file=f"{BATCHES}/{name}")

    def _sync(self) -> None:
        assert self._file is not None
        self._file.sync()

    @_never_raising
    def _died(self, why: str, final: bool = True) -> None:
        """The process is about to end: everything that can be saved is. Not ``final``: it may go on after all."""
        self._note("ended", why=why, step=None if self._open is None else self._open.step)
        if self._open is not None and final:
            self._ring.append(self._open)
            self._open = None
        deadline = time.monotonic() + PATIENCE
        for entry in [*self._ring, *([] if self._open is None else [self._open])]:
            while entry.arrival is not None and not entry.arrival.query() and time.monotonic() < deadline:
                time.sleep(0.01)
            if entry.arrival is not None and not entry.arrival.query():
                continue
            if not entry.recorded and entry is not self._open:
                self._record(entry)
            self._keep(entry, why)
        self._sync()

    def _ended(self, why: str, final: bool) -> None:
        if why == ENDED:
            self.close()
        else:
            self._died(why, final)


def _on_device(value: Any) -> bool:
    return bool(getattr(getattr(value, "device", None), "type", "cpu") == "cuda")


def _number(value: Any) -> float | None:
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError):
        return None


def _scale_of(scaler: Any) -> Any:
    """The scale without waiting for the device: GradScaler.get_scale() would."""
    if hasattr(scaler, "get_scale"):
        held = getattr(scaler, "_scale", None)
        return scaler.get_scale() if held is None else held
    return scaler


def _plain_ids(ids: Iterable[Any]) -> list[int | str]:
    listed = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if not isinstance(listed, list):
        listed = [listed]
    return [i if isinstance(i, (int, str)) else str(i) for i in listed]
