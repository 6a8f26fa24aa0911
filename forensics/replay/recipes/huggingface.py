"""Hugging Face Trainer: model from config.json, arguments from training_args.bin, order from the sampler's seed.

    from forensics.replay.recipes.huggingface import HuggingFaceRecipe

    def recipe(context):
        return HuggingFaceRecipe(context, dataset=my_dataset(), collator=my_collator())

or, where the training script has a function that makes its Trainer, ``HuggingFaceRecipe(context, trainer=make_trainer())``.
"""

from __future__ import annotations

import copy
import io
import json
import math
import pickle
import re
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forensics.replay.recipes.ready import Context, Ready, one_by_one

MAX_PICKLE = 1 << 22
"""Bytes of the pickled arguments that are looked at: they take some kilobytes."""

OWN = {"report_to": [], "push_to_hub": False, "disable_tqdm": True, "deepspeed": None, "fsdp": [], "fsdp_config": None, "local_rank": -1}
"""Arguments that a replay sets for itself: it reports to nobody and runs in one process."""

_CHECKPOINT = re.compile(r"checkpoint-(\d+)$")


class HuggingFaceRecipe(Ready):
    """Replays a run of ``transformers.Trainer``. Step N is the optimizer step that the Trainer logs as step N.

    Give ``trainer``, made as in the training script, or ``dataset`` (a dataset, or the folder of a saved one) and, where it was not the
    default, ``collator``. ``arguments`` overrides training arguments; ``model`` replaces the one made from config.json.
    """

    def __init__(
        self,
        context: Context,
        *,
        trainer: Any = None,
        dataset: Any = None,
        collator: Any = None,
        model: Any = None,
        arguments: Mapping[str, Any] | None = None,
        processing_class: Any = None,
    ) -> None:
        super().__init__(context)
        import transformers

        transformers.utils.logging.disable_progress_bar()
        if trainer is None and dataset is None:
            raise ValueError("HuggingFaceRecipe needs the training dataset (dataset=...) or the Trainer (trainer=...)")
        self.trainer = trainer or self._own_trainer(dataset, collator, model, arguments or {}, processing_class)
        self._initial = None if self.trainer.model_init is not None else copy.deepcopy(self.trainer.model).cpu()
        args = self.trainer.args
        self.clip = args.max_grad_norm if args.max_grad_norm and args.max_grad_norm > 0 else None
        self.precision = "bf16" if args.bf16 else "fp16" if args.fp16 else "fp32"
        self.micro_batches = int(args.gradient_accumulation_steps)
        transformers.set_seed(args.seed)
        self._loader: Any = self.trainer.get_train_dataloader()
        self._per_epoch = max(1, math.ceil(len(self._loader) / self.micro_batches))
        self._order: tuple[int, list[list[int]]] | None = None
        self._schedule: Any = None
        if self._sampler() is not None and not hasattr(self._sampler(), "set_epoch") and type(self._sampler()).__name__ != "SequentialSampler":
            self.notes.append("the order of samples came from the global generator: it is exact only where the flight recorder confirms it")

    def build(self) -> tuple[Any, Any]:
        """Model and optimizer, made by the Trainer's own code."""
        import transformers

        transformers.set_seed(self.trainer.args.seed)
        model = self.trainer.call_model_init() if self._initial is None else copy.deepcopy(self._initial)
        model = model.to(self.device).train()
        self.trainer.model = self.trainer.model_wrapped = model
        self.trainer.optimizer = None
        return model, self.trainer.create_optimizer()

    def load(self, model: Any, optimizer: Any, path: str | Path) -> int:
        """Load a ``checkpoint-N`` folder: weights, optimizer, RNG; the step after it. Raises OSError, ValueError, RuntimeError."""
        import torch

        folder = Path(path)
        state = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
        model.load_state_dict(_weights(model, folder))
        if hasattr(model, "tie_weights"):
            model.tie_weights()
        if not (folder / "optimizer.pt").exists():
            raise ValueError(f"{folder}: no optimizer.pt; the run saved only the model, and an optimizer that starts anew takes other steps")
        optimizer.load_state_dict(torch.load(folder / "optimizer.pt", map_location=self.device, weights_only=True))
        self.scaler = torch.load(folder / "scaler.pt", weights_only=True) if (folder / "scaler.pt").exists() else None
        self._restore_rng(folder)
        return int(state["global_step"]) + 1

    def before(self, step: int) -> None:
        """At the first step of an epoch the data loader draws a seed for its workers, whether it has any or not."""
        import torch

        if step > 1 and (step - 1) % self._per_epoch == 0:
            torch.empty((), dtype=torch.int64).random_()

    def sample_ids(self, step: int) -> list[int]:
        """Rows of the dataset that the step saw."""
        recorded = self.flight.sample_ids(step)
        return [int(i) for i in recorded] if recorded else [row for micro in self._rows(step) for row in micro]

    def make_batch(self, step: int) -> Any:
        """The inputs of the model; a list of them where gradients are accumulated."""
        micro = [self._loader.collate_fn([self._loader.dataset[row] for row in rows]) for rows in self._rows(step)]
        return micro[0] if self.micro_batches == 1 else micro

    def loss(self, model: Any, batch: Any) -> Any:
        """The loss as ``Trainer.compute_loss`` has it, normalised over micro-batches as the Trainer does."""
        parts = batch if isinstance(batch, list) else [batch]
        _, items = _counted(self.trainer, parts, self.device)
        losses = [self.trainer.compute_loss(model, dict(part), num_items_in_batch=items) for part in parts]
        scaled = (self.trainer.model_accepts_loss_kwargs and items is not None) or self.trainer.compute_loss_func is not None
        return sum(losses) if scaled or len(parts) == 1 else sum(losses) / len(parts)

    def losses(self, model: Any, batch: Any) -> Any:
        """The loss of every sample alone, shape (samples,)."""
        import torch

        parts = batch if isinstance(batch, list) else [batch]
        return torch.stack([self.loss(model, [one]).detach() for part in parts for one in one_by_one(part)])

    def lr(self, step: int) -> float | None:
        """The learning rate that the step was taken with; None where the schedule depends on metrics."""
        if self._schedule is None:
            import torch

            held = self.trainer.lr_scheduler
            self.trainer.lr_scheduler = None
            optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=self.trainer.args.learning_rate)
            self._schedule = self.trainer.create_scheduler(num_training_steps=self._max_steps(), optimizer=optimizer)
            self.trainer.lr_scheduler = held
        lambdas = getattr(self._schedule, "lr_lambdas", None)
        return None if lambdas is None else float(self.trainer.args.learning_rate * lambdas[0](step - 1))

    def _own_trainer(self, dataset: Any, collator: Any, model: Any, arguments: Mapping[str, Any], processing_class: Any) -> Any:
        import transformers

        home = Path(self.context.run_dir)
        found = {**read_arguments(home), **arguments}
        known = {f for f in transformers.TrainingArguments.__dataclass_fields__ if transformers.TrainingArguments.__dataclass_fields__[f].init}
        chosen = {k: v for k, v in {**found, **OWN}.items() if k in known}
        chosen["output_dir"] = tempfile.mkdtemp(prefix="forensics-replay-")
        if str(self.device).startswith("cpu") and "use_cpu" in known:
            chosen["use_cpu"] = True
        if isinstance(dataset, (str, Path)):
            import datasets

            dataset = datasets.load_from_disk(str(dataset))
        args = transformers.TrainingArguments(**chosen)
        transformers.set_seed(args.seed)
        return transformers.Trainer(
            model=model if model is not None else model_of(home), args=args, train_dataset=dataset, data_collator=collator, processing_class=processing_class
        )

    def _sampler(self) -> Any:
        found: Any = getattr(self._loader, "batch_sampler", None)
        while hasattr(found, "batch_sampler"):
            found = found.batch_sampler
        return getattr(found, "sampler", None)

    def _rows(self, step: int) -> list[list[int]]:
        """Rows of every micro-batch of a step."""
        if step < 1:
            raise ValueError("the Trainer's first step is step 1")
        epoch, place = divmod(step - 1, self._per_epoch)
        if self._order is None or self._order[0] != epoch:
            sampler = self._sampler()
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)
            self._order = (epoch, [list(rows) for rows in self._loader.batch_sampler])
        return self._order[1][place * self.micro_batches : (place + 1) * self.micro_batches]

    def _max_steps(self) -> int:
        if self.trainer.args.max_steps > 0:
            return int(self.trainer.args.max_steps)
        epochs: float = self.trainer.args.num_train_epochs
        return math.ceil(epochs * self._per_epoch)

    def _restore_rng(self, folder: Path) -> None:
        """Generators as they stood when the checkpoint was written; what cannot be had is noted."""
        import numpy as np
        import torch

        path = folder / "rng_state.pth"
        if not path.exists():
            self.notes.append(f"{folder.name} holds no rng_state.pth: dropout is not that of the run")
            return
        allowed = [np._core.multiarray._reconstruct, np.ndarray, np.dtype, type(np.dtype(np.uint32))]  # type: ignore[attr-defined]
        try:
            with torch.serialization.safe_globals(allowed):
                saved = torch.load(path, map_location="cpu", weights_only=True)
            torch.set_rng_state(saved["cpu"])
            name, keys, *rest = saved["numpy"]
            np.random.set_state((name, np.asarray(keys, dtype=np.uint32), *rest))
            _restore_python(saved["python"])
            if torch.cuda.is_available() and "cuda" in saved and str(self.device).startswith("cuda"):
                states = saved["cuda"]
                torch.cuda.set_rng_state(states[0] if isinstance(states, (list, tuple)) else states)
        except (KeyError, TypeError, ValueError, RuntimeError, pickle.UnpicklingError) as problem:
            self.notes.append(f"{path.name} could not be restored ({type(problem).__name__}): dropout is not that of the run")


