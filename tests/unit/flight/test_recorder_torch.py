"""The recorder with tensors, on the CPU and, where there is one, on a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tensors need PyTorch")

from forensics.flight.batches import read_batch, take  # noqa: E402
from forensics.flight.rng import restore  # noqa: E402
from forensics.loading import load  # noqa: E402
from forensics.recorder import FlightRecorder  # noqa: E402


def values(folder: Path) -> dict[str, list[float]]:
    return {s.name: s.values.tolist() for s in load(folder).signals}


def only(folder: Path) -> Path:
    (path,) = (folder / "flight/batches").iterdir()
    return path


def test_a_flipped_byte_or_a_cut_is_an_error(tmp_path: Path) -> None:
    with FlightRecorder(tmp_path, endings=False) as recorder:
        recorder.step(0, torch.zeros(3), loss=float("nan"))
    path = only(tmp_path)
    data = path.read_bytes()
    cuts = (data[:5], data[: len(data) // 2], data[:-1], b"\xff" * 8 + data[8:])
    for damaged in (*cuts, data.replace(b"structure", b"structurf"), data.replace(b"batch", b"botch", 1)):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="batch"):
            read_batch(path)


def test_what_cannot_be_kept_is_said_when_it_is_asked_for(tmp_path: Path) -> None:
    with FlightRecorder(tmp_path, endings=False) as recorder:
        recorder.step(0, {"x": torch.zeros(3, dtype=torch.complex64)}, loss=float("nan"))
    with pytest.raises(ValueError, match="complex64"):
        read_batch(only(tmp_path)).value()


def test_every_kind_of_tensor_comes_back_bit_by_bit(tmp_path: Path) -> None:
    made = torch.Generator().manual_seed(0)
    rows = torch.randint(0, 50000, (32, 1025), generator=made)
    batch = {
        "views": (rows[:, :-1], rows[:, 1:]),
        "half": [torch.randn(5, generator=made).bfloat16(), torch.randn(200, 200, generator=made).bfloat16(), torch.randn(3, generator=made).half()],
        "bits": torch.tensor([True, False]),
        "empty": torch.zeros(0, 4),
        "one": torch.tensor(2.5, dtype=torch.float64),
        "turned": torch.randn(300, 500, generator=made).T,
        "texts": ["a", None, 3],
    }
    with FlightRecorder(tmp_path, endings=False) as recorder:
        recorder.step(0, batch, loss=float("nan"))
    kept = read_batch(only(tmp_path))
    assert kept.facts["intact"] is True
    back = kept.value()
    assert isinstance(back["views"], tuple)
    assert back["texts"] == batch["texts"]
    pairs = [*zip(batch["views"], back["views"], strict=True), *zip(batch["half"], back["half"], strict=True)]
    pairs += [(batch[name], back[name]) for name in ("bits", "empty", "one", "turned")]
    for one, other in pairs:
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


def test_strides_do_not_change_the_digest() -> None:
    whole = torch.randn(64, 300)
    assert take(whole).digest() == take(whole.T.contiguous().T).digest() == take(whole.numpy()).digest()
    other = whole.clone()
    other[8, 0] += 1
    assert take(other).digest() != take(whole).digest()


def test_a_loss_with_a_graph_and_a_scaler(tmp_path: Path) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    weight = torch.ones(1, requires_grad=True)
    with FlightRecorder(tmp_path, endings=False) as recorder:
        for step in range(3):
            recorder.begin(step, torch.full((2,), step))
            loss = (weight * 2).sum()
            scaler.scale(loss).backward()
            recorder.end(loss=loss, grad_norm=weight.grad.norm(), scaler=scaler)
    read = values(tmp_path)
    assert read["loss"] == [2.0] * 3
    assert read["loss_scale"] == [1024.0] * 3
    assert read["grad_norm"] == [2048.0, 4096.0, 6144.0]


def test_dropout_of_a_step_comes_back(tmp_path: Path) -> None:
    torch.manual_seed(0)
    drawn = {}
    with FlightRecorder(tmp_path, endings=False) as recorder:
        for step in range(3):
            recorder.begin(step, torch.zeros(1))
            drawn[step] = torch.nn.functional.dropout(torch.ones(1000))
            recorder.end(loss=float("nan") if step == 2 else 1.0)
    for step in range(3):
        restore(read_batch(tmp_path / f"flight/batches/step{step:010d}-rank0.safetensors").rng)
        assert torch.equal(torch.nn.functional.dropout(torch.ones(1000)), drawn[step])


def test_forked_workers_of_a_loader_leave_it_alone(tmp_path: Path) -> None:
    loader = torch.utils.data.DataLoader(torch.arange(32), batch_size=4, num_workers=1, multiprocessing_context="fork")
    with FlightRecorder(tmp_path) as recorder:
        for step, batch in enumerate(loader):
            recorder.step(step, batch, sample_ids=batch, loss=batch.float().mean())
    assert values(tmp_path)["loss"] == [1.5 + 4 * i for i in range(8)]
    assert load(tmp_path).damage == ()


@pytest.mark.gpu
def test_nothing_waits_for_a_gpu(tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU: none here")
    x = torch.randn(4096, 4096, device="cuda")
    with FlightRecorder(tmp_path, endings=False) as recorder:
        for step in range(40):
            recorder.begin(step, {"x": x[: 64 + step], "ids": torch.arange(64 + step, device="cuda")})
            y = x
            for _ in range(20):
                y = torch.mm(y, x) / 64
            recorder.end(loss=y.new_tensor(float(step)) if step < 39 else y.new_tensor(float("nan")), grad_norm=y[0, 0].abs() * 0 + 1)
            if step == 1:  # the very first call initialises the device
                busy = not torch.cuda.current_stream().query()
    assert busy
    read = values(tmp_path)
    assert read["loss"][:39] == [float(i) for i in range(39)]
    kept = read_batch(tmp_path / "flight/batches/step0000000039-rank0.safetensors")
    assert kept.facts["intact"] is True
    assert np.array_equal(kept.value(tensors=False)["ids"], np.arange(103))
    assert torch.equal(kept.value()["x"], x[:103].cpu())
    assert "rng.cuda" in kept.rng
