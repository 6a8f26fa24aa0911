"""Every format with bytes changed, dropped and put in: damage or a reading, and nothing else."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from checkpoint_files import save, state

from forensics.parsers.checkpoints.differences import compare
from forensics.parsers.checkpoints.reading import read
from forensics.parsers.checkpoints.stats import measure

FIXTURES = Path(__file__).parents[4] / "fixtures" / "checkpoints"
FILES = {
    "optimizer": ("gpt2/checkpoint-3", "optimizer.pt"),
    "weights": ("gpt2/checkpoint-3", "model.safetensors"),
    "trainer": ("gpt2/checkpoint-3", "trainer_state.json"),
    "index": ("sharded", "model.safetensors.index.json"),
    "zero": ("zero1", "global_step3/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"),
    "zero3": ("zero3", "global_step3/zero_pp_rank_0_mp_rank_00_model_states.pt"),
    "generators": ("accelerate", "random_states_0.pkl"),
}


def spoil(data: bytes, chance: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(min(len(out), 6000))
        what = chance.random()
        if what < 0.6:
            out[at] = chance.randrange(256)
        elif what < 0.8:
            del out[at : at + chance.randrange(1, 20)]
        else:
            out[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
    return bytes(out)


def survives(root: Path, file: Path, rounds: int) -> None:
    whole, chance = file.read_bytes(), random.Random(5)
    for _ in range(rounds):
        file.write_bytes(spoil(whole, chance))
        found = read(root)
        assert not any("the reader failed" in d.what for d in found.damage)
        measure(found)
        compare(found, found)


@pytest.mark.parametrize("name", FILES)
def test_folders(tmp_path: Path, name: str) -> None:
    folder, file = FILES[name]
    shutil.copytree(FIXTURES / folder, tmp_path / "it")
    survives(tmp_path / "it", tmp_path / "it" / file, 40)


@pytest.mark.parametrize("legacy", [False, True])
def test_files(tmp_path: Path, legacy: bool) -> None:
    path = save(tmp_path / "a.pt", state(), legacy=legacy)
    survives(path, path, 80)
