"""Checkpoints that are folders: each layout is a way to put the trees of several files into one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forensics.model.damage import Damage
from forensics.parsers.checkpoints import deepspeed, safetensors, torch_dcp, torch_legacy, torch_zip
from forensics.parsers.checkpoints.opened import LFS_MARK, CheckpointError, Opened
from forensics.parsers.checkpoints.safe_pickle import PickleError, load
from forensics.parsers.checkpoints.torch_names import MEANINGS
from forensics.parsers.checkpoints.tree import Tensor

MAX_FILES = 20_000
MAX_JSON_BYTES = 1 << 26
MAX_PICKLE_BYTES = 1 << 26


@dataclass(slots=True)
class Assembled:
    """A folder that was read: one tree, the files it came from, and what was wrong."""

    format: str
    tree: dict[str, Any] = field(default_factory=dict)
    sources: list[Opened] = field(default_factory=list)

    def add(self, key: str | None, path: Path) -> Any:
        """Read a file into the tree under a key (None: its own keys). What cannot be read is damage."""
        opened = open_file(path)
        self.sources.append(opened)
        if key is None:
            if isinstance(opened.tree, dict):
                self.tree.update(opened.tree)
        elif opened.tree is not None:
            self.tree[key] = opened.tree
        return opened.tree

    def damage(self, path: Path, what: str, lost: str) -> None:
        """Something that is wrong with the folder itself."""
        self.sources.append(Opened(path, self.format, damage=[Damage(str(path), what, lost)]))


def open_file(path: Path) -> Opened:
    """Read one file of any single-file format. What cannot be read is damage in the result."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(64)
        if head.startswith(torch_zip.MAGIC):
            return torch_zip.read(path)
        if torch_legacy.is_mine(head):
            return torch_legacy.read(path)
        if safetensors.is_mine(head, size):
            return safetensors.read(path)
        if head[:1] == b"\x80" and size <= MAX_PICKLE_BYTES:
            return _plain_pickle(path, size)
        what = "a Git LFS pointer: the file itself was not downloaded (git lfs pull)" if head.startswith(LFS_MARK) else "no format that is read here"
    except CheckpointError as problem:
        what = str(problem)
    except OSError as problem:
        what = f"cannot be read ({problem.strerror or problem})"
    return Opened(path, "unknown", damage=[Damage(str(path), what, "the whole file")])


def _plain_pickle(path: Path, size: int) -> Opened:
    try:
        pickled = load(path.read_bytes(), MEANINGS)
    except PickleError as problem:
        raise CheckpointError(f"its pickle cannot be read: {problem}") from problem
    return Opened(path, "pickle", pickled.value, pickled.names, pickled.calls, size=size)


# Hugging Face


WEIGHTS = ("model.safetensors", "pytorch_model.bin", "adapter_model.safetensors", "adapter_model.bin", "diffusion_pytorch_model.safetensors")
INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
OPTIMIZERS = ("optimizer.pt", "optimizer.bin")
SCHEDULERS = ("scheduler.pt", "scheduler.bin")


def is_hugging_face(folder: Path) -> bool:
    """A checkpoint of the Trainer or of accelerate: weights, or an optimizer, under their usual names."""
    return any((folder / n).is_file() for n in (*WEIGHTS, *INDEXES, *OPTIMIZERS)) or (folder / "pytorch_model_fsdp_0" / torch_dcp.METADATA).is_file()


