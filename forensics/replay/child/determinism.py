"""Make PyTorch repeat itself: seeds, deterministic kernels, no TF32; and the random generators' state of a checkpoint."""

from __future__ import annotations

import os
import random
from typing import Any

import torch

SEED = 0
"""Where a checkpoint brings no random state, every run of a window starts from this seed."""


def prepare(device: str, threads: int | None) -> list[str]:
    """Set everything that can be set before the model is built; what cannot be is returned as limits."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    limits: list[str] = []
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if threads is not None:
        torch.set_num_threads(threads)
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise RuntimeError("device cuda was asked for and PyTorch sees none; use --device cpu")
    return limits


def seed(value: int = SEED) -> None:
    """Seed every generator that training code uses."""
    random.seed(value)
    torch.manual_seed(value)
    try:
        import numpy as np
    except ImportError:
        return
    np.random.seed(value)


def random_state() -> dict[str, Any]:
    """The state of every generator."""
    state: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    try:
        import numpy as np
    except ImportError:
        return state
    state["numpy"] = np.random.get_state()
    return state


def restore(state: dict[str, Any]) -> None:
    """Put every generator back."""
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])
    if "numpy" in state:
        import numpy as np

        np.random.set_state(state["numpy"])


def restore_saved(saved: Any) -> bool:
    """Use a torch generator state found in a checkpoint; False where there is none that fits."""
    if isinstance(saved, dict):
        saved = next((saved[k] for k in ("torch", "cpu", "torch_rng_state", "rng_state") if k in saved), None)
    if not isinstance(saved, torch.Tensor) or saved.dtype != torch.uint8:
        return False
    try:
        torch.set_rng_state(saved.cpu())
    except RuntimeError:
        return False
    return True
