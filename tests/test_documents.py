"""What README and CHANGELOG say is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from forensics.causes import manual
from forensics.cli.main import COMMANDS, main
from forensics.version import __version__

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")


def test_the_version_has_an_entry() -> None:
    assert f"## {__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_command_is_there_and_no_other() -> None:
    named = set(re.findall(r"forensics ([a-z]+)\b(?= [A-Z\[]|\s{2,}| case\.json|\n| fixtures)", README))
    assert named == set(COMMANDS)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_targets_of_make_exist(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake ([a-z-]+)\b", (ROOT / page).read_text(encoding="utf-8")):
        assert f"\n{target}: " in makefile, target


def test_the_size_of_the_catalogue() -> None:
    assert f"the {len(manual.ids())} causes" in README


def test_the_printed_figures_of_the_bundled_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(ROOT / "fixtures/labelled/labels.json"), "--jobs", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] in README


def test_the_printed_verdict_of_the_demonstration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    assert "\n".join("    " + line for line in capsys.readouterr().out.splitlines()[:2]) in README


def test_the_picture_is_small() -> None:
    assert (ROOT / "docs/report.png").stat().st_size < 300_000
