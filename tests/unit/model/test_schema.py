from __future__ import annotations

import copy
import json
from pathlib import Path

import jsonschema
import pytest

from forensics.model import to_json
from forensics.model.schema import PATH, schema_text
from forensics.pipeline import analyze

SCHEMA = json.loads(schema_text())
RUN = Path(__file__).parents[3] / "fixtures/labelled/nan_batch"


def test_the_committed_file_is_the_generated_one() -> None:
    assert PATH.read_text(encoding="utf-8") == schema_text(), "write it anew: python -m forensics.model.schema"


@pytest.fixture(scope="module")
def case_json() -> dict[str, object]:
    data: dict[str, object] = json.loads(json.dumps(to_json(analyze(RUN)), allow_nan=False))
    return data


def test_a_real_case_is_valid(case_json: dict[str, object]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(case_json)


def test_later_versions_may_add_keys(case_json: dict[str, object]) -> None:
    jsonschema.validate({**case_json, "added": 1}, SCHEMA)


@pytest.mark.parametrize("key", ["schema", "run", "signals", "verdict", "events", "series", "rejected", "not_checked", "damage"])
def test_a_missing_part_is_not_valid(case_json: dict[str, object], key: str) -> None:
    torn = {k: v for k, v in case_json.items() if k != key}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(torn, SCHEMA)


def test_a_number_that_is_not_finite_is_a_known_word(case_json: dict[str, object]) -> None:
    wrong = copy.deepcopy(case_json)
    wrong["events"][0]["confidence"] = "nan"  # type: ignore[index]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA)
