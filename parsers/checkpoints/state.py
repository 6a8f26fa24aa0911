"""From the tree of values in a checkpoint to the facts: step, optimizer, scaler, scheduler, generators, tensors.

Training scripts agree on few names. What is told apart is told by shape first: an optimizer has ``state`` and
``param_groups``, a scheduler ``last_epoch``, a scaler its growth factor; names of keys decide only between the rest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forensics.model.checkpoint import Checkpoint, ParamGroup, TensorInfo, TensorKind
from forensics.model.damage import Damage
from forensics.parsers.checkpoints.opened import Opened, SmallReads
from forensics.parsers.checkpoints.param_names import BUFFER, Candidate, names_of
from forensics.parsers.checkpoints.tree import Tensor, TreeError, children, is_container, leaves, plain

STEP_KEYS = ("step", "global_step", "global_steps", "iteration", "iter", "iter_num", "it", "steps", "completed_steps", "current_step", "num_updates")
"""Keys under which scripts keep the number of steps taken, in the order in which they are believed."""

MODEL_KEYS = frozenset(
    {"model", "state_dict", "model_state_dict", "model_state", "module", "net", "network", "weights", "params", "parameters", "app", "model0"}
)
"""Keys around a model's tensors that are no part of the tensors' names."""

WRAPPERS = re.compile(r"(?:^|(?<=\.))(?:module|_orig_mod|_fsdp_wrapped_module|_forward_module|_checkpoint_wrapped_module)\.")
"""What DDP, FSDP, compilation and recomputation put before a parameter's own name."""

FLAT_STATE = re.compile(
    r"^(?:(?:optimizer|optim|opt|optimizers|optimizer_state|optimizer_states)[._]?(?:\d+\.)?)?(?:state\.)?(?P<param>.+)\.(?P<what>exp_avg|exp_avg_sq|max_exp_avg_sq|step|momentum_buffer)$"
)
"""Moments of a file that keeps every tensor under one flat name."""

MEGATRON_STATE = re.compile(
    r"^(?:chained_\d+\.)?(?:optimizer|optim)(?:_\d+)?\.state\.(?P<what>exp_avg|exp_avg_sq|step|fp32_param|fp32_from_fp16|master_param)\.(?P<param>.+)$"
)
"""The same by Megatron-LM, which puts the name of the parameter last."""

KINDS = {"exp_avg": TensorKind.EXP_AVG, "exp_avg_sq": TensorKind.EXP_AVG_SQ}
RNG = re.compile(r"(?:^|_)rng|random_state|rng(?:_|$)|tracker_states", re.IGNORECASE)
LOADER = re.compile(r"data_?loader|sampler|data_state|dataset_state|^loops$|data_iter|consumed_\w*samples|train_loader", re.IGNORECASE)
ASIDE = re.compile(r"scheduler|rng|random|callbacks|loops|sampler|scaler", re.IGNORECASE)
"""Parts that count for themselves."""
MAX_FACTS = 60
SCAN_DEPTH = 5
"""How deep optimizers, schedulers and the like are looked for."""


@dataclass(slots=True)
class _Found:
    """Parts of the tree that were recognised, each with the keys that lead to it."""

    optimizers: list[tuple[tuple[str, ...], Any]] = field(default_factory=list)
    scaler: Mapping[str, object] | None = None
    scheduler: Mapping[str, object] | None = None
    loader: dict[str, object] = field(default_factory=dict)
    rng: list[str] = field(default_factory=list)
    hidden: set[tuple[str, ...]] = field(default_factory=set)
    """Parts whose tensors are no weights."""


@dataclass(slots=True)
class _Stored:
    """A tensor of the tree and the keys that lead to it."""

    path: tuple[str, ...]
    tensor: Tensor


@dataclass(slots=True)
class _Optimizer:
    groups: list[ParamGroup] = field(default_factory=list)
    tensors: list[TensorInfo] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)


