# Everything runs inside .venv, which `make setup` builds from pyproject.toml and constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-slow lint types format bench bench-accuracy bench-overlap bench-evaluate bench-abc bench-bridge bench-trees bench-toolkit bench-sizes bench-lengths bench-variants bench-models bench-losses bench-schedules bench-tailoring bench-sensitivity bench-posteriors bench-criticism bench-support bench-influenza bench-reproduction reproduction-page clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

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
	$(BIN)/python -m pytest -n 2 --dist loadfile --durations=40

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

bench: bench-accuracy bench-overlap bench-evaluate bench-abc bench-bridge bench-trees bench-toolkit bench-sizes bench-lengths bench-variants bench-models bench-losses bench-schedules bench-tailoring bench-sensitivity bench-posteriors bench-criticism bench-support bench-influenza ## run every benchmark

bench-accuracy: setup ## error against the exact Bayes factor
	$(BIN)/python benchmarks/accuracy.py

bench-overlap: setup ## simulating while training, against one after the other
	$(BIN)/python benchmarks/overlap.py

bench-evaluate: setup ## the speed of evaluating a trained estimator
	$(BIN)/python benchmarks/evaluate.py

bench-abc: setup ## ABC: time against its parts, and error against the exact Bayes factor
	$(BIN)/python benchmarks/abc.py

bench-bridge: setup ## bridge and warp bridge sampling against the closed form
	$(BIN)/python benchmarks/bridge.py

bench-trees: setup ## processing trees: importance sampling against adaptive integration
	$(BIN)/python benchmarks/trees.py

bench-toolkit: setup ## the time that the evaluation toolkit adds
	$(BIN)/python benchmarks/toolkit.py

bench-sizes: setup ## one fit for a range of n, and large n
	$(BIN)/python benchmarks/sizes.py

bench-lengths: setup ## time of a training step against the length of the data
	$(BIN)/python benchmarks/lengths.py

bench-variants: setup ## partial, posterior and intrinsic Bayes factors against exact ones
	$(BIN)/python benchmarks/variants.py

bench-models: setup ## five models in one classifier
	$(BIN)/python benchmarks/models.py

bench-losses: setup ## every loss on every study, against the exact Bayes factor
	$(BIN)/python benchmarks/losses.py

bench-schedules: setup ## the thorough schedule beside the default, against the exact Bayes factor
	$(BIN)/python benchmarks/losses.py --losses cross_entropy --schedules auto thorough

bench-tailoring: setup ## training near the observed data, against a global estimator of as many simulations
	$(BIN)/python benchmarks/tailoring.py

bench-sensitivity: setup ## the curve over a prior's scale against the closed form
	$(BIN)/python benchmarks/sensitivity.py

bench-posteriors: setup ## posterior samplers against conjugate posteriors
	$(BIN)/python benchmarks/posteriors.py

bench-criticism: setup ## Z-values of every data source under every model, with exact posteriors
	$(BIN)/python benchmarks/criticism.py

bench-support: setup ## how often support calls a model's own data strange, and data of no model
	$(BIN)/python benchmarks/support.py

bench-influenza: setup ## the influenza study against its evidence by particles
	$(BIN)/python benchmarks/influenza.py

bench-reproduction: setup ## how long a reproduction took that is kept, step by step
	$(BIN)/python benchmarks/reproduction_time.py

reproduction-page: setup ## put what `deepbf reproduce all --scale standard` computed on docs/reproduction.md
	$(BIN)/python benchmarks/reproduction_page.py

clean: ## remove .venv, builds and caches
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks studies -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
