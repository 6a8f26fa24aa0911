"""The recorder in a training loop that breaks, in a process that dies, on a disk that is full."""

from __future__ import annotations

import logging
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from forensics.flight.batches import read_batch
from forensics.flight.files import RecordFile
from forensics.flight.rng import restore
from forensics.loading import load
from forensics.model import Run, Signal
from forensics.parsers.checkpoints.beside import checkpoints_of
from forensics.recorder import FlightRecorder


def train(recorder: FlightRecorder, steps: range, bad: int | None = None) -> dict[int, np.ndarray]:
    rng = np.random.default_rng(0)
    seen = {}
    for step in steps:
        seen[step] = rng.integers(0, 256, (4, 16))
        recorder.begin(step, {"tokens": seen[step]}, sample_ids=[4 * step, 4 * step + 1])
        loss = 3.0 + 0.05 * rng.normal() + (2.0 if step == bad else 0.0)
        recorder.end(loss=loss, grad_norm=1.0 + 0.1 * rng.normal(), lr=1e-3)
    return seen


def signals(run: Run) -> dict[str, Signal]:
    return {s.name: s for s in run.signals}


def kept(folder: Path) -> list[int]:
    return sorted(int(p.name[4:14]) for p in (folder / "flight/batches").glob("*.safetensors"))


def test_a_folder_that_cannot_be_written_is_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "flight").write_text("a file where the folder should be")
    recorder = FlightRecorder(tmp_path)
    train(recorder, range(3))
    recorder.flush()
    recorder.close()
    assert len([r for r in caplog.records if r.levelno == logging.WARNING]) == 1
    assert recorder.path is None


def test_a_full_disk_is_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = FlightRecorder(tmp_path, endings=False)

    def full(self: RecordFile, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RecordFile, "append", full)
    train(recorder, range(50), bad=45)
    assert [r.message.count("No space left") for r in caplog.records] == [1]


