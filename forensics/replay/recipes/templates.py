"""Templates of recipes, and which one fits a run. No framework is imported here."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_PICKLE = 1 << 26
"""Bytes of a checkpoint's index in which the marks of its framework are looked for."""
MAX_FILES = 2000
"""Files of a run that are looked at."""


@dataclass(frozen=True, slots=True)
class Template:
    """A commented recipe. ``kind`` is its name on the command line."""

    kind: str
    what: str
    text: str


HUGGINGFACE = Template(
    "huggingface",
    "a run of Hugging Face's Trainer: checkpoint-N folders with trainer_state.json",
    '''\
"""Recipe of a Hugging Face Trainer run, for:  forensics replay RUN --recipe THIS_FILE"""

from forensics.replay.recipes.huggingface import HuggingFaceRecipe


def recipe(context):
    # The training dataset exactly as Trainer(train_dataset=...) got it: tokenised, filtered, in the same order.
    # Or the folder that Dataset.save_to_disk wrote, as a text.
    from train import make_dataset  # TODO: your own function

    return HuggingFaceRecipe(
        context,
        dataset=make_dataset(),
        # collator=...,           # where Trainer(data_collator=...) was given
        # model=...,              # where the class is not one of transformers'; else config.json says it
        # arguments={"seed": 1},  # where training_args.bin is missing, or holds something else than the run had
        # trainer=make_trainer(), # instead of all of the above: the Trainer as your script makes it
    )
''',
)

LIGHTNING = Template(
    "lightning",
    "a run of Lightning with one optimizer: .ckpt files",
    '''\
"""Recipe of a Lightning run, for:  forensics replay RUN --recipe THIS_FILE"""

from lightning import seed_everything

from forensics.replay.recipes.lightning import LightningRecipe


def recipe(context):
    from train import MyData, MyModule  # TODO: your own classes

    # The seed, then the objects in the order in which your script makes them: shuffling may depend on it.
    seed_everything(1)  # TODO
    return LightningRecipe(
        context,
        module=MyModule(),
        datamodule=MyData(),  # or the training data loader
        # As given to the Trainer:
        clip=None,  # gradient_clip_val
        accumulate=1,  # accumulate_grad_batches
        precision="fp32",  # "bf16" for bf16-mixed, "fp16" for 16-mixed
    )
''',
)

NANOGPT = Template(
    "nanogpt",
    "nanoGPT and scripts of its shape: train.bin, ckpt.pt with iter_num",
    '''\
"""Recipe of a nanoGPT run, for:  forensics replay RUN --recipe THIS_FILE"""

from forensics.replay.recipes.nanogpt import NanoGPTRecipe


def recipe(context):
    from model import GPT, GPTConfig  # TODO: nanoGPT's model.py beside this file, or your own

    return NanoGPTRecipe(
        context,
        model=lambda: GPT(GPTConfig(n_layer=12, n_head=12, n_embd=768, block_size=1024, bias=False, vocab_size=50304, dropout=0.0)),  # TODO
        data="data/openwebtext",  # TODO: the folder of train.bin and val.bin
        # Settings of train.py that differ from its defaults and are not in the logged configuration:
        # seed=1337, batch_size=12, block_size=1024, gradient_accumulation_steps=40, eval_interval=2000, eval_iters=200,
        # learning_rate=6e-4, warmup_iters=2000, lr_decay_iters=600000, min_lr=6e-5, dtype="bfloat16",
        # first=0,                # the step of the resume, where the run was resumed: its generator began anew there
    )
''',
)

OWN = Template(
    "own",
    "any other training script in PyTorch",
    '''\
"""Recipe of a training script of your own, for:  forensics replay RUN --recipe THIS_FILE"""

import train  # TODO: your training script, beside this file; it must not start training when it is imported


class Recipe:
    clip = 1.0  # TODO: the norm that gradients are clipped to, or None
    precision = "fp32"  # or "bf16", "fp16": autocast, and a GradScaler for the last

    def __init__(self, context):
        self.config, self.run_dir, self.device = context.config, context.run_dir, context.device

    def build(self):  # model and optimizer as before the first step
        return train.build(self.config)  # TODO

    def batch(self, step):  # the batch of a step, in the step numbers of the log
        return train.get_batch(step)  # TODO; or, from the flight recorder: FlightLog(self.run_dir).kept(step).value()

    def loss(self, model, batch):  # a scalar tensor
        return train.loss_fn(model, batch)  # TODO

    # May be left out: load(model, optimizer, path) -> next step, losses(model, batch), sample_ids(step), lr(step); docs/replay.md


def recipe(context):
    return Recipe(context)
''',
)

TEMPLATES = (HUGGINGFACE, LIGHTNING, NANOGPT, OWN)


def detect(run: Path) -> tuple[Template, str]:
    """The template that fits a run, and what spoke for it. Raises OSError where the run cannot be looked at."""
    files = list(_files(run))
    state = next((f for f in files if f.name == "trainer_state.json"), None)
    if state is not None:
        return HUGGINGFACE, f"{state} is there"
    for file in files:
        if file.suffix not in {".ckpt", ".pt", ".pth"}:
            continue
        index = _index(file)
        if b"pytorch-lightning_version" in index:
            return LIGHTNING, f"{file} was written by Lightning"
        if b"iter_num" in index and b"model_args" in index:
            return NANOGPT, f"{file} was written by nanoGPT"
    return OWN, "no framework's checkpoint was recognised"


def _files(run: Path) -> Iterator[Path]:
    if not run.is_dir():
        yield run
        return
    for number, path in enumerate(sorted(run.rglob("*"))):
        if number >= MAX_FILES:
            return
        if path.is_file():
            yield path


def _index(path: Path) -> bytes:
    """The pickle of a PyTorch checkpoint, as bytes: nothing of it is run."""
    try:
        with zipfile.ZipFile(path) as archive:
            name = next((n for n in archive.namelist() if n.endswith("data.pkl")), "")
            return archive.read(name) if name and archive.getinfo(name).file_size <= MAX_PICKLE else b""
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError):
        return b""