def describe(path: Path, format: str, tree: Any, sources: Sequence[Opened], step_hint: int | None = None) -> Checkpoint:  # noqa: A002 - the contract's word
    """The facts of a checkpoint. ``step_hint`` is the step in the name of its folder, believed where the content is silent."""
    damage = [d for s in sources for d in s.damage]
    found = _Found()
    _scan(tree, (), found, 0)
    stored: list[_Stored] = []
    try:
        stored = [_Stored(leaf.path, leaf.value) for leaf in leaves(tree) if isinstance(leaf.value, Tensor)]
    except TreeError as problem:
        if not damage:
            damage.append(Damage(str(path), f"the tree of values is no checkpoint's: {problem}", "the tensors"))
    weights = _weights([s for s in stored if not _inside(s.path, found.hidden) and not (s.path[-1:] and s.path[-1] in STEP_KEYS and s.tensor.numel == 1)])
    optimizer = _Optimizer()
    with SmallReads() as small:
        for where, value in found.optimizers:
            _read_optimizer(where, value, weights, small, optimizer)
        flat = _flat_moments(weights, small, optimizer)
        step, step_from = _step(tree, small)
    names = {t.name for t in optimizer.tensors} if optimizer.tensors else None
    params = [_kind(w, names) for w in weights if w.key not in flat]
    counts = (int(min(optimizer.counts)), int(max(optimizer.counts))) if optimizer.counts else None
    if step is None and step_hint is not None:
        step, step_from = step_hint, "the name"
    if step is None and counts is not None:
        step, step_from = counts[1], "the optimizer's step count"
    return Checkpoint(
        path=str(path),
        format=format,
        step=step,
        step_from=step_from,
        optimizer_steps=counts,
        param_groups=tuple(optimizer.groups),
        scaler=found.scaler,
        scheduler=found.scheduler,
        rng=tuple(dict.fromkeys(found.rng)),
        loader=found.loader or None,
        tensors=(*params, *optimizer.tensors),
        facts=_facts(tree, sources),
        classes=_classes(sources),
        findings=_findings(sources),
        damage=tuple(damage),
        files=tuple(str(s.path) for s in sources),
        size=sum(s.size for s in sources),
    )


# what the parts are


def _scan(value: Any, path: tuple[str, ...], found: _Found, depth: int) -> None:
    if depth > SCAN_DEPTH or not is_container(value):
        return
    entries = dict(children(value)) if not isinstance(value, (list, tuple)) or len(value) <= 64 else {}
    name = path[-1].lower() if path else ""
    if is_optimizer(entries):
        found.optimizers.append((path, value))
        found.hidden.add(path)
        return
    if _is_scaler(entries, name):
        found.scaler = plain(entries)
        found.hidden.add(path)
        return
    if _is_scheduler(entries, name):
        found.scheduler = found.scheduler or plain(entries)
        found.hidden.add(path)
        return
    if sum(isinstance(v, Tensor) for v in entries.values()) > 8 and not any(is_container(v) for v in entries.values()):
        return
    for key, child in entries.items():
        here = (*path, key)
        if key == "callbacks":
            found.hidden.add(here)
        elif RNG.search(key) and not (isinstance(child, Tensor) and len(child.shape) > 1):
            found.rng += _generators(key, child)
            found.hidden.add(here)
        elif LOADER.search(key):
            if is_container(child) and not isinstance(child, (list, tuple)):
                found.loader.setdefault(key, plain(child, 2))
            elif isinstance(child, (int, float, str)):
                found.loader.setdefault(key, plain(child))
            found.hidden.add(here)
        else:
            _scan(child, here, found, depth + 1)


def is_optimizer(entries: Mapping[str, Any]) -> bool:
    """Whether a dict is an optimizer's state."""
    return "param_groups" in entries and isinstance(entries["param_groups"], (list, tuple, Mapping)) and "state" in entries


def _is_scaler(entries: Mapping[str, Any], name: str) -> bool:
    if "growth_factor" in entries and "scale" in entries:
        return True
    if "cur_scale" in entries or ("scaler" in name and "scale" in entries):
        return True
    return "scaler" in name and not entries


