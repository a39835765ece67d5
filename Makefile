# One word per job. Each sets up .venv by itself; Python >= 3.11 is all it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
ATTACK_SECONDS ?= 600
.PHONY: help demo test attack browser cluster check format lint floor bench experiments docs pictures clean

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
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal  # two processes of one thread each

attack: $(READY) ## hostile inputs, kills and interruptions for ATTACK_SECONDS (600), seeds printed (ATTACK_SEED)
	$(BIN)/python tests/attack.py $(ATTACK_SECONDS) $(ATTACK_SEED)

browser: $(READY) ## what the browser tests need (Debian's chromium, axe-core)
	@test -x /usr/bin/chromium -a -x /usr/bin/chromedriver || \
	  { sudo="$$(test "$$(id -u)" = 0 || echo sudo)"; \
	    $$sudo apt-get update -q && $$sudo apt-get install -qy chromium chromium-driver; }
	@test -f $(VENV)/node_modules/axe-core/axe.min.js || \
	  npm install --silent --no-fund --no-audit --prefix $(VENV) axe-core@4

cluster: ## engines on real clusters: Spark (Java from Debian), workers killed again and again; PostgreSQL
	@java -version >/dev/null 2>&1 && ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1 || \
	  { sudo="$$(test "$$(id -u)" = 0 || echo sudo)"; \
	    $$sudo apt-get update -q && $$sudo apt-get install -qy openjdk-17-jre-headless postgresql; }
	$(PYTHON) -m venv .venv-cluster
	.venv-cluster/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,postgres,spark]'
	HOLDTRUE_CLUSTER=1 OMP_NUM_THREADS=1 .venv-cluster/bin/python -m pytest -q tests/engine

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
	OMP_NUM_THREADS=1 .venv-floor/bin/python -m pytest -q -n 2 --dist worksteal -o filterwarnings=default # old libraries warn of one another

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
	$(BIN)/python -m benchmarks.scale

docs: $(READY) ## the site, into docs/_build/html; its links and, with make browser, its pages checked
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/python -m sphinx -W -q -b html $(SPHINX) docs docs/_build/html
	$(BIN)/python docs/check_site.py $(LOOK)

pictures: $(READY) browser ## the committed pictures of README, manual and home page
	OMP_NUM_THREADS=1 $(BIN)/python docs/make_images.py

clean: ## remove what the commands above made (not the results)
	rm -rf $(VENV) .venv-floor .venv-cluster docs/_build docs/gallery docs/generated build dist .pytest_cache .mypy_cache .ruff_cache \
	  holdtrue-demo.html
