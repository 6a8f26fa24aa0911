"""Reads a checkpoint of any known format: the format is told by content."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from forensics.model.checkpoint import Checkpoint
from forensics.model.damage import Damage
from forensics.parsers.checkpoints import safetensors, torch_legacy, torch_zip
from forensics.parsers.checkpoints.opened import LFS_MARK, CheckpointError, Opened
from forensics.parsers.checkpoints.state import describe

if TYPE_CHECKING:
    from forensics.parsers.checkpoints.folders import Layout

HEAD_BYTES = 64

LLMC, LLMC_MAGIC = "llm.c", frozenset({20240326, 20240527})
"""Format and first integers of llm.c's files."""

SUFFIXES = frozenset({".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".tar", ".model", ".pkl"})
"""Names that checkpoints have; content decides."""

NAMED = frozenset({".pt", ".pth", ".ckpt", ".safetensors"})
"""Names that nothing else has."""

LOG_SUFFIXES = (".jsonl", ".csv", ".log", ".wandb", ".db")
LOG_NAMES = ("events.out.tfevents", "wandb", "mlruns", "lightning_logs", "tensorboard", "checkpoint-")
"""What the folder of a run has and that of a checkpoint has not."""

STEP_IN_NAME = re.compile(r"(\d{1,15})(?=\D*$)")


def is_checkpoint(path: Path) -> bool:
    """Whether a file or folder is a checkpoint that can be read here, by its first bytes or its files."""
    try:
        return _layout_of(path) is not None if path.is_dir() else _sniff(path) is not None
    except OSError:
        return False


def looks_like_checkpoint(path: Path) -> bool:
    """Whether a path is a checkpoint, or a file with the name of one: what is wrong with it is then worth saying.

    The folder of a run often is one as well (a final model beside the logs, a pointer to the latest checkpoint): that is a run.
    """
    if path.is_dir():
        return is_checkpoint(path) and not _is_run(path)
    return is_checkpoint(path) or (path.suffix in NAMED and path.is_file())


def _is_run(folder: Path) -> bool:
    names = {entry.name for entry in folder.iterdir()}
    if "trainer_state.json" in names and not names & {"optimizer.pt", "optimizer.bin"} and not any(n.startswith("global_step") for n in names):
        return True
    return any(n.startswith(LOG_NAMES) or n.endswith(LOG_SUFFIXES) for n in names)


def read(path: Path | str) -> Checkpoint:
    """The facts of a checkpoint. Bad content is damage in the result, never an exception; raises OSError where there is no such file.

    A file that is of no known format gives a checkpoint of format "unknown" without tensors, and damage that says so.
    """
    path = Path(path)
    size = 0 if path.is_dir() else path.stat().st_size
    try:
        return _read_folder(path) if path.is_dir() else _read_file(path, size)
    except OSError:
        raise
    except Exception as problem:  # noqa: BLE001 - one odd file must not take the report with it
        what = f"the reader failed: {type(problem).__name__}: {str(problem)[:200]}"
        return Checkpoint(str(path), "unknown", damage=(Damage(str(path), what, "the whole checkpoint"),), files=(str(path),), size=size)


def _read_file(path: Path, size: int) -> Checkpoint:
    try:
        format_name = _sniff(path)
        if format_name is None:
            raise CheckpointError(_unknown(path, size))
        opened = _READERS[format_name](path)
    except CheckpointError as problem:
        return Checkpoint(str(path), "unknown", damage=(Damage(str(path), str(problem), "the whole file"),), files=(str(path),), size=size)
    return describe(path, opened.format, opened.tree, [opened], step_in_name(path))


def _layout_of(path: Path) -> Layout | None:
    from forensics.parsers.checkpoints.folders import layout_of  # noqa: PLC0415 - as above

    return layout_of(path)


def _read_folder(path: Path) -> Checkpoint:
    try:
        layout = _layout_of(path)
        if layout is None:
            raise CheckpointError("no checkpoint folder that is read here: Hugging Face, accelerate, torch.distributed.checkpoint, DeepSpeed and Megatron are")
        found = layout.read(path)
    except CheckpointError as problem:
        return Checkpoint(str(path), "unknown", damage=(Damage(str(path), str(problem), "the whole folder"),), files=(str(path),))
    return describe(path, found.format, found.tree, found.sources, step_in_name(path))


def _read_llmc(path: Path) -> Opened:
    from forensics.parsers.checkpoints import llmc  # noqa: PLC0415 - rare, and its import is a tenth of reading the facts of a file

    return llmc.read(path)


_READERS = {LLMC: _read_llmc, torch_zip.NAME: torch_zip.read, torch_legacy.NAME: torch_legacy.read, safetensors.NAME: safetensors.read}


def _sniff(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith(torch_zip.MAGIC):
        return torch_zip.NAME
    if torch_legacy.is_mine(head):
        return torch_legacy.NAME
    if int.from_bytes(head[:4], "little") in LLMC_MAGIC:
        return LLMC
    if safetensors.is_mine(head, path.stat().st_size):
        return safetensors.NAME
    return None


def _unknown(path: Path, size: int) -> str:
    with path.open("rb") as file:
        head = file.read(200)
    if head.startswith(LFS_MARK):
        return "a Git LFS pointer: the checkpoint itself was not downloaded (git lfs pull)"
    if size == 0:
        return "the file is empty"
    if not any(head):
        return "the file begins with zeros: it was allocated and not written, or is no checkpoint"
    return "no checkpoint that is read here: PyTorch (.pt, .pth, .bin, .ckpt) and safetensors are"


def step_in_name(path: Path) -> int | None:
    """The last number in the name of a file or folder."""
    match = STEP_IN_NAME.search(path.stem if path.suffix in SUFFIXES else path.name)
    return int(match.group(1)) if match else None


__all__ = ["is_checkpoint", "looks_like_checkpoint", "read", "step_in_name"]
