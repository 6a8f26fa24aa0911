"""case.json: strict JSON, the same both ways, and clear words for a file that is not one."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import pytest

from forensics.model import Case, CaseFormatError, json_schema, to_json
from forensics.reports import json_report


def written(case: Case) -> str:
    out = io.StringIO()
    json_report.render(case, out)
    return out.getvalue()


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "not JSON"),
        (b'{"schema": "forensics/1", ', "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b"[1, 2]", "expected an object"),
        (b"{}", "no schema"),
        (b'{"schema": "forensics/2"}', "'forensics/2'"),
        (b'{"schema": "forensics-replay/1"}', "'forensics-replay/1'"),
        (b'{"schema": "forensics/1"}', "tool_version is missing"),
    ],
)
def test_load_says_what_is_wrong(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "case.json"
    path.write_bytes(content)
    with pytest.raises(CaseFormatError, match=words) as raised:
        json_report.load(path)
    assert str(path) in str(raised.value)


def test_load_names_the_place_of_a_wrong_value(tmp_path: Path, case: Case) -> None:
    data = to_json(case)
    data["events"][1]["severity"] = "fatal"
    path = tmp_path / "case.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(CaseFormatError, match=r"case\.events\[1\]\.severity"):
        json_report.load(path)


def test_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nothing"):
        json_report.load(tmp_path / "nothing")


def test_unknown_keys_are_ignored(tmp_path: Path, case: Case) -> None:
    data = to_json(case) | {"later": [1]}
    path = tmp_path / "case.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    assert written(json_report.load(path)) == written(case)


def test_round_trip(tmp_path: Path, case: Case) -> None:
    path = tmp_path / "case.json"
    path.write_text(written(case), encoding="utf-8")
    again = json_report.load(path)
    assert written(again) == written(case)
    assert again.events[0].hypotheses == case.events[0].hypotheses
    assert again.series["train/loss"].steps == case.series["train/loss"].steps


def test_strict_stable_and_valid(case: Case, empty_case: Case) -> None:
    for each in (case, empty_case):
        text = written(each)
        data = json.loads(text, parse_constant=refuse)
        assert data == to_json(each)
        assert list(data) == sorted(data)
        assert text.endswith("}\n")
        assert text == written(each)
        jsonschema.validate(data, json_schema(Case))
