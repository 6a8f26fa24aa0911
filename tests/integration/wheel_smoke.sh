#!/usr/bin/env bash
# Builds the wheel, installs it into a fresh environment and analyses from another folder, one that holds packages of its
# own named "parsers" and "reports", also on PYTHONPATH: ours must not be disturbed by them, nor shadow them.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "building the wheel"
"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$work/dist" "$root"
wheel=$(echo "$work"/dist/*.whl)
"$work/venv/bin/python" - "$wheel" <<'PY'
import sys
import zipfile

names = zipfile.ZipFile(sys.argv[1]).namelist()
tops = {name.split("/")[0] for name in names}
assert all(top == "forensics" or top.endswith(".dist-info") for top in tops), tops
needed = ["forensics/parsers/wandb.py", "forensics/reports/templates/report.html.j2", "forensics/demo_run/trainer_state.json", "forensics/model/case.schema.json"]
missing = [name for name in needed if name not in names]
assert not missing, missing
PY

echo "installing $(basename "$wheel")"
"$work/venv/bin/python" -m pip install --quiet "$wheel"
mkdir -p "$work/user/parsers" "$work/user/reports"
for name in parsers reports; do echo "HERE = True" > "$work/user/$name/__init__.py"; done
printf 'step,loss\n' > "$work/user/run.csv"
for step in $(seq 0 99); do echo "$step,$((200 - step))" >> "$work/user/run.csv"; done
cd "$work/user"
forensics="$work/venv/bin/forensics"

echo "analysing"
PYTHONPATH=. "$forensics" demo | head -n 2
test -s forensics-report/report.html
"$forensics" analyze run.csv --quiet --json case.json
PYTHONPATH=. "$forensics" analyze run.csv --quiet --json again.json --html run.html
cmp case.json again.json
"$work/venv/bin/python" -c "import forensics.parsers, forensics.reports, parsers, reports; assert parsers.HERE and reports.HERE"
echo "the wheel works"
