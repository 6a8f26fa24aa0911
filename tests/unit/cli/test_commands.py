from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import polars as pl
import pytest

from forensics.cli import main as command_line
from forensics.cli.main import COMMANDS, main
from forensics.model.schema import schema_text
from forensics.reports import json_report
from forensics.version import __version__

ROOT = Path(__file__).parents[3]
DEMO = ROOT / "forensics/demo_run"
LABELLED = ROOT / "fixtures/labelled"
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def files() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def torn(folder: Path) -> Path:
    """A run whose last record is cut off."""
    source = next((LABELLED / "nan_batch").iterdir())
    folder.mkdir()
    (folder / source.name).write_bytes(source.read_bytes()[:-7])
    return folder


class TestHelp:
    @pytest.mark.parametrize("argv", [["--help"], ["-h"], ["help"]])
    def test_help(self, argv: list[str], capsys: Capture) -> None:
        assert main(argv) == 0
        out = capsys.readouterr().out
        assert all(name in out for name in COMMANDS)
        assert "exit codes" in out

    def test_no_command_is_wrong_use(self, capsys: Capture) -> None:
        assert main([]) == 2
        assert "usage" in capsys.readouterr().out

    @pytest.mark.parametrize("argv", [["--version"], ["-V"]])
    def test_version(self, argv: list[str], capsys: Capture) -> None:
        assert main(argv) == 0
        assert capsys.readouterr().out == f"forensics {__version__}\n"

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_has_help(self, name: str, capsys: Capture) -> None:
        assert main([name, "--help"]) == 0
        assert f"usage: forensics {name}" in capsys.readouterr().out

    def test_an_unknown_command(self, capsys: Capture) -> None:
        assert main(["analyse", "x"]) == 2
        assert "did you mean `forensics analyze`?" in capsys.readouterr().err

    def test_an_unknown_option(self, capsys: Capture) -> None:
        assert main(["analyze", str(DEMO), "--no-such"]) == 2
        assert "--no-such" in capsys.readouterr().err

    def test_a_missing_argument(self, capsys: Capture) -> None:
        assert main(["analyze"]) == 2
        assert "path" in capsys.readouterr().err