def _is_scheduler(entries: Mapping[str, Any], name: str) -> bool:
    if "last_epoch" in entries and ("_step_count" in entries or "base_lrs" in entries or "_last_lr" in entries):
        return True
    return "scheduler" in name and "num_steps" in entries


def _generators(key: str, value: Any) -> list[str]:
    if is_container(value) and not isinstance(value, (list, tuple)):
        inside = [k for k, v in children(value) if v is not None and k not in STEP_KEYS]
        if inside:
            return inside
    if isinstance(value, (list, tuple)) and value and is_container(value[0]) and not isinstance(value[0], (list, tuple)):
        return [k for k, v in children(value[0]) if v is not None]
    return [key] if value is not None else []


def _inside(path: tuple[str, ...], roots: set[tuple[str, ...]]) -> bool:
    return any(path[:i] in roots for i in range(len(path) + 1))


# weights


@dataclass(frozen=True, slots=True)
class _Weight:
    name: str
    key: str
    tensor: Tensor


def _weights(stored: Sequence[_Stored]) -> list[_Weight]:
    """Tensors outside of optimizers, under the names that the model gave them."""
    short = {".".join(s.path): clean_name(s.path) for s in stored}
    taken: dict[str, str] = {}
    out = []
    for item in stored:
        key = ".".join(item.path)
        name = short[key]
        if taken.setdefault(name, key) != key:
            name = key
        out.append(_Weight(name, key, item.tensor))
    return out


def clean_name(path: Sequence[str]) -> str:
    """A parameter's own name: without the containers around the model and the wrappers around modules."""
    at = 0
    while at < len(path) - 1 and path[at] in MODEL_KEYS:
        at += 1
    return WRAPPERS.sub("", ".".join(path[at:]))


def _kind(weight: _Weight, trained: set[str] | None) -> TensorInfo:
    tensor = weight.tensor
    kind = TensorKind.PARAM
    if BUFFER.search(weight.name) or not tensor.dtype.startswith(("float", "bfloat")):
        kind = TensorKind.BUFFER
    if trained is not None and weight.name in trained:
        kind = TensorKind.PARAM
    return TensorInfo(weight.name, kind, tensor.shape, tensor.dtype, tensor.pieces or (), weight.key)


# optimizers


def _read_optimizer(where: tuple[str, ...], value: Any, weights: Sequence[_Weight], small: SmallReads, out: _Optimizer) -> None:
    entries = dict(children(value))
    groups = [dict(children(g)) for g in _items(entries["param_groups"])]
    state = {k: dict(children(v)) for k, v in children(entries["state"]) if is_container(v)}
    numbers = [[str(n) for n in _items(g.get("params", ()))] for g in groups]
    names = _names(groups, numbers, state, weights)
    for group, ids in zip(groups, numbers, strict=True):
        out.groups.append(_group(group, tuple(names.get(n, _unnamed(n)) for n in ids), small))
    root = ".".join((*where, "state"))
    for number, slots in state.items():
        name = names.get(number) or _unnamed(number)
        for slot, item in slots.items():
            if not isinstance(item, Tensor):
                if slot == "step" and isinstance(item, (int, float)) and math.isfinite(item):
                    out.counts.append(item)
                continue
            if slot == "step" and item.numel == 1:
                out.counts += [v for v in small.values(item) or [] if math.isfinite(v)]
                continue
            kind = KINDS.get(slot, TensorKind.OTHER)
            full = name if kind is not TensorKind.OTHER else f"{name}.{slot}"
            out.tensors.append(TensorInfo(full, kind, item.shape, item.dtype, item.pieces or (), f"{root}.{number}.{slot}"))
    for group in groups:
        count = group.get("step")
        if isinstance(count, (int, float)) and not isinstance(count, bool) and math.isfinite(count):
            out.counts.append(count)


def _unnamed(number: str) -> str:
    return f"parameter {number}" if number.isdecimal() else WRAPPERS.sub("", number)


