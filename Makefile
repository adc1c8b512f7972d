# Everything runs inside .venv, which `make setup` builds from pyproject.toml and constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-slow lint types format bench reproduction-page clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv and install deepbf, deepbf-studies and the developer tools, at pinned versions

$(STAMP): pyproject.toml studies/pyproject.toml constraints.txt
	@command -v "$(PYTHON)" >/dev/null || { \
		echo "deepbf needs Python 3.11 or newer, and '$(PYTHON)' was not found; try: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "deepbf needs Python 3.11 or newer, and '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1); try: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]' --editable ./studies
	@touch $@

demo: setup ## run the built-in example
	$(BIN)/deepbf demo

test: lint types test-fast ## what every change must pass: style, types, fast tests

test-fast: setup ## the fast tests and the doctests
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=40

test-slow: setup ## the slow tests
	$(BIN)/python -m pytest -m slow

lint: setup ## check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup ## check types
	$(BIN)/basedpyright

format: setup ## rewrite files in the house format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

BENCHMARKS := accuracy few overlap evaluate abc bridge trees toolkit sizes lengths variants models losses schedules \
	tailoring zoom sensitivity posteriors criticism support influenza
# Benchmarks whose script has another name, or takes arguments.
SCRIPT_schedules := losses.py --losses cross_entropy --schedules auto thorough
SCRIPT_reproduction := reproduction_time.py

bench: $(addprefix bench-,$(BENCHMARKS)) ## run every benchmark, or one of them: make bench-accuracy, ...

bench-%: setup ## one benchmark; its script in benchmarks/ says what it measures
	$(BIN)/python benchmarks/$(or $(SCRIPT_$*),$*.py)

reproduction-page: setup ## put what `deepbf reproduce all --scale standard` computed on docs/reproduction.md
	$(BIN)/python benchmarks/reproduction_page.py

clean: ## remove .venv, builds and caches
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks studies -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
