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


def names_of(groups: Sequence[Sequence[str]], shapes: Shapes, candidates: Sequence[Candidate], *, ordered: bool = True) -> dict[str, str]:
    """Number -> name of a parameter, for numbers in groups, given the shapes of their moments; empty where it is unclear.

    ``ordered`` False: the candidates come from a file that keeps them sorted by name, and the order of the model has to be
    found again.
    """
    known = [c for c in candidates if not BUFFER.search(c.name)]
    if not ordered:
        for words in (NORM_FIRST, NORM_LAST):
            found = _in_order(groups, shapes, sorted(known, key=lambda c: _usual_place(c.name, words)))
            if found:
                return found
        return {}
    for pool in (known, list(candidates)):
        found = _in_order(groups, shapes, pool)
        if found:
            return found
    return _interleaved(groups, shapes, known)


def _in_order(groups: Sequence[Sequence[str]], shapes: Shapes, pool: Sequence[Candidate]) -> dict[str, str]:
    found = _aligned([n for g in groups for n in g], shapes, pool)
    if found:
        return found
    return next((found for rule in _SPLITS if (found := _split(groups, shapes, pool, rule))), {})


_OUTER = (
    r"^(?:wte|tok\w*|word_\w+|embed_tokens|embed_in|emb\w*|shared)$",
    r"^(?:wpe|pos|pos_emb\w*|position\w*|embed_positions)$",
    r"^(?:token_type_embeddings|segment\w*)$",
    r"^(?:h|layers?|blocks?|encoder|decoder|stages?|\d+)$",
    r"^(?:ln_f|norm|norm_f|final_\w+|final\w*|ln_post)$",
    r"^(?:pooler|lm_head|head|output|classifier|score|proj_out|embed_out|cls)$",
)
_ATTENTION = (
    *(r"^(?:self_attn|self_attention|attn|attention|self|mixer)$", r"^(?:q|q_proj|query|wq|to_q)$", r"^(?:k|k_proj|key|wk|to_k)$"),
    *(r"^(?:v|v_proj|value|wv|to_v)$", r"^(?:c_attn|qkv|query_key_value|qkv_proj|Wqkv|in_proj\w*)$"),
    r"^(?:o|o_proj|c_proj|out_proj|wo|proj|dense|to_out|output)$",
    *(r"^(?:q_norm|q_layernorm)$", r"^(?:k_norm|k_layernorm)$"),
)
_MLP = (
    *(r"^(?:mlp|ffn|feed_forward|intermediate)$", r"^(?:gate_proj|gate|w1)$", r"^(?:up_proj|up|c_fc|fc1|fc_in|dense_h_to_4h|w3|lin1)$"),
    r"^(?:down_proj|down|c_proj|fc2|fc_out|dense_4h_to_h|w2|lin2|proj)$",
)
_NORMS = (r"^(?:ln_1|ln1|norm1|input_layernorm|attention_norm|pre_attn\w*)$", r"^(?:ln_2|ln2|norm2|post_attention_layernorm|ffn_norm|pre_ffn\w*)$")
_LEAVES = (r"^weight$", r"^bias$")

NORM_FIRST = (*_OUTER, _NORMS[0], *_ATTENTION, _NORMS[1], *_MLP, *_LEAVES)
NORM_LAST = (*_OUTER, *_ATTENTION, *_MLP, *_NORMS, *_LEAVES)
"""The order in which the modules of transformers are usually made: GPT-2 and its kin have the norm before the attention, Llama
and its kin make both norms last. Whatever the order, every shape must fit."""


TRANSPARENT = frozenset({"model", "transformer", "gpt_neox", "backbone", "language_model", "base_model", "bert", "roberta", "gpt"})
"""Modules around everything but the head."""


def _usual_place(name: str, words: Sequence[str]) -> tuple[int, ...]:
    """A sorting key by the usual order of modules; layers by their number, what is unknown behind what is known."""
    key: list[int] = []
    first = 0
    for token in name.split("."):
        if token in TRANSPARENT:
            continue
        order = (*range(first, len(words)), *range(first))
        rank = next((i for i in order if re.match(words[i], token, re.IGNORECASE)), len(words))
        if words[min(rank, len(words) - 1)] == _MLP[0]:
            first = rank
        key += [rank, int(token)] if token.isdecimal() and len(token) < 9 else [rank]
    return tuple(key)


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
