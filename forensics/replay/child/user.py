"""The user's recipe: load it, check its shape, and fill in what it leaves out."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from forensics.replay.child.determinism import restore_saved

NEEDED = ("build", "batch", "loss")
"""What every recipe must have; ``load`` has a default."""

WEIGHTS = ("model", "state_dict", "model_state_dict", "module", "net", "network", "weights", "params", "model_state")
OPTIMIZERS = ("optimizer", "optimizer_state_dict", "optim", "optimizer_state", "opt", "optimizer_states")
SCALERS = ("scaler", "grad_scaler", "scaler_state_dict", "amp_scaler")
STEPS = ("step", "global_step", "iter_num", "iteration", "steps", "iter")
RANDOM = ("rng", "rng_state", "torch_rng_state", "random_state", "cpu_rng_state")
PREFIXES = ("module.", "_orig_mod.", "model.")


class RecipeError(Exception):
    """The recipe or the checkpoint does not fit; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a recipe is called with. ``config`` is the run's configuration as logged, nested as it was written."""

    run_dir: Path
    config: Mapping[str, Any]
    device: str


@dataclass(slots=True)
class Loaded:
    """What the default loading found in a checkpoint."""

    step: int | None = None
    scaler: Mapping[str, Any] | None = None
    random: bool = False
    optimizer: bool = False


class Recipe:
    """A user's recipe with its optional parts made explicit."""

    def __init__(self, inner: Any) -> None:
        missing = [name for name in NEEDED if not callable(getattr(inner, name, None))]
        if missing:
            raise RecipeError(f"the recipe has no {', '.join(missing)}: it needs build(), batch(step) and loss(model, batch)")
        self.inner = inner
        self.clip: float | None = getattr(inner, "clip", None)
        self.says_clip = hasattr(inner, "clip")
        self.precision: str = str(getattr(inner, "precision", None) or "fp32").lower().removesuffix("-mixed")

    def has(self, name: str) -> bool:
        """Whether an optional part is there."""
        return callable(getattr(self.inner, name, None))

    def build(self) -> tuple[Any, Any]:
        """Model and optimizer; raises RecipeError for another shape."""
        made = self.inner.build()
        if not (isinstance(made, Sequence) and len(made) == 2) or not isinstance(made[0], torch.nn.Module):
            raise RecipeError("build() must return (model, optimizer), with a torch.nn.Module first")
        return made[0], made[1]

    def load(self, model: Any, optimizer: Any, path: str) -> Loaded:
        """Load a checkpoint into model and optimizer, the recipe's way or by the usual names."""
        if self.has("load"):
            step = _whole(self.inner.load(model, optimizer, Path(path)))
            return Loaded(step=step, scaler=getattr(self.inner, "scaler", None), optimizer=True)
        return load_common(model, optimizer, path)

    def batch(self, step: int) -> Any:
        """The batch of a step."""
        return self.inner.batch(step)

    def loss(self, model: Any, batch: Any) -> Any:
        """The scalar loss."""
        value = self.inner.loss(model, batch)
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise RecipeError(f"loss(model, batch) must return a scalar tensor, not {type(value).__name__}")
        return value.reshape(())

    def ids(self, step: int) -> list[Any] | None:
        """The ids of the samples of a step, or None."""
        if not self.has("sample_ids"):
            return None
        return [_plain(x) for x in self.inner.sample_ids(step)]


def load_recipe(path: str, name: str, context: Context, extra_paths: Sequence[str] = ()) -> Recipe:
    """Import the recipe and call it.

    The file's folder comes first on the path, as when the script is run by hand. ``path`` may also be the name of a module.
    """
    for entry in reversed((str(Path(path).resolve().parent), *extra_paths)):
        if entry not in sys.path:
            sys.path.insert(0, entry)
    module = _from_file(Path(path)) if path.endswith(".py") or "/" in path else importlib.import_module(path)
    factory = getattr(module, name, None)
    if factory is None:
        there = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_") and getattr(v, "__module__", "") == module.__name__]
        raise RecipeError(f"{path} has no {name!r}; it defines {', '.join(there[:10]) or 'no functions'}. Say which with --recipe {path}:NAME")
    if not callable(factory):
        return Recipe(factory)
    return Recipe(factory(context) if inspect.signature(factory).parameters else factory())


