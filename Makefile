# One word per job. Each sets up .venv by itself; Python >= 3.11 is all it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test browser check format lint floor bench experiments docs clean

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "holdtrue needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(READY) ## four questions with their answers and pictures, in seconds
	@$(BIN)/holdtrue demo --force

test: $(READY) ## the tests, the docstrings' and README's examples
	$(BIN)/python -m pytest -q -n 2

browser: $(READY) ## what the browser tests need (Debian's chromium, axe-core)
	@test -x /usr/bin/chromium -a -x /usr/bin/chromedriver || \
	  { sudo="$$(test "$$(id -u)" = 0 || echo sudo)"; \
	    $$sudo apt-get update -q && $$sudo apt-get install -qy chromium chromium-driver; }
	@test -f $(VENV)/node_modules/axe-core/axe.min.js || \
	  npm install --silent --no-fund --no-audit --prefix $(VENV) axe-core@4

check: format lint test ## what to run before a commit

format: $(READY)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lint: $(READY) ## formatting, lint and types, changing nothing
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

floor: ## the tests on the oldest dependencies that pyproject.toml admits
	$(PYTHON) -m venv .venv-floor
	.venv-floor/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' \
	  -c tests/floor.txt
	.venv-floor/bin/python -m pytest -q -n 2 -o filterwarnings=default # old libraries warn of one another

experiments: $(READY) ## the papers' tables and figures, into experiments/results (minutes)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m experiments.model_size
	$(BIN)/python -m experiments.categories
	$(BIN)/python -m experiments.domains
	$(BIN)/python -m experiments.sources

bench: $(READY) ## speed beside the peers, into benchmarks/results (minutes)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m benchmarks.model_size
	$(BIN)/python -m benchmarks.categories
	$(BIN)/python -m benchmarks.domains
	$(BIN)/python -m benchmarks.sources
	$(BIN)/python -m benchmarks.tables

docs: $(READY) ## the manual, into docs/_build/html
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/python -m sphinx -W -b html docs docs/_build/html

clean: ## remove what the commands above made (not the results)
	rm -rf $(VENV) .venv-floor docs/_build docs/gallery build dist .pytest_cache .mypy_cache .ruff_cache \
	  holdtrue-demo.html
