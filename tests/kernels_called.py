"""Prints, as JSON, for which types of arguments the package's kernels are in memory: after warm-up, or after many fits.

``python kernels_called.py warm`` or ``python kernels_called.py fits``; each in a process of its own.
"""

import itertools
import json
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from margotree.engines.numba_backend.disk_cache import KernelCache


def in_memory():
    """Types of arguments by kernel, of all modules that are imported."""
    found = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith("margotree."):
            for function in vars(module).values():
                if isinstance(getattr(function, "_cache", None), KernelCache):
                    home = function.py_func
                    found[f"{home.__module__}.{home.__name__}"] = sorted(map(str, function.signatures))
    return found


def table(n=60, p=3, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if classes == 2:
        return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, "a", "b")
    return X, np.digitize(X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n), [-1.0, 1.0])


def estimators(depth, **settings):
    from margotree import HFSMargotClassifier, MargotClassifier, SFSMargotClassifier

    settings = {"depth": depth, "time_limit": 0.2, "verbose": 0} | settings
    yield MargotClassifier(**settings)
    yield HFSMargotClassifier(**settings, budget=1)
    yield SFSMargotClassifier(**settings, budget=1, alpha=1.0)


def shapes_of_data():
    """The same samples in all the ways in which arrays may come."""
    X, y = table()
    frozen = X.copy()
    frozen.setflags(write=False)
    for one in (np.asfortranarray(X), X.astype(np.float32), np.repeat(X, 2, axis=1)[:, ::2], frozen, X.round(0)):
        yield one, y
    weight = np.linspace(0.0, 2.0, len(y))
    weight.setflags(write=False)
    yield X, y, weight


def fits():
    """A matrix of fits, small and short."""
    for depth, classes in itertools.product((1, 2, 3), (2, 3)):
        for model in estimators(depth, C=10.0):
            yield model.fit, table(classes=classes)
    for data in shapes_of_data():
        for model in estimators(2, class_weight="balanced"):
            yield model.fit, data
    for k, settings in enumerate((
        {"scale": None}, {"n_jobs": 2}, {"engine": "alternating"}, {"engine": "local_svm"}, {"engine": "scip"},
        {"eps": 1.5}, {"start": None}, {"node_limit": 50, "time_limit": None}, {"C": 1e-9},
    )):  # fmt: skip
        for model in estimators(2, **settings):
            yield model.fit, table(classes=2 + k % 2)
    for model in estimators(2, max_weight=0.5):
        yield model.fit, table()
    for model in estimators(2):
        yield model.fit, table(n=2500)
        yield model.fit, table(n=40, p=60)
    for model in estimators(2, proof=str(Path(tempfile.mkdtemp()) / "a.proof")):
        yield model.fit, table(n=25, p=12)


def others():
    """Cross-validation, baselines, the tasks of a cluster and predictions."""
    from margotree import MargotClassifier, MMSVMOCTClassifier, OCT1Classifier, OCTHClassifier, SFSMargotClassifierCV
    from test_distributed import FakeWorkers, at, random_problem

    yield SFSMargotClassifierCV(2, [1.0], [1], [1.0], cv=2, time_limit=1.0).fit, table()
    for model in (OCT1Classifier(2), OCTHClassifier(2), MMSVMOCTClassifier(2)):
        yield model.set_params(time_limit=1.0).fit, table()
    for model in ("margot", "hfs", "sfs"):
        yield partial(at, FakeWorkers()), (random_problem(7, m=10, n=3, model=model),)
    model = MargotClassifier(depth=2, time_limit=0.2).fit(*table())
    for X in (table(n=25_000)[0], np.asfortranarray(table(n=25_000)[0]), table(n=25_000)[0].astype(np.float32)):
        yield model.predict, (X,)


def main(what):
    warnings.simplefilter("ignore")
    if what == "warm":
        from margotree.engines.warm import warm_up

        warm_up()
    else:
        for call, data in itertools.chain(fits(), others()):
            call(*data)
    print(json.dumps(in_memory()))


main(sys.argv[1])
