# Needs make and Python 3.11 or later; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What a user has: the package alone, and the data frames of the examples.
BASE := $(VENV)/.base

.PHONY: docs plots demo test quick kernels lint style words wheel bench claims paper clean

demo: $(BASE)
	$(BIN)/python examples/demo.py

# Types are checked beside the tests, which leave a core idle now and then.
test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/python -m margotree.engines.warm
	$(BIN)/mypy & types=$$!; $(BIN)/python -m pytest -n 2 --dist worksteal --durations=30 && wait $$types

# A part of the tests that takes less than a minute once the kernels are compiled.
QUICK := $(patsubst %,tests/test_%.py,value problem topology certificate table table_columns tree tree_text layers words) \
    tests/test_export.py::test_on_the_hyperplane_is_right_in_every_export \
    tests/test_export.py::test_a_tree_that_never_splits_is_its_label \
    tests/test_export.py::test_splits_without_a_choice_are_left_out \
    tests/test_export.py::test_words_are_words_in_sql_and_python \
    tests/test_cli.py::test_fit_prints_rules_certificate_and_where_the_tree_is \
    tests/test_exact.py::test_agrees_with_brute_force \
    tests/test_local_search.py::test_the_best_threshold_is_that_of_trying_all \
    tests/test_local_search.py::test_every_descent_ends_in_a_feasible_tree_with_its_objective \
    tests/test_local_search.py::test_no_visit_makes_a_tree_worse
quick: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal $(QUICK)

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