def _restore_python(state: Any) -> None:
    import random

    random.setstate((state[0], tuple(state[1]), state[2]))


def _counted(trainer: Any, parts: list[Any], device: Any) -> tuple[Any, Any]:
    """The micro-batches and the number of items in them, as the Trainer counts; the device became an argument in 4.48."""
    try:
        return trainer.get_batch_samples(iter(parts), len(parts), device)  # type: ignore[no-any-return]
    except TypeError:
        return trainer.get_batch_samples(iter(parts), len(parts))  # type: ignore[no-any-return]


def _weights(model: Any, folder: Path) -> Mapping[str, Any]:
    """The weights of a checkpoint with the model's own names. Raises ValueError where there are none."""
    import torch

    if hasattr(model, "config") and hasattr(type(model), "from_pretrained") and (folder / "config.json").exists():
        return type(model).from_pretrained(folder, config=model.config).state_dict()  # type: ignore[no-any-return]
    if (folder / "model.safetensors").exists():
        from safetensors.torch import load_file

        weights: Mapping[str, Any] = load_file(folder / "model.safetensors")
        return weights
    if (folder / "pytorch_model.bin").exists():
        return torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)  # type: ignore[no-any-return]
    raise ValueError(f"{folder}: neither model.safetensors nor pytorch_model.bin")


