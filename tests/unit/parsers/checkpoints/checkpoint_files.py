"""Small checkpoints for the tests, written by PyTorch."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test installs it")
torch.set_num_threads(1)


def model() -> Any:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Embedding(40, 8), torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 8))


def trained(steps: int = 5, groups: bool = False) -> tuple[Any, Any]:
    """A model and its AdamW after some steps on random gradients."""
    net = model()
    params: Any = list(net.parameters())
    if groups:
        matrices, vectors = [p for p in params if p.ndim > 1], [p for p in params if p.ndim < 2]
        params = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0, "lr": 1e-4}]
    optimizer = torch.optim.AdamW(params, lr=3e-4)
    for _ in range(steps):
        for p in net.parameters():
            p.grad = torch.randn_like(p) * 0.01
        optimizer.step()
    return net, optimizer


def state(steps: int = 5, groups: bool = False) -> dict[str, Any]:
    """What a training script saves."""
    net, optimizer = trained(steps, groups)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    return {
        "step": steps,
        "model": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": {"scale": 1024.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 7},
        "rng": {"torch": torch.get_rng_state(), "numpy": np.random.get_state(), "python": random.getstate()},
        "epoch": 1,
    }


def save(path: Path, value: Any, *, legacy: bool = False) -> Path:
    torch.save(value, path, _use_new_zipfile_serialization=not legacy)
    return path