def _names(groups: list[dict[str, Any]], numbers: list[list[str]], state: Mapping[str, Mapping[str, Any]], weights: Sequence[_Weight]) -> dict[str, str]:
    """Number -> name: as the optimizer says, where it does; else by shape and order."""
    said = {}
    for group, ids in zip(groups, numbers, strict=True):
        said.update({n: WRAPPERS.sub("", str(name)) for n, name in zip(ids, _items(group.get("param_names", ())), strict=False)})
    if said:
        return said
    if not all(n.isdecimal() for ids in numbers for n in ids):
        return {}
    shapes = {}
    for number, slots in state.items():
        for slot in ("exp_avg", "exp_avg_sq", "momentum_buffer"):
            if isinstance(slots.get(slot), Tensor):
                shapes[number] = slots[slot].shape
                break
    pool, seen = [], set()
    for weight in weights:
        pieces = weight.tensor.pieces
        place = (pieces[0].path, pieces[0].offset, weight.tensor.shape) if pieces and pieces[0].data is None else (weight.key, 0, ())
        if place in seen:
            continue
        seen.add(place)
        pool.append(Candidate(weight.name, weight.tensor.shape))
    return names_of(numbers, shapes, pool, ordered=not _sorted_file(weights))


def _sorted_file(weights: Sequence[_Weight]) -> bool:
    """Whether the weights come from files that keep tensors sorted by name, whatever their order in the model."""
    return any(w.tensor.pieces and w.tensor.pieces[0].path.endswith(".safetensors") for w in weights[:1])


def _group(group: Mapping[str, Any], params: tuple[str, ...], small: SmallReads) -> ParamGroup:
    def number(key: str) -> float | None:
        value = group.get(key)
        if isinstance(value, Tensor):
            read = small.values(value)
            value = read[0] if read else None
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    betas = group.get("betas")
    known = {"lr", "betas", "eps", "weight_decay", "params", "param_names"}
    pair = tuple(float(b) for b in betas if isinstance(b, (int, float))) if isinstance(betas, (list, tuple)) else None
    more = {k: plain(v) for k, v in group.items() if k not in known and not is_container(v)}
    return ParamGroup(number("lr"), pair or None, number("eps"), number("weight_decay"), params, more)


def _flat_moments(weights: Sequence[_Weight], small: SmallReads, out: _Optimizer) -> set[str]:
    """Moments among the tensors of a file that has no tree. Returns the keys that were taken."""
    taken: set[str] = set()
    found = [(w, m) for w in weights if (m := _flat(w))]
    if not any(m["what"] in KINDS for _, m in found):
        return taken
    rest = [w for w in weights if not any(w is f for f, _ in found)] if len(found) < 2000 else [w for w in weights if not _flat(w)]
    numbers = sorted({m["param"] for _, m in found if m["param"].isdecimal()}, key=int)
    shapes = {m["param"]: w.tensor.shape for w, m in found if m["what"] in KINDS}
    names = names_of([numbers], shapes, [Candidate(w.name, w.tensor.shape) for w in rest], ordered=not _sorted_file(rest)) if numbers else {}
    for weight, match in found:
        taken.add(weight.key)
        name = names.get(match["param"]) or _unnamed(match["param"])
        if match["what"] == "step":
            out.counts += [v for v in small.values(weight.tensor) or [] if math.isfinite(v)]
            continue
        kind = KINDS.get(match["what"], TensorKind.OTHER)
        full = clean_name([name]) if kind is not TensorKind.OTHER else f"{name}.{match['what']}"
        out.tensors.append(TensorInfo(full, kind, weight.tensor.shape, weight.tensor.dtype, weight.tensor.pieces or (), weight.key))
    return taken


def _flat(weight: _Weight) -> re.Match[str] | None:
    return MEGATRON_STATE.match(weight.key) or FLAT_STATE.match(weight.name) or FLAT_STATE.match(weight.key)


