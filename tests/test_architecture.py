"""Who may import whom, what starts how light, and what holds the packaging together."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "forensics"

ALLOWED: dict[str, tuple[set[str], set[str]]] = {
    # part of the code: (parts of forensics, packages of others) that it may import besides the standard library
    "version": (set(), set()),
    "errors": (set(), set()),
    "model": ({"model"}, {"numpy", "polars"}),
    "vocabulary": ({"model"}, {"numpy", "polars"}),
    "flight": ({"flight", "recorder"}, {"numpy", "torch", "transformers", "lightning", "pytorch_lightning"}),
    "recorder": ({"flight"}, {"torch"}),
    "replay.recipes": ({"replay.recipes", "flight"}, {"numpy", "torch", "transformers", "datasets", "safetensors", "lightning"}),
    "parsers": ({"parsers", "flight.records", "model", "vocabulary"}, {"numpy", "polars", "yaml"}),
    "primitives": ({"primitives", "model", "vocabulary"}, {"numpy", "scipy", "bottleneck"}),
    "detectors": ({"detectors", "primitives", "model", "vocabulary"}, {"numpy", "scipy", "bottleneck"}),
    "correlate": ({"correlate", "primitives", "detectors.incidents", "model", "vocabulary"}, {"numpy", "scipy"}),
    "causes": ({"causes", "correlate", "model", "vocabulary"}, {"numpy"}),
    "comparison": (
        {"comparison", "correlate.differences", "correlate.batches", "primitives", "model", "vocabulary", "version"},
        {"numpy"},
    ),
    "fleet": (
        {"fleet", "correlate.batches", "errors", "model", "parsers", "pipeline", "reports", "version", "vocabulary"},
        {"numpy"},
    ),
    "advice": ({"advice", "model"}, set()),
    "reports": ({"reports", "model"}, {"numpy", "jinja2", "markupsafe", "rich"}),
    "export": ({"model"}, {"numpy", "polars"}),
    "plugins": (set(), set()),
    "loading": ({"parsers", "model", "errors"}, {"numpy"}),
    "pipeline": (
        {"advice", "loading", "plugins", "model", "vocabulary", "parsers", "primitives", "detectors", "correlate", "causes", "reports", "errors", "version"},
        {"numpy"},
    ),
    "replay": ({"replay", "model", "vocabulary", "parsers.checkpoints", "correlate.settings", "causes", "errors"}, {"numpy", "torch", "safetensors"}),
    "simple_rules": ({"primitives", "model", "vocabulary"}, {"numpy"}),
    "bench": ({"loading", "pipeline", "simple_rules", "model", "errors"}, set()),
    "__init__": ({"loading", "pipeline", "primitives", "version"}, set()),
    "cli": (
        {"comparison", "fleet", "simple_rules"}
        | {"cli", "advice", "bench", "causes", "errors", "export", "loading", "model", "parsers", "pipeline", "replay", "reports", "version", "vocabulary"},
        {"rich"},
    ),
}

HEAVY = {"torch", "mlflow", "tbparse", "tensorboard", "pandas", "scipy.stats", "wandb", "google.protobuf"}
"""Packages that take longer to load than a run to read."""


def _sources() -> Iterator[tuple[str, Path]]:
    """(module name without the leading ``forensics.``, file) of every source file."""
    for folder in (PACKAGE, ROOT / "parsers", ROOT / "reports"):
        for path in sorted(folder.rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents):
                relative = path.relative_to(PACKAGE if folder == PACKAGE else ROOT).with_suffix("")
                parts = relative.parts[:-1] if relative.name == "__init__" and len(relative.parts) > 1 else relative.parts
                yield ".".join(parts), path


SOURCES = dict(_sources())


def _imports(path: Path) -> Iterator[tuple[str, int]]:
    """Full dotted names that a file imports, wherever in it, with their lines; ``from a import b`` gives ``a.b``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def _allows(granted: set[str], name: str) -> bool:
    return any(name == part or name.startswith(part + ".") for part in granted)


def _module(name: str) -> str:
    """The part of a dotted name that is a module: ``model.Case`` -> ``model``."""
    while name and name not in SOURCES:
        name = name.rpartition(".")[0]
    return name


