"""Which parameter an optimizer's number means: PyTorch's optimizers save numbers, not names.

The numbers follow the order in which the groups were made, and the groups nearly always follow the order of the model, so
shapes and order tell. Where they do not, the number stays a number; nothing is guessed against a shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

MAX_TRIES = 50_000
"""Steps of the search over interleaved groups."""

BUFFER = re.compile(
    r"(?:^|[._])(?:running_mean|running_var|num_batches_tracked|inv_freq|freqs_cis|causal_mask|attn_mask|rotary_emb|masked_bias|_extra_state)(?:$|[._])"
)
"""Tensors of a state dict that no optimizer trains, by the names that libraries give them."""

NO_DECAY = re.compile(r"(?:^|[._])(?:bias|b|norm\w*|\w*norm|ln\w*|layer_?norm\w*|scale|gamma|beta)(?:$|[._])", re.IGNORECASE)
"""Names that scripts leave out of weight decay."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tensor of the model that may be a parameter."""

    name: str
    shape: tuple[int, ...]


Shapes = Mapping[str, tuple[int, ...]]


def names_of(groups: Sequence[Sequence[str]], shapes: Shapes, candidates: Sequence[Candidate]) -> dict[str, str]:
    """Number -> name of a parameter, for numbers in groups, given the shapes of their moments; empty where it is unclear."""
    known = [c for c in candidates if not BUFFER.search(c.name)]
    for pool in (known, list(candidates)):
        found = _aligned([n for g in groups for n in g], shapes, pool)
        if found:
            return found
        for rule in _SPLITS:
            found = _split(groups, shapes, pool, rule)
            if found:
                return found
    return _interleaved(groups, shapes, known)


def _fits(number: str, shapes: Shapes, candidate: Candidate) -> bool:
    shape = shapes.get(number)
    return shape is None or shape == candidate.shape


def _aligned(numbers: Sequence[str], shapes: Shapes, pool: Sequence[Candidate]) -> dict[str, str]:
    if len(numbers) != len(pool) or not all(_fits(n, shapes, c) for n, c in zip(numbers, pool, strict=True)):
        return {}
    return {n: c.name for n, c in zip(numbers, pool, strict=True)}


_SPLITS: tuple[Callable[[Candidate], bool], ...] = (
    lambda c: len(c.shape) >= 2,
    lambda c: not NO_DECAY.search(c.name),
    lambda c: len(c.shape) >= 2 and not NO_DECAY.search(c.name),
    lambda c: not c.name.endswith("bias"),
    lambda c: len(c.shape) >= 2 and "emb" not in c.name.lower(),
)
"""Ways in which scripts part parameters into two groups."""


def _split(groups: Sequence[Sequence[str]], shapes: Shapes, pool: Sequence[Candidate], rule: Callable[[Candidate], bool]) -> dict[str, str]:
    if len(groups) != 2:
        return {}
    parts = [[c for c in pool if rule(c)], [c for c in pool if not rule(c)]]
    for first, second in (parts, parts[::-1]):
        a, b = _aligned(groups[0], shapes, first), _aligned(groups[1], shapes, second)
        if (a or not groups[0]) and (b or not groups[1]):
            return {**a, **b}
    return {}


def _interleaved(groups: Sequence[Sequence[str]], shapes: Shapes, pool: Sequence[Candidate]) -> dict[str, str]:
    """Walk the model; every tensor is the next one of some group, or of none. Depth first, with a bound."""
    total = sum(map(len, groups))
    if not total or total > len(pool):
        return {}
    tries = 0
    start = (0,) * len(groups)
    trail: list[tuple[int, tuple[int, ...], list[int]]] = [(0, start, _choices(groups, shapes, pool, 0, start))]
    seen: set[tuple[int, tuple[int, ...]]] = set()
    while trail:
        at, heads, choices = trail[-1]
        if sum(heads) == total:
            return _read_trail(trail, groups, pool)
        tries += 1
        if tries > MAX_TRIES:
            return {}
        if at >= len(pool) or not choices or total - sum(heads) > len(pool) - at:
            trail.pop()
            continue
        choice = choices.pop(0)
        after = tuple(h + (i == choice) for i, h in enumerate(heads))
        if (at + 1, after) not in seen:
            seen.add((at + 1, after))
            trail.append((at + 1, after, _choices(groups, shapes, pool, at + 1, after)))
    return {}


def _choices(groups: Sequence[Sequence[str]], shapes: Shapes, pool: Sequence[Candidate], at: int, heads: tuple[int, ...]) -> list[int]:
    """Groups whose next number may be the tensor at ``at``, then -1 for "of no group"."""
    if at >= len(pool):
        return []
    fitting = [i for i, g in enumerate(groups) if heads[i] < len(g) and _fits(g[heads[i]], shapes, pool[at])]
    return [*fitting, -1]


def _read_trail(trail: Sequence[tuple[int, tuple[int, ...], list[int]]], groups: Sequence[Sequence[str]], pool: Sequence[Candidate]) -> dict[str, str]:
    found: dict[str, str] = {}
    for (at, before, _), (_, after, _) in pairwise(trail):
        for i, (old, new) in enumerate(zip(before, after, strict=True)):
            if new > old:
                found[groups[i][old]] = pool[at].name
    return found
