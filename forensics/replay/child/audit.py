"""Compare two states tensor by tensor: the one a replay arrived at and the one that was saved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

JUMP = 32.0
"""Factor between the largest difference of one element and the next largest of its tensor from which it is that element's own
story: what an optimizer does to two elements differs by its learning rate times a few."""

ROUNDING = 1e-5
"""Differences below this share of the tensor's largest value are rounding on another device."""


@dataclass(frozen=True, slots=True)
class Stray:
    """An element that differs for itself. ``usual`` is the next largest difference in its tensor."""

    tensor: str
    index: tuple[int, ...]
    saved: float
    replayed: float
    usual: float


@dataclass(frozen=True, slots=True)
class Audit:
    """``different`` names the tensors that differ by more than rounding, the most different first."""

    tensors: int
    different: tuple[str, ...]
    strays: tuple[Stray, ...]
    non_finite: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether the two states are the same."""
        return not self.different and not self.non_finite


def compare(replayed: Mapping[str, Any], saved: Mapping[str, Any]) -> Audit:
    """Two state dicts of the same model."""
    ranks: list[tuple[float, str]] = []
    strays: list[tuple[float, Stray]] = []
    bad: list[str] = []
    names = [n for n in replayed if n in saved and isinstance(saved[n], torch.Tensor) and saved[n].is_floating_point()]
    for name in names:
        a, b = replayed[name].detach().cpu().double(), saved[name].detach().cpu().double()
        if a.shape != b.shape or not a.numel():
            continue
        if not bool(torch.isfinite(b).all()):
            bad.append(name)
            continue
        if not bool(torch.isfinite(a).all()):
            continue
        difference = (a - b).abs().flatten()
        top = torch.topk(difference, min(2, difference.numel()))
        largest = float(top.values[0])
        scale = float(a.abs().max()) or 1.0
        if largest <= ROUNDING * scale:
            continue
        ranks.append((float((a - b).norm()) / (float(a.norm()) or 1.0), name))
        usual = max(float(top.values[1]) if len(top.values) > 1 else 0.0, 1e-3 * ROUNDING * scale)
        if largest >= JUMP * usual:
            at = int(top.indices[0])
            place = tuple(int(i) for i in torch.unravel_index(torch.tensor(at), a.shape)) if a.dim() else ()
            strays.append((largest / usual, Stray(name, place, float(b.flatten()[at]), float(a.flatten()[at]), usual)))
    different = tuple(n for _, n in sorted(ranks, reverse=True))
    return Audit(len(names), different, tuple(s for _, s in sorted(strays, key=lambda x: -x[0])), tuple(bad))


def moved_furthest(replayed: Mapping[str, Any], saved: Mapping[str, Any]) -> Stray | None:
    """The one element that is furthest from where the replay has it, relative to all others of the whole model.

    After a fault has sent a run another way every tensor differs; an element that was hit is still far outside them.
    """
    furthest: list[tuple[float, str, int]] = []
    everything: list[Any] = []
    for name, value in replayed.items():
        other = saved.get(name)
        if not isinstance(other, torch.Tensor) or not other.is_floating_point() or other.shape != value.shape or not other.numel():
            continue
        difference = (value.detach().cpu().double() - other.detach().cpu().double()).abs().flatten()
        difference = torch.where(torch.isfinite(difference), difference, torch.full_like(difference, math.inf))
        top = torch.topk(difference, min(2, difference.numel()))
        furthest += [(float(v), name, int(i)) for v, i in zip(top.values, top.indices, strict=True)]
        everything.append(difference[: 1 << 20])
    furthest.sort(reverse=True)
    if len(furthest) < 2 or not furthest[0][0] >= 4.0 * furthest[1][0]:
        return None
    _, name, at = furthest[0]
    shape = replayed[name].shape
    place = tuple(int(i) for i in torch.unravel_index(torch.tensor(at), shape)) if len(shape) else ()
    return Stray(name, place, float(saved[name].flatten()[at]), float(replayed[name].flatten()[at]), furthest[1][0])