def read_hugging_face(folder: Path) -> Assembled:
    """Weights (sharded or not), optimizer, scheduler, scaler, generators of every rank, and the step of trainer_state.json."""
    state = _json(folder / "trainer_state.json")
    out = Assembled("hugging face" if state is not None or not (folder / "optimizer.bin").is_file() else "accelerate")
    _hugging_face_weights(folder, out)
    for names, key in ((OPTIMIZERS, "optimizer"), (SCHEDULERS, "scheduler"), (("scaler.pt",), "scaler"), (("sampler.bin",), "sampler")):
        for name in names:
            if (folder / name).is_file():
                out.add(key, folder / name)
    for part, key in (("pytorch_model_fsdp_0", "model"), ("optimizer_0", "optimizer")):
        if torch_dcp.is_mine(folder / part):
            tree = _dcp(folder / part, out)
            out.tree[key] = tree.get(key, tree) if isinstance(tree, dict) else tree
    generators = sorted([*folder.glob("rng_state*.pth"), *folder.glob("random_states_*.pkl")])[:MAX_FILES]
    for path in generators[:1]:
        out.add("rng_state", path)
    if isinstance(state, dict):
        out.tree["trainer_state"] = {k: state.get(k) for k in ("global_step", "epoch", "max_steps", "best_metric")}
    inner = deepspeed_folder(folder)
    if inner is not None:
        read_deepspeed(inner, out)
    return out


def _hugging_face_weights(folder: Path, out: Assembled) -> None:
    index = next((folder / n for n in INDEXES if (folder / n).is_file()), None)
    if index is None:
        weights = next((folder / n for n in WEIGHTS if (folder / n).is_file()), None)
        if weights is not None:
            out.add("model", weights)
        return
    table = _json(index)
    names = table.get("weight_map") if isinstance(table, dict) else None
    if not isinstance(names, dict):
        out.damage(index, "the index of shards cannot be read", "the weights")
        return
    model: dict[str, Any] = {}
    for shard in sorted({str(v) for v in names.values()})[:MAX_FILES]:
        path = folder / shard
        if not path.resolve().is_relative_to(folder.resolve()):
            out.damage(index, f"the index names a file outside of the folder ({shard[:80]}); it was not opened", "the tensors in it")
            continue
        opened = open_file(path)
        out.sources.append(opened)
        model.update(opened.tree if isinstance(opened.tree, dict) else {})
    lost = [n for n in names if n not in model]
    if lost:
        out.damage(index, "tensors that the index lists are in none of its shards", f"{len(lost)} tensors: {', '.join(map(str, lost[:5]))}")
    out.tree["model"] = model


def _dcp(folder: Path, out: Assembled) -> Any:
    try:
        opened = torch_dcp.read(folder)
    except (CheckpointError, OSError) as problem:
        out.damage(folder, str(problem), "everything in it")
        return {}
    out.sources.append(opened)
    return opened.tree


def _json(path: Path) -> Any:
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            return None
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


# DeepSpeed


MODEL_STATES = re.compile(r"^(?:zero_pp_rank_(\d+)_)?mp_rank_(\d+)(?:_\d+)?_model_states\.pt$")
OPTIM_STATES = re.compile(r"^(?:bf16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)(?:_\d+)?_optim_states\.pt$")


def deepspeed_folder(folder: Path) -> Path | None:
    """The folder with the files of the ranks: this one, or the one that ``latest`` names in it."""
    if _has(folder, MODEL_STATES) or _has(folder, OPTIM_STATES):
        return folder
    latest = folder / "latest"
    if latest.is_file() and latest.stat().st_size < 200:
        inner = folder / latest.read_text("utf-8", "replace").strip()
        if inner.is_dir() and inner.resolve().is_relative_to(folder.resolve()) and (_has(inner, MODEL_STATES) or _has(inner, OPTIM_STATES)):
            return inner
    return None


def _has(folder: Path, pattern: re.Pattern[str]) -> bool:
    return any(pattern.match(p.name) for p in _files(folder))


def _files(folder: Path) -> list[Path]:
    return sorted(p for i, p in enumerate(folder.iterdir()) if i < MAX_FILES and p.is_file()) if folder.is_dir() else []


def read_deepspeed(folder: Path, out: Assembled | None = None) -> Assembled:
    """ZeRO 0 to 3: the engine's state of rank 0, the weights, and every rank's share of the optimizer put together."""
    out = out or Assembled("deepspeed")
    models = [open_file(p) for p in _ranks(folder, MODEL_STATES)]
    optims = [open_file(p) for p in _ranks(folder, OPTIM_STATES)]
    out.sources += [*models, *optims]
    out.tree.update(deepspeed.tree(models, optims, out.sources))
    return out


