# Needs make and Python 3.11 or later; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What a user has: the package alone, and the data frames of the examples.
BASE := $(VENV)/.base

.PHONY: docs plots demo test kernels lint style words wheel bench claims paper clean

demo: $(BASE)
	$(BIN)/python examples/demo.py

# Types are checked beside the tests, which leave a core idle now and then.
test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/python -m margotree.engines.warm
	$(BIN)/mypy & types=$$!; $(BIN)/python -m pytest -n 2 --dist worksteal --durations=30 && wait $$types

# The kernels as Numba compiles them by itself, and with every index checked: the tests of each must pass both ways.
KERNELS := tests/test_lowering.py tests/test_vectors.py tests/test_compiled_routing.py tests/test_node.py
kernels: $(STAMP)
	MARGOTREE_NUMBA=plain $(BIN)/python -m pytest $(KERNELS) & plain=$$!; \
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest $(KERNELS) && wait $$plain

wheel: $(STAMP)
	$(BIN)/python .ci/wheel.py

bench: $(STAMP)
	$(BIN)/python benchmarks/engine.py

claims: $(STAMP)
	$(BIN)/python benchmarks/claims.py --jobs 2 --out results/claims.csv

paper: $(STAMP)
	$(BIN)/python -m margotree.paper.experiments paper

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

plots: $(STAMP)
	$(BIN)/python docs/make_plots.py

lint: style words
	$(BIN)/mypy

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Spelling, and the vocabulary of docs/glossary.md.
words: $(STAMP)
	$(BIN)/python .ci/words.py

$(VENV)/.made: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("margotree needs Python 3.11 or later, try: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(BASE): $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[pandas]"
	@touch $@

$(STAMP): $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $(BASE) $@

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@

clean:
	rm -rf $(VENV) build dist docs/_build docs/_generated docs/gallery
