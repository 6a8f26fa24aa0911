"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the tree."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPES = re.compile(r"```python\n# (\S+\.py)\n(.*?)```", re.DOTALL)
FILES: dict[str, str] = dict(RECIPES.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))

EDITS = (
    ("parsers/builtin.py", "MODULES = (\n", '    "pairs",\n'),
    ("forensics/detectors/__init__.py", "from forensics.detectors import (\n", "    slowdown,\n"),
    ("forensics/detectors/__init__.py", "BUILTIN: tuple[ModuleType, ...] = (\n", "    slowdown,\n"),
    ("forensics/causes/catalogue.py", "from types import ModuleType\n", "\nfrom forensics.causes.data import overlong_batch\n"),
    ("forensics/causes/catalogue.py", "RULES: tuple[ModuleType, ...] = (\n", "    overlong_batch,\n"),
    ("tests/test_catalogue.py", '    "data": """\n', "        overlong_batch\n"),
)
"""What the recipes add to existing files: the file, the line, and what comes below it."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name in ("forensics", "parsers", "reports", "tests"):
        shutil.copytree(ROOT / name, root / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "fixtures").symlink_to(ROOT / "fixtures")
    shutil.copy(ROOT / "pyproject.toml", root)
    for path, text in FILES.items():
        assert not (root / path).exists(), f"{path} exists: the recipe needs another example"
        (root / path).write_text(text, encoding="utf-8")
    for path, line, more in EDITS:
        text = (root / path).read_text(encoding="utf-8")
        assert text.count(line) == 1, f"{path}: {line!r}"
        (root / path).write_text(text.replace(line, line + more), encoding="utf-8")
    return root


def _python(tree: Path, *argv: str) -> None:
    done = subprocess.run([sys.executable, "-m", *argv], cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_three_recipes_with_a_test_each() -> None:
    assert len(FILES) == 6


def test_their_tests_pass(tree: Path) -> None:
    new = [path for path in FILES if path.startswith("tests/")]
    _python(tree, "pytest", "-q", "-p", "no:cacheprovider", *new, "tests/unit/detectors/test_every_detector.py", "tests/test_catalogue.py")


def test_they_keep_to_the_import_rules(tree: Path) -> None:
    _python(tree, "pytest", "-q", "-p", "no:cacheprovider", "tests/test_architecture.py", "-k", "rules or causes or command_line")


def test_their_style_is_ours(tree: Path) -> None:
    _python(tree, "ruff", "check", "--no-cache", *FILES)