def test_things_that_are_no_batch_and_no_number(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with FlightRecorder(tmp_path, endings=False) as recorder:
        recorder.end(loss=1.0)
        recorder.begin(0, object(), sample_ids=[None, "a", 2**80])
        recorder.end(loss="what", grad_norm=[1, 2], lr=float("nan"), scaler=object())
        recorder.begin("no step")  # type: ignore[arg-type]
        recorder.step(1, {1: [None, True, 2.5, "text", {"deep": np.float32(3)}]}, loss=np.float32(2.5))
    run = load(tmp_path)
    assert signals(run)["loss"].values.tolist() == [2.5]
    assert math.isnan(signals(run)["lr"].values[0])
    assert len(caplog.records) == 1


def test_a_constant_or_falling_loss_keeps_nothing(tmp_path: Path) -> None:
    with FlightRecorder(tmp_path, endings=False) as recorder:
        for step in range(300):
            recorder.step(step, np.zeros(3), loss=3.0 if step < 100 else 3.0 * 0.99 ** (step - 100), grad_norm=1.0)
    assert not (tmp_path / "flight/batches").exists()


def test_a_wrong_step_keeps_the_ring_and_two_more(tmp_path: Path) -> None:
    with FlightRecorder(tmp_path, ring=4, endings=False) as recorder:
        seen = train(recorder, range(100), bad=60)
    assert kept(tmp_path) == [57, 58, 59, 60, 61, 62]
    batch = read_batch(tmp_path / "flight/batches/step0000000060-rank0.safetensors")
    assert np.array_equal(batch.value(tensors=False)["tokens"], seen[60])
    assert batch.facts["sample_ids"] == [240, 241]
    assert batch.facts["intact"] is True
    assert "far above" in str(batch.facts["why"])
    run = load(tmp_path)
    assert len(signals(run)["loss"]) == 100
    assert "wrong at step 60" in str(run.notes["flight_recorder_rank0"])


def test_kept_batches_are_no_checkpoints(tmp_path: Path) -> None:
    with FlightRecorder(tmp_path, endings=False) as recorder:
        recorder.step(0, {"x": np.array([1e30, 1.0])}, loss=float("nan"))
    assert kept(tmp_path) == [0]
    assert checkpoints_of(tmp_path) == ()


def test_a_loss_that_stays_nan_is_kept_once(tmp_path: Path) -> None:
    with FlightRecorder(tmp_path, ring=3, endings=False) as recorder:
        for step in range(200):
            recorder.step(step, np.full(4, step), loss=float("nan") if step >= 50 else 1.0)
    assert kept(tmp_path) == [48, 49, 50, 51, 52]


def test_the_disk_is_bounded(tmp_path: Path) -> None:
    recorder = FlightRecorder(tmp_path, ring=2, record_bytes=1 << 16, batch_bytes=20_000, endings=False)
    for step in range(3000):
        recorder.step(step, np.zeros(500), sample_ids=range(8), loss=float("nan") if step % 50 == 49 else 1.0)
    recorder.close()
    records = sum(p.stat().st_size for p in (tmp_path / "flight").glob("*.flight"))
    batches = sum(p.stat().st_size for p in (tmp_path / "flight/batches").iterdir())
    assert records <= 1 << 16
    assert 10_000 < batches <= 20_000
    assert kept(tmp_path)[-1] == 2999
    run = load(tmp_path)
    steps = signals(run)["loss"].steps
    assert steps[-1] == 2999
    assert (np.diff(steps) == 1).all()


def test_a_batch_larger_than_the_budget_is_said(tmp_path: Path) -> None:
    with FlightRecorder(tmp_path, batch_bytes=1000, endings=False) as recorder:
        recorder.step(0, np.zeros(1000), loss=float("inf"))
    assert "larger than the budget" in str(load(tmp_path).notes["flight_recorder_rank0"])


def test_a_batch_written_over_later_is_not_passed_off_as_whole(tmp_path: Path) -> None:
    buffer = np.zeros(1 << 16)
    with FlightRecorder(tmp_path, endings=False) as recorder:
        for step in range(3):
            buffer[:] = step
            recorder.step(step, buffer, loss=float("nan") if step == 2 else 1.0)
    facts = [read_batch(p).facts for p in sorted((tmp_path / "flight/batches").iterdir())]
    assert [f["intact"] for f in facts] == [False, False, True]


def test_the_random_state_of_a_step_comes_back(tmp_path: Path) -> None:
    random.seed(1)
    np.random.seed(2)
    drawn = {}
    with FlightRecorder(tmp_path, endings=False) as recorder:
        for step in range(6):
            recorder.begin(step, np.zeros(1))
            drawn[step] = (random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn())
            recorder.end(loss=float("nan") if step == 5 else 1.0)
    for step in range(6):
        left = restore(read_batch(tmp_path / f"flight/batches/step{step:010d}-rank0.safetensors").rng)
        assert left == ()
        assert (random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn()) == drawn[step]


def test_two_recorders_of_one_rank_do_not_mix(tmp_path: Path) -> None:
    with FlightRecorder(tmp_path, endings=False) as one, FlightRecorder(tmp_path, endings=False) as other:
        one.step(0, loss=1.0)
        other.step(0, loss=2.0)
        assert one.path != other.path


def test_micro_batches_are_one_step(tmp_path: Path) -> None:
    with FlightRecorder(tmp_path, endings=False) as recorder:
        for micro in range(3):
            recorder.begin(7, {"x": np.full(2, micro)}, sample_ids=[micro])
        recorder.end(loss=float("nan"))
    batch = read_batch(tmp_path / "flight/batches/step0000000007-rank0.safetensors")
    assert [part["x"].tolist() for part in batch.value(tensors=False)] == [[0, 0], [1, 1], [2, 2]]
    assert batch.facts["sample_ids"] == [0, 1, 2]


def test_equal_batches_have_equal_ids_in_every_process(tmp_path: Path) -> None:
    with FlightRecorder(tmp_path, endings=False) as recorder:
        for step in range(4):
            recorder.step(step, {"x": np.full((64, 64), step % 2)}, loss=1.0)
    ids = signals(load(tmp_path))["batch_id"].values.tolist()
    assert ids[0] == ids[2] != ids[1] == ids[3]
    code = f"""
import numpy as np
from forensics.recorder import FlightRecorder
FlightRecorder({str(tmp_path / "other")!r}).step(0, {{"x": np.asfortranarray(np.full((64, 64), 1))}}, loss=1.0)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert signals(load(tmp_path / "other"))["batch_id"].values.tolist() == [ids[1]]


PROGRAM = """
import os, signal, sys, time
import numpy as np
from forensics.recorder import FlightRecorder
recorder = FlightRecorder(sys.argv[1])
for step in range(20):
    recorder.begin(step, np.full(3, step), sample_ids=[step])
    if step == 12:
        {at}
    recorder.end(loss=1.0)
"""


@pytest.mark.parametrize(
    ("at", "code", "why"),
    [
        ("raise RuntimeError('CUDA error: device-side assert')", 1, "RuntimeError: CUDA error: device-side assert"),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)", -signal.SIGTERM, "SIGTERM"),
    ],
)
def test_a_dying_process_keeps_its_ring(tmp_path: Path, at: str, code: int, why: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(at=at), str(tmp_path)], capture_output=True, check=False)
    assert done.returncode == code
    assert kept(tmp_path) == list(range(4, 13))
    assert read_batch(tmp_path / "flight/batches/step0000000012-rank0.safetensors").facts["why"] == why
    run = load(tmp_path)
    assert run.damage == ()
    assert len(signals(run)["loss"]) == 12
    assert signals(run)["batch_id"].steps.tolist() == list(range(13))
    assert f"ended at step 12: {why}" in str(run.notes["flight_recorder_rank0"])


def test_a_killed_process_leaves_its_records(tmp_path: Path) -> None:
    at = "os.kill(os.getpid(), signal.SIGKILL)"
    subprocess.run([sys.executable, "-c", PROGRAM.format(at=at), str(tmp_path)], check=False)
    assert len(signals(load(tmp_path))["loss"]) == 12


def test_a_handler_that_was_there_is_still_called(tmp_path: Path) -> None:
    called: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: called.append(number))
    try:
        recorder = FlightRecorder(tmp_path)
        recorder.begin(0, np.zeros(2))
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0)
        recorder.end(loss=1.5)
        recorder.close()
        assert called == [signal.SIGTERM]
        os.kill(os.getpid(), signal.SIGTERM)
        assert len(called) == 2
    finally:
        signal.signal(signal.SIGTERM, before)
    assert kept(tmp_path) == [0]
    assert signals(load(tmp_path))["loss"].values.tolist() == [1.5]


def test_a_forked_process_writes_nothing(tmp_path: Path) -> None:
    code = f"""
import os
from forensics.recorder import FlightRecorder
recorder = FlightRecorder({str(tmp_path)!r})
recorder.step(0, loss=1.0)
if os.fork() == 0:
    recorder.step(1, loss=2.0)
    recorder.close()
    raise SystemExit(3)
os.wait()
recorder.step(1, loss=3.0)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
    assert signals(load(tmp_path))["loss"].values.tolist() == [1.0, 3.0]


def test_each_rank_has_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with FlightRecorder(tmp_path, endings=False) as recorder:
        recorder.step(0, loss=1.0)
    assert [p.name for p in (tmp_path / "flight").iterdir()] == ["rank3.flight"]


def test_torch_is_not_loaded_for_it(tmp_path: Path) -> None:
    code = f"""
import sys, numpy
from forensics.recorder import FlightRecorder
FlightRecorder({str(tmp_path)!r}).step(0, numpy.zeros(2), loss=1.0)
assert 'torch' not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
