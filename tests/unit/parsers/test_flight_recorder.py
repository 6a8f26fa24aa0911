from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np

from forensics import analyze
from forensics.flight.records import HEAD, MAGIC, Kind, StepRecord, encode_json, encode_step
from forensics.loading import load
from forensics.parsers import flight_recorder
from forensics.parsers.discovery import discover
from forensics.parsers.interface import Source
from forensics.reports import terminal


def content(steps: range, *, rank: int = 0, world: int = 1, shift: float = 0.0, since: float = 1000.0) -> bytes:
    names = ["loss", "grad_norm"]
    parts = [MAGIC, encode_json(Kind.SESSION, {"rank": rank, "world": world, "pid": 1, "time": since + steps.start}), encode_json(Kind.NAMES, names)]
    for step in steps:
        values = {"loss": 5.0 - step / 100 + shift, **({"grad_norm": 1.0} if step % 2 == 0 else {})}
        parts.append(encode_step(StepRecord(step, since + step, batch_digest=2**63 + step, values=values, sample_ids=(step, step + 1)), names))
    return b"".join(parts)


def write(folder: Path, name: str, data: bytes) -> Path:
    (folder / "flight").mkdir(exist_ok=True)
    path = folder / "flight" / name
    path.write_bytes(data)
    return path


def test_a_torn_tail_is_damage_and_the_rest_is_read(tmp_path: Path) -> None:
    whole = content(range(20))
    write(tmp_path, "rank0.flight", whole[:-7])
    run = load(tmp_path)
    assert {s.name: len(s) for s in run.signals} == {"loss": 19, "grad_norm": 10, "batch_id": 19}
    (damage,) = run.damage
    assert "cut" in damage.what
    assert damage.lost == f"{len(encode_step(StepRecord(19, 0.0, values={'loss': 1.0}, sample_ids=(1, 2)), ['loss'])) - 7} bytes at the end"


def test_every_cut_gives_the_records_before_it(tmp_path: Path) -> None:
    whole = content(range(3))
    for size in range(len(MAGIC) + 1, len(whole)):
        run = load(write(tmp_path, "rank0.flight", whole[:size]).parent) if size > len(content(range(1))) else None
        if run is not None:
            assert [s.steps.tolist() for s in run.signals if s.name == "loss"] in ([[0]], [[0, 1]])


def test_a_flipped_byte_costs_one_record(tmp_path: Path) -> None:
    data = bytearray(content(range(20)))
    place = len(content(range(10))) + HEAD.size + 3
    data[place] ^= 0x40
    write(tmp_path, "rank0.flight", bytes(data))
    run = load(tmp_path)
    loss = next(s for s in run.signals if s.name == "loss")
    assert loss.steps.tolist() == [*range(10), *range(11, 20)]
    assert [d.what.split()[0] for d in run.damage] == ["no"]


def test_records_that_do_not_fit_their_kind_are_counted(tmp_path: Path) -> None:
    bad = encode_json(Kind.NAMES, "text") + encode_json(Kind.STEP, [1]) + encode_json(Kind.SESSION, [1]) + encode_json(Kind.NOTE, 3)
    write(tmp_path, "rank0.flight", content(range(5)) + bad)
    run = load(tmp_path)
    assert [d.lost for d in run.damage] == ["3 records"]


def test_another_file_is_not_claimed(tmp_path: Path) -> None:
    assert flight_recorder.sniff(Source.of(write(tmp_path, "rank0.flight", b"FLIGHT2\n" + content(range(2))))) is None


def test_a_resume_in_the_same_file_is_a_second_attempt(tmp_path: Path) -> None:
    write(tmp_path, "rank0.flight", content(range(100)) + content(range(60, 120), shift=0.5, since=2000.0)[len(MAGIC) :])
    run = load(tmp_path)
    assert [(a.first_step, a.last_step) for a in run.attempts] == [(0, 99), (60, 119)]


