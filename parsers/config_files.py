"""Configuration beside a run: JSON and YAML files by their usual names. They add settings, they are no run."""

from __future__ import annotations

import json
from collections.abc import Mapping

from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "config"

NAMES = frozenset(
    {
        "config.json",
        "args.json",
        "params.json",
        "hparams.json",
        "hyperparameters.json",
        "training_args.json",
        "config.yaml",
        "config.yml",
        "hparams.yaml",
        "params.yaml",
        "args.yaml",
    }
)
MAX_JSON = 1 << 23
MAX_YAML = 1 << 19
"""PyYAML reads about a megabyte in two seconds."""
MAX_NODES = 20_000
MAX_DEPTH = 12
ORDER = 1.0


def sniff(source: Source) -> Claim | None:
    """Claim by file name, as an adjunct."""
    if source.is_dir or source.path.name.lower() not in NAMES:
        return None
    return Claim(NAME, 50, (RunKey(),), adjunct=True)


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - settings belong to the run beside them
    """Add the settings of the file."""
    is_json = source.path.suffix.lower() == ".json"
    limit = MAX_JSON if is_json else MAX_YAML
    if source.size > limit:
        sink.damage(f"a configuration file of {source.size} bytes is over the limit of {limit}", "its settings")
        return
    data = source.path.read_bytes()
    sink.progress(len(data))
    try:
        value = json.loads(data) if is_json else _yaml(data)
    except RecursionError:
        sink.damage("nested too deeply", "its settings")
        return
    except ValueError as problem:
        sink.damage(f"not readable as {'JSON' if is_json else 'YAML'} ({str(problem).splitlines()[0][:120]})", "its settings")
        return
    if isinstance(value, dict):
        budget = [MAX_NODES]
        sink.config(_bounded(_unwrap(value), budget, 0))  # type: ignore[arg-type]
        if budget[0] <= 0:
            sink.damage(f"more than {MAX_NODES} settings", "the settings past that number")


def _unwrap(value: Mapping[str, object]) -> dict[str, object]:
    """W&B writes {key: {value: ..., desc: ...}} and keeps its own facts under _wandb."""
    plain = {k: v for k, v in value.items() if k not in {"_wandb", "wandb_version"}}
    shaped = plain and all(isinstance(v, dict) and "value" in v and set(v) <= {"value", "desc"} for v in plain.values())
    return {k: v["value"] for k, v in plain.items()} if shaped else plain  # type: ignore[index]


def _bounded(value: object, budget: list[int], depth: int) -> object:
    """A copy without shared parts, cut at MAX_NODES and MAX_DEPTH: YAML aliases can multiply without bound."""
    budget[0] -= 1
    if budget[0] <= 0 or depth > MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {str(k)[:200]: _bounded(v, budget, depth + 1) for k, v in value.items() if budget[0] > 0}
    if isinstance(value, (list, tuple)):
        return [_bounded(v, budget, depth + 1) for v in value[:17]] if budget[0] > 0 else None
    return value


def _yaml(data: bytes) -> object:
    import yaml  # noqa: PLC0415 - paid only where a YAML file lies beside the run

    class Loader(yaml.SafeLoader):
        """Unknown tags (``!!python/tuple``) become the plain data they stand before; nothing is constructed."""

    def plain(loader: yaml.SafeLoader, _suffix: str, node: yaml.Node) -> object:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_scalar(node)  # type: ignore[arg-type]

    Loader.add_multi_constructor("", plain)
    try:
        return yaml.load(data, Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, AttributeError, TypeError, UnicodeError) as problem:
        raise ValueError(str(problem) or type(problem).__name__) from problem