def _ranks(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    """The files of the data-parallel ranks in their order, of the first tensor-parallel rank."""
    found = [(int(m[2]), int(m[1] or 0), p) for p in _files(folder) if (m := pattern.match(p.name))]
    return [p for tensor_rank, _, p in sorted(found) if tensor_rank == min(found)[0]]


# Megatron-LM


TRACKER = "latest_checkpointed_iteration.txt"
RANK_FOLDER = re.compile(r"^mp_rank_(\d{2,5})(?:_(\d{3,5}))?(?:_\d{3,5})?$")
RANK_FILES = ("model_optim_rng.pt", "model_rng.pt")


def megatron_folder(folder: Path) -> Path | None:
    """The folder of an iteration: this one, or the one that the tracker file names in it."""
    if _rank_files(folder) or _is_torch_dist(folder):
        return folder
    tracker = folder / TRACKER
    if tracker.is_file() and tracker.stat().st_size < 100:
        text = tracker.read_text("utf-8", "replace").strip()
        inner = folder / (f"iter_{int(text):07d}" if text.isdecimal() and len(text) < 12 else "release")
        if inner.is_dir() and (_rank_files(inner) or _is_torch_dist(inner)):
            return inner
    return None


def _rank_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    ranks = sorted(p for i, p in enumerate(folder.iterdir()) if i < MAX_FILES and p.is_dir() and RANK_FOLDER.match(p.name))
    return [f for rank in ranks for n in RANK_FILES if (f := rank / n).is_file()]


def _is_torch_dist(folder: Path) -> bool:
    return torch_dcp.is_mine(folder) and (folder / "common.pt").is_file()


def read_megatron(folder: Path) -> Assembled:
    """Of the torch format every rank of tensors and of the pipeline; of torch_dist the shards and common.pt."""
    if _is_torch_dist(folder):
        out = Assembled("megatron torch_dist")
        out.add(None, folder / "common.pt")
        shards = _dcp(folder, out)
        out.tree.update({k: v for k, v in shards.items() if k not in out.tree} if isinstance(shards, dict) else {})
        optimizer = out.tree.get("optimizer")
        if isinstance(optimizer, dict) and "param_groups" in optimizer:
            optimizer.setdefault("state", {})
        return out
    out = Assembled("megatron torch")
    files = _rank_files(folder)
    for path in files:
        opened = open_file(path)
        out.sources.append(opened)
        if path == files[0]:
            out.tree.update(opened.tree if isinstance(opened.tree, dict) else {})
            continue
        tree = opened.tree if isinstance(opened.tree, dict) else {}
        out.tree.setdefault("ranks", {})[path.parent.name] = {k: v for k, v in tree.items() if k.startswith("model") and not isinstance(v, Tensor)}
    return out


@dataclass(frozen=True, slots=True)
class Layout:
    """A kind of folder: whether a folder is one, and how it is read."""

    fits: Callable[[Path], object]
    read: Callable[[Path], Assembled]


def _read_dcp(folder: Path) -> Assembled:
    opened = torch_dcp.read(folder)
    return Assembled(torch_dcp.NAME, opened.tree, [opened])


def _read_inner(find: Callable[[Path], Path | None], read: Callable[[Path], Assembled]) -> Callable[[Path], Assembled]:
    def inner(folder: Path) -> Assembled:
        return read(find(folder) or folder)

    return inner


LAYOUTS: tuple[Layout, ...] = (
    Layout(megatron_folder, _read_inner(megatron_folder, read_megatron)),
    Layout(torch_dcp.is_mine, _read_dcp),
    Layout(is_hugging_face, read_hugging_face),
    Layout(deepspeed_folder, _read_inner(deepspeed_folder, read_deepspeed)),
)
"""Most particular first."""


def layout_of(folder: Path, layouts: Iterable[Layout] = LAYOUTS) -> Layout | None:
    """The layout of a folder; None where it is no checkpoint."""
    return next((layout for layout in layouts if layout.fits(folder)), None)