def _from_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise RecipeError(f"{path} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # so that pickling and dataclasses in the user's file find their module
    spec.loader.exec_module(module)
    return module


def load_common(model: Any, optimizer: Any, path: str) -> Loaded:
    """Load a checkpoint laid out as most scripts do it. Raises RecipeError where it is not, or is of another model."""
    try:
        state = _open(path)
    except RecipeError:
        raise
    except Exception as problem:
        raise RecipeError(f"{path} cannot be loaded ({type(problem).__name__}: {problem}); give the recipe a load(model, optimizer, path)") from problem
    if not isinstance(state, dict):
        raise RecipeError(f"{path} holds a {type(state).__name__}, not a dictionary; give the recipe a load(model, optimizer, path)")
    weights = next((state[k] for k in WEIGHTS if isinstance(state.get(k), dict)), None)
    if weights is None:
        weights = state if state and all(isinstance(v, torch.Tensor) for v in state.values()) else None
    if weights is None:
        raise RecipeError(f"no weights under a usual name in {path} (it has {', '.join(map(str, list(state)[:12]))}); give the recipe a load()")
    _load_weights(model, weights, path)
    found = next((state[k] for k in OPTIMIZERS if state.get(k)), None)
    if isinstance(found, list):
        found = found[0] if found else None
    if isinstance(found, dict) and optimizer is not None:
        try:
            optimizer.load_state_dict(found)
        except (ValueError, KeyError, RuntimeError) as problem:
            raise RecipeError(f"the optimizer state of {path} does not fit the recipe's optimizer: {problem}") from problem
    seeded = any(restore_saved(state[k]) for k in RANDOM if k in state)
    step = next((_whole(state[k]) for k in STEPS if k in state), None)
    scaler = next((state[k] for k in SCALERS if isinstance(state.get(k), dict)), None)
    return Loaded(step=step, scaler=scaler, random=seeded, optimizer=found is not None)


def _open(path: str) -> Any:
    if Path(path).is_dir():
        return _open_folder(Path(path))
    if path.endswith(".safetensors"):
        return {"model": _safetensors(path)}
    return torch.load(path, map_location="cpu", weights_only=True)


def _open_folder(folder: Path) -> dict[str, Any]:
    """A folder of a Hugging Face Trainer: weights, optimizer.pt, rng_state.pth, trainer_state.json."""
    weights: dict[str, Any] = {}
    for part in sorted(folder.glob("*.safetensors")):
        weights |= _safetensors(str(part))
    for part in sorted(folder.glob("pytorch_model*.bin")):
        weights |= torch.load(part, map_location="cpu", weights_only=True)
    if not weights:
        raise RecipeError(f"no weights (*.safetensors, pytorch_model*.bin) in {folder}; give the recipe a load(model, optimizer, path)")
    state: dict[str, Any] = {"model": weights}
    if (folder / "optimizer.pt").is_file():
        state["optimizer"] = torch.load(folder / "optimizer.pt", map_location="cpu", weights_only=True)
    if (folder / "trainer_state.json").is_file():
        import json

        state["step"] = json.loads((folder / "trainer_state.json").read_text()).get("global_step")
    return state


def _safetensors(path: str) -> dict[str, Any]:
    try:
        from safetensors.torch import load_file
    except ImportError as problem:
        raise RecipeError("reading .safetensors into a model needs the safetensors package: pip install safetensors") from problem
    return dict(load_file(path))


def _load_weights(model: Any, weights: Mapping[str, Any], path: str) -> None:
    own = model.state_dict()
    for prefix in ("", *PREFIXES):
        shorn = {k.removeprefix(prefix): v for k, v in weights.items()}
        if set(own) <= set(shorn) or (not prefix and set(own) == set(shorn)):
            weights = shorn
            break
    missing = [k for k in own if k not in weights]
    wrong = [k for k in own if k in weights and tuple(own[k].shape) != tuple(weights[k].shape)]
    tied = missing and len(missing) < len(own) and all(k.endswith(("weight", "bias")) for k in missing) and not wrong
    if wrong or (missing and not (tied and len(missing) <= 2)):
        first = f"{wrong[0]} is {tuple(weights[wrong[0]].shape)} there and {tuple(own[wrong[0]].shape)} here" if wrong else f"it has no {missing[0]}"
        raise RecipeError(f"{path} is a checkpoint of another model: {first} ({len(missing)} tensors missing, {len(wrong)} of another shape)")
    model.load_state_dict(dict(weights), strict=False)


def _whole(value: Any) -> int | None:
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _plain(value: Any) -> Any:
    """A sample id as JSON can write it."""
    if hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, (int, float, str)) else str(value)