@pytest.mark.parametrize("name", SOURCES)
def test_imports_stay_within_the_rules(name: str) -> None:
    path = SOURCES[name]
    own, others = ALLOWED["replay.recipes" if name.startswith("replay.recipes") else name.partition(".")[0]]
    broken = []
    for imported, line in _imports(path):
        top = imported.split(".")[0]
        if top == "forensics":
            target = imported.removeprefix("forensics").removeprefix(".")
            if not _allows(own, target) and target != "version.__version__":
                broken.append(f"line {line}: {imported}")
        elif top not in sys.stdlib_module_names and not _allows(others, imported):
            broken.append(f"line {line}: {imported}")
    assert not broken, f"{path}: " + "; ".join(broken)


@pytest.mark.parametrize("name", [n for n in SOURCES if n.startswith("causes.") and n.count(".") > 1 and not n.startswith("causes.unseen")])
def test_causes_do_not_know_each_other(name: str) -> None:
    known = {_module(i.removeprefix("forensics.")) for i, _ in _imports(SOURCES[name]) if i.startswith("forensics.causes")}
    assert known <= {"causes.interface"}


@pytest.mark.parametrize("name", [n for n in SOURCES if n.startswith(("replay.child", "replay.experiments", "replay.wire"))])
def test_the_replayed_process_knows_nothing_of_the_tool(name: str) -> None:
    """It is the user's process: PyTorch, the messages, and nothing else of ours."""
    allowed = {"replay.wire", "replay.child", "replay.experiments"}
    ours = [i.removeprefix("forensics.") for i, _ in _imports(SOURCES[name]) if i.startswith("forensics")]
    assert not [i for i in ours if not _allows(allowed, i)]


@pytest.mark.parametrize("name", [n for n in SOURCES if n.startswith("replay") and not n.startswith(("replay.child", "replay.experiments", "replay.recipes"))])
def test_the_host_of_a_replay_does_not_load_pytorch(name: str) -> None:
    assert not [i for i, _ in _imports(SOURCES[name]) if i.split(".")[0] == "torch"]


@pytest.mark.parametrize("name", [n for n in SOURCES if not n.startswith("cli")])
def test_nobody_imports_the_command_line(name: str) -> None:
    assert not [i for i, _ in _imports(SOURCES[name]) if i.startswith("forensics.cli")]


def test_every_part_has_a_rule() -> None:
    assert {name.split(".")[0] for name in SOURCES} == {name.split(".")[0] for name in ALLOWED}


@pytest.mark.parametrize("name", ["parsers", "reports"])
def test_links_are_links(name: str) -> None:
    link = PACKAGE / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../{name}"  # noqa: PTH115 - the text of the link itself


def _python(code: str, *, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, env=environment, check=False)


@pytest.mark.parametrize("name", ["parsers", "reports"])
def test_generic_names_refuse_to_load(name: str) -> None:
    done = _python(f"import {name}")
    assert done.returncode == 1
    assert f"import this package as forensics.{name}" in done.stderr


def _loaded_after(code: str, tmp_path: Path) -> set[str]:
    done = _python(f"{code}\nimport sys\nprint('LOADED', *sys.modules)", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("LOADED")[2].split())


def test_import_is_lazy(tmp_path: Path) -> None:
    loaded = _loaded_after("import forensics", tmp_path)
    assert {name for name in loaded if name.startswith("forensics")} == {"forensics", "forensics.version"}
    assert not loaded & {"numpy", "polars", "rich", "jinja2"}


def test_lazy_names_work_and_others_do_not(tmp_path: Path) -> None:
    code = """
import forensics
assert callable(forensics.analyze) and callable(forensics.load)
assert 'analyze' in dir(forensics)
assert not hasattr(forensics, 'nothing')
"""
    assert "forensics.pipeline" in _loaded_after(code, tmp_path)


def test_help_loads_no_package(tmp_path: Path) -> None:
    loaded = _loaded_after("from forensics.cli.main import main\nmain(['--help'])", tmp_path)
    assert not {name.split(".")[0] for name in loaded} & {"numpy", "polars", "scipy", "rich", "jinja2", "yaml", *HEAVY}


def test_analysis_of_a_table_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text("step,loss,lr\n" + "".join(f"{i},{5 - i / 100},{0.001}\n" for i in range(200)))
    code = "from forensics.cli.main import main\nassert main(['analyze', 'run.csv', '--quiet', '--json', 'out.json', '--html', 'out.html']) == 0"
    loaded = _loaded_after(code, tmp_path)
    assert not loaded & HEAVY
    assert (tmp_path / "out.html").stat().st_size > 0
