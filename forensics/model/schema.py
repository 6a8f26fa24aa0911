"""The JSON Schema of case.json, as a file for other tools: ``python -m forensics.model.schema`` writes it anew.

The schema says what this version writes. Readers should ignore keys they do not know: later versions may add some.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from forensics.model.case import Case
from forensics.model.codec import json_schema

PATH = Path(__file__).with_name("case.schema.json")


def schema_text() -> str:
    """The text of the schema file: stable, so that a change of the contract shows as a change of the file."""
    return json.dumps(json_schema(Case), indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(schema_text(), encoding="utf-8")
    sys.stdout.write(f"{PATH}\n")
