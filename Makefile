# Nothing is needed but python3 (3.11 or later) with venv and pip; everything else is installed into .venv.
# Other Python:  make test PYTHON=python3.13

PYTHON ?= python3
VENV ?= .venv
# The tests write checkpoints and replay steps with PyTorch; where this release has no wheel:  make test TORCH='torch>=2.4'
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test test-gpu check bench wheel-smoke clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.core ## analyse a small real broken run: the verdict, and the path of the report
	@$(BIN)/forensics demo

test: $(VENV)/.dev ## ruff, mypy and every test
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q

test-gpu: $(VENV)/.dev ## the tests that need an accelerator; they skip, and say so, without one
	$(BIN)/python -m pytest -q -m gpu tests/gpu

check: $(VENV)/.dev ## ruff and mypy only
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.dev ## accuracy on labelled runs, detection and false alarms on simulated ones
	@for file in tests/benchmarks/[a-z]*.py; do \
	    name=$$(basename $$file .py); echo "== $$name"; \
	    $(BIN)/python -m tests.benchmarks.$$name || exit 1; \
	done

wheel-smoke: ## build the wheel and analyse with it in a fresh environment, far from this folder
	@PYTHON=$(PYTHON) tests/integration/wheel_smoke.sh

clean: ## remove the environment, caches and built files
	rm -rf $(VENV) build dist forensics-report .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
	find forensics parsers reports tests fixtures -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are renewed when pyproject.toml changes; the editable install follows the sources by itself.
$(VENV)/.core: pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet --editable '.[dev,replay]'
	@touch $@ $(VENV)/.core

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "Python 3.11 or later is needed; $(PYTHON) is older or missing. Name another: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	    || { echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian and Ubuntu: python3-venv)"; exit 1; }
	@touch $@