def _items(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    return [v for _, v in children(value)] if is_container(value) else []


# where training stood


def _step(tree: Any, small: SmallReads) -> tuple[int | None, str]:
    """The step, and the key that says it: at the root first, then one and two containers down."""
    level: list[tuple[tuple[str, ...], Any]] = [((), tree)]
    for _ in range(3):
        for key in STEP_KEYS:
            for path, value in level:
                number = _whole(dict(children(value)).get(key), small)
                if number is not None:
                    return number, ".".join((*path, key))
        level = [((*path, k), v) for path, value in level for k, v in _parts(value) if is_container(v) and not isinstance(v, (list, tuple))]
        level = [(path, v) for path, v in level if not is_optimizer(dict(children(v))) and path[-1] not in MODEL_KEYS and not ASIDE.search(path[-1])]
    return None, ""


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    for i, part in enumerate(children(value)):
        if i >= 200:
            return
        yield part


def _whole(value: Any, small: SmallReads) -> int | None:
    if isinstance(value, Tensor) and value.numel == 1:
        read = small.values(value)
        value = read[0] if read else None
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value != int(value) or not 0 <= value < 2**63:
        return None
    return int(value)


def _facts(tree: Any, sources: Sequence[Opened]) -> dict[str, object]:
    """Plain values beside the tensors: epoch, best loss, configuration, versions."""
    facts: dict[str, object] = {}
    for source in sources:
        facts.update(source.facts)
    for key, value in _parts(tree) if is_container(tree) and not isinstance(tree, (list, tuple)) else ():
        if len(facts) >= MAX_FACTS:
            break
        if isinstance(value, (bool, int, float, str)):
            facts[key] = plain(value)
        elif is_container(value) and key.lower() in {"config", "args", "model_args", "hyper_parameters", "hparams", "cfg", "train_config"}:
            facts[key] = plain(value, 3, 200)
    return facts


# what a pickle names

HARMLESS = re.compile(
    r"^(?:collections\.(?:OrderedDict|defaultdict|Counter|deque)|builtins\.(?:set|frozenset|list|dict|tuple|complex|slice|bytearray|bytes|int|float|str|bool|object|getattr)"
    r"|_codecs\.encode|torch\.(?:\w*Storage|Size|device|(?:b?float|u?int|complex|bool|q?u?int)\w*)|torch\.storage\.\w+|torch\._utils\._rebuild\w+|torch\._tensor\._rebuild\w+"
    r"|torch\.serialization\._get_layout|torch\.nn\.parameter\.Parameter|torch\.Tensor|numpy\.(?:_?core)\.multiarray\.(?:_reconstruct|scalar)|numpy\.(?:ndarray|dtype)|numpy\.dtypes\.\w+"
    r"|torch\.distributed\.checkpoint\.[\w.]+|pathlib\.\w+|pathlib\._local\.\w+|copyreg\._reconstructor|argparse\.Namespace|types\.SimpleNamespace|datetime\.\w+)$"
)
"""Names that a checkpoint of tensors and settings has."""

ACTING = re.compile(
    r"^(?:os|posix|nt|subprocess|sys|pty|runpy|importlib|imp|shutil|socket|ctypes|code|codeop|webbrowser|pickle|_pickle|marshal|multiprocessing|threading|asyncio|urllib|http|ftplib|smtplib"
    r"|requests|pip|pdb|bdb|timeit|cProfile|profile|platform|tempfile|glob|signal|gc|inspect|commands|operator|functools|_io|io|nt|sqlite3|zipimport|pkgutil|site|builtins|distutils|setuptools)\."
)
"""Modules whose functions act on the machine; a checkpoint has no reason to call one."""

NOT_ACTING = re.compile(r"^(?:builtins\.(?:set|frozenset|list|dict|tuple|complex|slice|range|bytearray|bytes|int|float|str|bool|object)|functools\.partial)$")


def _classes(sources: Sequence[Opened]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(n for s in sources for n in s.names if not HARMLESS.match(n)))


def _findings(sources: Sequence[Opened]) -> tuple[str, ...]:
    out = []
    for source in sources:
        acting = [n for n in source.calls if ACTING.match(n) and not NOT_ACTING.match(n)]
        out += [f"loading {source.path.name} with the ordinary unpickler would have called {n}; it was not called" for n in acting]
    return tuple(out)