class TestAnalyze:
    def test_prints_the_verdict_and_writes_the_report(self, capsys: Capture) -> None:
        assert main(["analyze", str(DEMO)]) == 0
        captured = capsys.readouterr()
        assert captured.out.startswith("At step 352")
        assert "forensics-report/report.html" in captured.out
        assert captured.err == ""
        assert "<html" in Path("forensics-report/report.html").read_text()
        assert json_report.load(Path("forensics-report/case.json")).events

    def test_json_to_standard_output_is_json_alone(self, capsys: Capture) -> None:
        assert main(["analyze", str(DEMO), "--json", "-"]) == 0
        data = json.loads(capsys.readouterr().out)
        jsonschema.validate(data, json.loads(schema_text()))
        assert not Path("forensics-report").exists()

    def test_quiet_writes_only_what_is_named(self, capsys: Capture) -> None:
        assert main(["analyze", str(DEMO), "--quiet", "--json", "a.json", "--html", "a.html", "--md", "a.md"]) == 0
        assert capsys.readouterr().out == ""
        assert files() == ["a.html", "a.json", "a.md"]

    def test_quiet_alone_writes_nothing(self, capsys: Capture) -> None:
        assert main(["analyze", str(DEMO), "--quiet"]) == 0
        assert capsys.readouterr().out == ""
        assert files() == []

    @pytest.mark.parametrize(
        ("run", "level", "code"), [("nan_batch", "critical", 1), ("bad_batch", "warning", 1), ("bad_batch", "critical", 0), ("clean", "warning", 0)]
    )
    def test_fail_on(self, run: str, level: str, code: int) -> None:
        assert main(["analyze", str(LABELLED / run), "--quiet", "--fail-on", level]) == code

    def test_damaged_input_is_three_and_the_report_is_written(self, tmp_path: Path) -> None:
        run = torn(tmp_path / "run")
        assert main(["analyze", str(run), "--quiet", "--json", "out.json"]) == 3
        assert json.loads(Path("out.json").read_text())["damage"]

    def test_an_alarm_wins_over_damage(self, tmp_path: Path) -> None:
        assert main(["analyze", str(torn(tmp_path / "run")), "--quiet", "--fail-on", "warning"]) == 1

    @pytest.mark.parametrize("content", [None, b"", bytes(range(256)) * 40])
    def test_nothing_readable_is_two(self, content: bytes | None, tmp_path: Path, capsys: Capture) -> None:
        path = tmp_path / "input"
        if content is not None:
            path.mkdir()
            (path / "file.dat").write_bytes(content)
        assert main(["analyze", str(path)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("forensics: ")
        assert "Traceback" not in error
        assert len(error.splitlines()) >= 2

    def test_several_runs_are_listed(self, tmp_path: Path, capsys: Capture) -> None:
        for name in ("first", "second"):
            shutil.copytree(DEMO, tmp_path / "runs" / name)
        assert main(["analyze", "runs"]) == 2
        error = capsys.readouterr().err
        assert "first" in error
        assert "second" in error
        assert "--run" in error
        assert main(["analyze", "runs", "--run", "second", "--quiet"]) == 0

    @pytest.mark.parametrize(
        ("metric", "said"),
        [("loss", "expected ROLE=NAME"), ("loss=", "expected ROLE=NAME"), ("lose=x", "'lose' is no role"), ("loss=nothing", "the log has no 'nothing'")],
    )
    def test_wrong_metrics(self, metric: str, said: str, capsys: Capture) -> None:
        assert main(["analyze", str(DEMO), "--metric", metric]) == 2
        assert said in capsys.readouterr().err

    def test_metrics_are_shown_as_read(self, capsys: Capture) -> None:
        assert main(["analyze", str(DEMO), "--json", "-", "--metric", "loss=grad_norm", "--metric", "lr=learning_rate"]) == 0
        roles = {s["name"]: (s["role"], s["primary"]) for s in json.loads(capsys.readouterr().out)["signals"]}
        assert roles["grad_norm"] == ("loss", True)
        assert roles["loss"] == ("loss", False)

    def test_an_output_that_cannot_be_written(self, capsys: Capture) -> None:
        assert main(["analyze", str(DEMO), "--quiet", "--json", "no/such/folder/out.json"]) == 2
        assert "not a directory" in capsys.readouterr().err

    def test_an_output_that_fails_leaves_no_part(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(case: object, out: object) -> None:
            raise ZeroDivisionError(f"{case is None} {out is None}")

        monkeypatch.setattr(json_report, "render", fail)
        Path("out.json").write_text("old")
        assert main(["analyze", str(DEMO), "--quiet", "--json", "out.json"]) == 2
        assert files() == ["out.json"]
        assert Path("out.json").read_text() == "old"


class TestProblems:
    @pytest.fixture
    def broken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(args: object) -> int:
            raise ZeroDivisionError(f"of {type(args).__name__}")

        module = SimpleNamespace(__doc__="x", add_arguments=lambda parser: parser.add_argument("path"), execute=fail)
        monkeypatch.setattr(command_line, "import_module", lambda _: module)

    @pytest.mark.usefixtures("broken")
    def test_a_bug_is_no_traceback(self, capsys: Capture) -> None:
        assert main(["analyze", "x"]) == 2
        error = capsys.readouterr().err
        assert "this is a bug in forensics: ZeroDivisionError" in error
        assert "-vv" in error
        assert "Traceback" not in error

    @pytest.mark.usefixtures("broken")
    @pytest.mark.parametrize("flags", [["-vv"], ["-v", "-v"]])
    def test_a_traceback_when_asked_for(self, flags: list[str]) -> None:
        with pytest.raises(ZeroDivisionError):
            main(["analyze", "x", *flags])

    def test_interrupted(self, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
        def stop(args: object) -> int:
            raise KeyboardInterrupt

        module = SimpleNamespace(__doc__="x", add_arguments=lambda _: None, execute=stop)
        monkeypatch.setattr(command_line, "import_module", lambda _: module)
        assert main(["demo"]) == 130
        assert capsys.readouterr().err == "interrupted\n"


class TestReport:
    @pytest.fixture
    def case(self) -> str:
        assert main(["analyze", str(DEMO), "--quiet", "--json", "case.json"]) == 0
        return "case.json"

    def test_the_same_json_again(self, case: str) -> None:
        assert main(["report", case, "--json", "again.json"]) == 0
        assert Path("again.json").read_bytes() == Path(case).read_bytes()

    def test_every_form(self, case: str, capsys: Capture) -> None:
        assert main(["report", case]) == 0
        assert capsys.readouterr().out.startswith("At step 352")
        assert main(["report", case, "--html", "r.html", "--md", "r.md"]) == 0
        assert "352" in Path("r.md").read_text()
        assert Path("r.html").stat().st_size > 1000

    @pytest.mark.parametrize("content", ["", "{}", "[1]", '{"schema": "forensics/99"}', "not json"])
    def test_not_a_case(self, content: str, capsys: Capture) -> None:
        Path("x.json").write_text(content)
        assert main(["report", "x.json"]) == 2
        assert capsys.readouterr().err.startswith("forensics: x.json")

    def test_a_missing_file(self, capsys: Capture) -> None:
        assert main(["report", "x.json"]) == 2
        assert "x.json: No such file" in capsys.readouterr().err


class TestInspect:
    def test_the_table(self, capsys: Capture) -> None:
        assert main(["inspect", str(DEMO)]) == 0
        out = capsys.readouterr().out
        assert "learning_rate" in out
        assert "5 signals" in out

    def test_json_and_parquet(self) -> None:
        assert main(["inspect", str(DEMO), "--quiet", "--json", "out.json", "--export", "out.parquet"]) == 0
        data = json.loads(Path("out.json").read_text())
        assert set(data) == {"schema", "run", "signals", "damage"}
        assert {s["name"]: s["points"] for s in data["signals"]}["loss"] == 900
        assert len(pl.read_parquet("out.parquet")) == 4500

    def test_damage_is_three(self, tmp_path: Path) -> None:
        assert main(["inspect", str(torn(tmp_path / "run")), "--quiet"]) == 3

    def test_nothing_is_two(self) -> None:
        assert main(["inspect", "nothing"]) == 2


class TestExplain:
    def test_the_list(self, capsys: Capture) -> None:
        assert main(["explain"]) == 0
        out = capsys.readouterr().out
        assert "optimization:" in out
        assert "* lr_rewarm_or_jump" in out
        assert "causes, " in out

    @pytest.mark.parametrize("cause", ["adam_v_stale", "Adam-V-Stale", " adam_v_stale "])
    def test_a_page(self, cause: str, capsys: Capture) -> None:
        assert main(["explain", cause]) == 0
        out = capsys.readouterr().out
        assert out.startswith("adam_v_stale: ")
        assert "How to confirm" in out

    def test_a_page_fits_the_terminal(self, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
        monkeypatch.setenv("COLUMNS", "50")
        assert main(["explain", "adam_v_stale"]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines()[3:])) <= 50

    def test_an_unknown_cause(self, capsys: Capture) -> None:
        assert main(["explain", "adam_v_stal"]) == 2
        error = capsys.readouterr().err
        assert "did you mean adam_v_stale" in error
        assert "`forensics explain` lists every cause" in error


def test_demo(capsys: Capture) -> None:
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("At step 352")
    assert "lr_rewarm_or_jump" in out
    assert Path("forensics-report/report.html").stat().st_size > 10_000


class TestProcess:
    def run(self, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from forensics.cli.main import run; run()", *argv]
        return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **more})

    def test_the_exit_code_reaches_the_shell(self) -> None:
        assert self.run("analyze", "nothing").returncode == 2
        assert self.run("--version").returncode == 0

    def test_output_that_nobody_reads_to_the_end(self) -> None:
        code = "from forensics.cli.main import run; run()"
        command = f"{sys.executable} -c '{code}' explain | head -n 1"
        done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
        assert done.stdout.strip() == "optimization:"
        assert "Traceback" not in done.stderr

    def test_a_terminal_that_knows_only_ascii(self) -> None:
        done = self.run("analyze", str(DEMO), PYTHONIOENCODING="ascii", PYTHONUTF8="0")
        assert done.returncode == 0
        assert done.stderr == ""