def test_ranks_of_one_folder_are_one_run(tmp_path: Path) -> None:
    for rank in (1, 0, 10):
        write(tmp_path, f"rank{rank}.flight", content(range(50), rank=rank, world=11))
    found = discover(tmp_path)
    assert [r.name for r in found.runs] == [tmp_path.name]
    run = load(tmp_path)
    roles = {s.name: s.role for s in run.signals}
    assert roles["loss/flight_rank0"] == "loss"
    assert roles["loss_rank_0"] == roles["loss_rank_1"] == roles["loss_rank_10"] == "rank_loss"
    assert roles["grad_norm"] == "grad_norm"
    assert next(s for s in run.signals if s.role == "batch_id" and s.rank == 0).name == "batch_id"


def test_the_older_half_comes_first(tmp_path: Path) -> None:
    write(tmp_path, "rank0.flight", content(range(50, 90)))
    write(tmp_path, "rank0.older.flight", content(range(50)))
    run = load(tmp_path)
    loss = next(s for s in run.signals if s.name == "loss")
    assert loss.steps.tolist() == list(range(90))
    assert len(run.attempts) == 1


def test_the_exact_values_win_over_a_log_of_the_same_run(tmp_path: Path) -> None:
    write(tmp_path, "rank0.flight", content(range(50)))
    (tmp_path / "metrics.jsonl").write_text("".join(f'{{"step": {i}, "loss": {5 - i / 100:.2f}}}\n' for i in range(0, 50, 10)))
    run = load(tmp_path)
    primary = run.signal("loss")
    assert (primary.name, len(primary)) == ("loss", 50)  # type: ignore[union-attr, arg-type]


def test_the_samples_of_a_step_are_those_of_all_ranks_and_of_the_last_try(tmp_path: Path) -> None:
    write(tmp_path, "rank0.flight", content(range(5)) + content(range(3, 6), since=2000.0)[len(MAGIC) :])
    names = ["loss"]
    other = MAGIC + encode_json(Kind.SESSION, {"rank": 1, "world": 2, "time": 1000.0}) + encode_json(Kind.NAMES, names)
    ids = (("a", 7), (2**80,), ())
    other += b"".join(encode_step(StepRecord(step, 1000.0 + step, sample_ids=one), names) for step, one in enumerate(ids))
    write(tmp_path, "rank1.flight", other)
    found = load(tmp_path).samples
    assert found is not None
    assert [found.at(step) for step in (0, 1, 4, 6)] == [("0", "1", "a", "7"), ("1", "2", str(2**80)), ("4", "5"), ()]


def test_samples_are_named_at_the_event(tmp_path: Path) -> None:
    names = ["loss"]
    noise = np.random.default_rng(0).normal(0, 0.02, 400)
    data = MAGIC + encode_json(Kind.NAMES, names)
    for step in range(400):
        values = {"loss": 3.0 + float(noise[step]) + (4.0 if step == 250 else 0.0)}
        data += encode_step(StepRecord(step, 1000.0 + step, step + 1, values=values, sample_ids=tuple(range(10 * step, 10 * step + 10))), names)
    write(tmp_path, "rank0.flight", data)
    (event,) = analyze(tmp_path).events
    assert [b.samples for b in event.batches if b.step == 250] == [tuple(range(2500, 2510))]
    shown = io.StringIO()
    terminal.render(analyze(tmp_path), shown)
    assert "samples 2500, 2501" in " ".join(shown.getvalue().split())


def test_every_point_leads_to_its_record(tmp_path: Path) -> None:
    write(tmp_path, "rank0.flight", content(range(20)))
    run = load(tmp_path)
    loss = next(s for s in run.signals if s.name == "loss")
    assert loss.origin(3) == (0, 6)
    assert loss.wall_times is not None
    assert loss.wall_times[3] == 1003.0
    batch = next(s for s in run.signals if s.role == "batch_id")
    assert batch.values.dtype == np.int64
    assert len(set(batch.values.tolist())) == 20
    assert os.listdir(tmp_path) == ["flight"]  # noqa: PTH208 - nothing was written