def checkpoints(home: Path) -> list[Path]:
    """The checkpoint-N folders of a run, the latest last; the run itself counts where it is one."""
    found = [p for p in home.glob("checkpoint-*") if _CHECKPOINT.search(p.name)] if home.is_dir() else []
    return sorted(found, key=lambda p: int(p.name.rpartition("-")[2])) or ([home] if (home / "config.json").exists() else [])


def model_of(home: Path) -> Any:
    """The model that the checkpoints' config.json describes, with initial weights. Raises ValueError where none does."""
    import transformers

    for folder in reversed(checkpoints(home)):
        if (folder / "config.json").exists():
            config = transformers.AutoConfig.from_pretrained(folder)
            name = (config.architectures or [""])[0]
            if not isinstance(getattr(transformers, name, None), type):
                raise ValueError(f"{folder}/config.json names the architecture {name!r}, which transformers does not have: give the recipe its model")
            return getattr(transformers, name)(config)
    raise ValueError(f"{home}: no checkpoint-N folder with a config.json: give the recipe its model")


def read_arguments(home: Path) -> dict[str, Any]:
    """The run's training arguments out of training_args.bin; {} where there is none. Nothing in the file is executed."""
    for folder in (*reversed(checkpoints(home)), home):
        path = folder / "training_args.bin"
        if path.exists():
            with zipfile.ZipFile(path) as archive:
                name = next((n for n in archive.namelist() if n.endswith("data.pkl")), "")
                if not name or archive.getinfo(name).file_size > MAX_PICKLE:
                    raise ValueError(f"{path}: no training arguments of this layout")
                try:
                    found = vars(_Plain(io.BytesIO(archive.read(name))).load())
                except Exception as problem:  # a pickle can fail in any way
                    raise ValueError(f"{path}: the training arguments could not be read ({type(problem).__name__}: {problem})") from problem
            return {str(k): v for k, v in found.items() if _is_plain(v)}
    return {}


def _is_plain(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or type(value) in {bool, int, float, str}


class _Thing:
    """Stands for an object of any class: its attributes, and nothing of its code."""

    def __init__(self, *args: object) -> None:
        del args

    def __call__(self, *args: object) -> _Thing:
        return _Thing(*args)

    def __setstate__(self, state: object) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)


class _Plain(pickle.Unpickler):
    """Reads a pickle without importing anything: members of enumerations become their values, other objects empty shells."""

    def find_class(self, module: str, name: str) -> Any:
        """A shell for every class."""
        if module.startswith("transformers") and name.endswith(("Strategy", "Type", "Names", "Option", "Options", "Level")):
            return _value
        return type(name, (_Thing,), {})

    def persistent_load(self, pid: object) -> object:
        """Tensors are not arguments."""
        del pid
        return None


def _value(value: object, *_: object) -> object:
    return value
