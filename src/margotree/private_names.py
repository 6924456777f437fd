"""All private names of other packages that this package uses, except Numba's (see the Numba back end).

Each function wraps one such name and has a test in ``tests/test_private_names.py``, which fails when a new release of
the other package changes it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any

#: Modules of scikit-learn that fit the same estimator many times and do not read its certificate.
_LOOPS = (
    "sklearn.model_selection._validation", "sklearn.ensemble", "sklearn.multiclass", "sklearn.multioutput",
    "sklearn.calibration", "sklearn.feature_selection", "sklearn.semi_supervised", "sklearn.inspection",
)  # fmt: skip


def within_scikit_learn_loop() -> bool:
    """Return whether one of scikit-learn's loops of fits (cross-validation, ensembles, ...) is on the call stack.

    scikit-learn does not inform an estimator that it is fitted in a loop, so the names of the modules on the stack
    decide.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(_LOOPS):
            return True
        frame = frame.f_back
    return False


def cv_results(search: Any, settings: list[dict], n_splits: int, scores: list[dict]) -> dict[str, Any]:
    """Return ``cv_results_`` as ``GridSearchCV`` lays it out.

    Parameters
    ----------
    search : GridSearchCV
        The search whose scorers are used.
    settings : list of dict
        The candidates, in the order of the grid.
    n_splits : int
        The number of folds.
    scores : list of dict
        One entry per candidate and fold, folds running fastest, as ``sklearn.model_selection`` makes them.
    """
    results: dict[str, Any] = search._format_results(settings, n_splits, scores)
    return results


def best_index(refit: str | Callable[..., int], metric: str, results: dict[str, Any]) -> int:
    """Return the index of the candidate that ``refit`` chooses, as ``GridSearchCV`` does."""
    from sklearn.model_selection import GridSearchCV

    return int(GridSearchCV._select_best_index(refit, metric, results))


def subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Yield name, help and parser of every subcommand."""
    actions = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    helps = {a.dest: a.help or "" for a in actions._choices_actions}
    return ((name, helps[name], sub) for name, sub in actions.choices.items())


def arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the positional arguments and options of a parser, in the order in which they were added."""
    return list(parser._actions)
