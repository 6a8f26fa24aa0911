"""What the recorder left behind, step by step: for replays."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from forensics.flight.batches import KeptBatch, read_batch, take
from forensics.flight.files import BATCHES, batch_step
from forensics.flight.records import FOLDER, MAGIC, SUFFIX, Frame, Kind, StepRecord, decode, decode_step, digest_text


class OtherBatchError(ValueError):
    """A batch is not the one that the run saw at that step."""


@dataclass(slots=True)
class FlightLog:
    """The records and kept batches of one rank of a run. Where a step was run twice, the later record counts."""

    run_dir: Path
    rank: int = 0
    _steps: dict[int, StepRecord] | None = field(default=None, repr=False)

    @property
    def steps(self) -> dict[int, StepRecord]:
        """The records by step; {} where there are none. Raises OSError where a file cannot be read."""
        if self._steps is None:
            self._steps = {}
            for path in (self.run_dir / FOLDER / f"rank{self.rank}.older{SUFFIX}", self.run_dir / FOLDER / f"rank{self.rank}{SUFFIX}"):
                if path.exists():
                    self._steps.update(_records(path))
        return self._steps

    def kept(self, step: int) -> KeptBatch | None:
        """The batch of a step as it was kept; None where it was not kept, is damaged, or was written over before it was kept."""
        folder = self.run_dir / FOLDER / BATCHES
        owners = (f"-rank{self.rank}.safetensors", f"-rank{self.rank}-pid")
        for path in sorted(folder.glob(f"step*{step}-rank{self.rank}*.safetensors"), reverse=True):
            if batch_step(path.name) != step or not any(owner in path.name for owner in owners):
                continue
            try:
                found = read_batch(path)
            except (OSError, ValueError):
                continue
            if found.facts.get("intact") is True:
                return found
        return None

    def sample_ids(self, step: int) -> tuple[int | str, ...]:
        """Ids of the samples of a step; () where they were not given."""
        record = self.steps.get(step)
        return () if record is None else record.sample_ids

    def check(self, step: int, batch: object) -> bool:
        """Whether the record of the step confirms the batch; False without a record.

        Raises OtherBatchError where the record names another one. The batch is compared as ``take`` sees it: same arrays in the
        same order, on any device.
        """
        record = self.steps.get(step)
        if record is None or not record.batch_digest:
            return False
        found = take(batch).digest()
        if found != record.batch_digest:
            text = f"the recipe's batch of step {step} is not the one the run saw: digest {digest_text(found)}, recorded {digest_text(record.batch_digest)}"
            raise OtherBatchError(text)
        return True


def _records(path: Path) -> dict[int, StepRecord]:
    data = path.read_bytes()
    found: dict[int, StepRecord] = {}
    names: list[str] = []
    if not data.startswith(MAGIC):
        return found
    for item in decode(data):
        try:
            if isinstance(item, Frame) and item.kind == Kind.NAMES:
                names = [str(name) for name in json.loads(item.payload)]
            elif isinstance(item, Frame) and item.kind == Kind.STEP:
                record = decode_step(item.payload, names)
                found[record.step] = record
        except (ValueError, TypeError, RecursionError):
            continue
    return found
