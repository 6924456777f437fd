"""The fits of each table and figure of the paper: data, methods, hyperparameters, limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from margotree.paper.data import paper_hyperparameters
from margotree.paper.data.catalogue import find as find_entry
from margotree.paper.experiments.case import Case, sorted_pairs
from margotree.paper.experiments.samples import PLANE_SETS, TABLE_SETS

#: Our depths and hyperparameters for the 2-D sets, since the paper does not print its own: depth by set, C per level by
#: set, and the hyperparameters of the baselines by model.
_PLANE_DEPTH = {"4-partitions": 2, "6-partitions": 3, "fourclass": 4}
_PLANE_C = {"4-partitions": (1.0, 1e4), "6-partitions": (10.0, 100.0, 1e4), "fourclass": (1.0, 10.0, 100.0, 1e4)}
_PLANE_BASELINES = {"oct_h": {"alpha": 0.01}, "mm_svm_oct": {"c1": 1e4, "c3": 0.01}}

#: The time limits of the paper by depth, in seconds.
_BY_DEPTH = {2: 600.0, 3: 1800.0, 4: 3600.0}


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method of a table: a model with the source of its hyperparameters.

    Attributes
    ----------
    column : str
        The name of the method in the paper's tables.
    title : str
        The name of the method in our tables and figures.
    model : str
        The model that is trained.
    source : str
        The name of its hyperparameters in the paper's tables (that of the model, or of the feature-driven rule).
    fixed : bool
        Whether the fixed hyperparameters are used instead of the tuned ones.
    depth : int
        The depth of the tree; the 2-D sets have their own.
    time_limit : float
        The time limit of a fit in seconds.
    start : bool
        Whether the start heuristic is used.
    shown : bool
        False if the fits are only compared with others and have no column of their own.
    """

    column: str
    title: str
    model: str
    source: str
    fixed: bool = False
    depth: int = 2
    time_limit: float = 600.0
    start: bool = True
    shown: bool = True

    def case(self, data: str) -> Case:
        """The fit of the method on the set named ``data``: model, hyperparameters, depth and time limit."""
        is_2d = data in PLANE_SETS
        depth = _PLANE_DEPTH[data] if is_2d else self.depth
        params = self._hyperparameters_2d(data) if is_2d else self._hyperparameters_of_paper(data, depth)
        return Case(
            data=data,
            model=self.model,
            params=sorted_pairs(params),
            depth=depth,
            time_limit=self.time_limit,
            start=self.start,
        )

    def _hyperparameters_of_paper(self, data: str, depth: int) -> dict[str, Any]:
        """The hyperparameters that the paper prints for a set."""
        return paper_hyperparameters(self.source, data, depth=depth, fixed=self.fixed)

    def _hyperparameters_2d(self, data: str) -> dict[str, Any]:
        """Our hyperparameters for a 2-D set."""
        return _PLANE_BASELINES.get(self.model, {"C": _PLANE_C[data]})


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A table or figure, whose fits are every method on every set.

    ``measures`` are the names of the measures in the table (:mod:`margotree.paper.experiments.measures`),
    ``reference`` is the paper's table of the same numbers, ``layout`` a layout of
    :mod:`margotree.paper.experiments.tables`.
    """

    name: str
    title: str
    data: tuple[str, ...] = TABLE_SETS
    methods: tuple[Method, ...] = ()
    measures: tuple[str, ...] = ()
    reference: str | None = None
    layout: str = "plain"

    def has_fits(self, only: Sequence[str] | None) -> bool:
        """Whether the table has fits; with ``only``, whether it has fits of these models."""
        return any(only is None or method.model in only for method in self.methods)

    def cases(self, data: tuple[str, ...] | None = None, only: tuple[str, ...] | None = None) -> Iterator[Case]:
        """The fits, restricted to the sets in ``data`` and the models in ``only`` if given."""
        for name in self.data:
            for method in self.methods:
                if (data is None or name in data) and (only is None or method.model in only):
                    yield method.case(name)


@dataclass(frozen=True, kw_only=True)
class SearchSpec:
    """A table of hyperparameters chosen by cross-validation, with a final fit of each choice.

    ``models`` are pairs of a model and its selection rule; ``fit_time_limit`` is the limit of a fit on a fold.
    """

    name: str
    title: str
    data: tuple[str, ...] = TABLE_SETS
    models: tuple[tuple[str, str], ...] = ()
    fit_time_limit: float = 600.0
    time_limit: float = 600.0

    def has_fits(self, only: Sequence[str] | None) -> bool:
        """Whether the table has fits; with ``only``, whether it has fits of these models."""
        return any(only is None or model in only for model, _ in self.models)


OCT_H = Method(column="oct_h", title="OCT-H", model="oct_h", source="oct_h")
MM_SVM_OCT = Method(column="mm_svm_oct", title="MM-SVM-OCT", model="mm_svm_oct", source="mm_svm_oct")
MARGOT = Method(column="margot", title="MARGOT", model="margot", source="margot")
OCT_1 = Method(column="oct_1", title="OCT-1", model="oct_1", source="oct_1")
OCT_H_STAR = Method(column="oct_h_star", title="OCT-H*", model="oct_h", source="oct_h_star")
HFS_STAR = Method(column="hfs_margot_star", title="HFS-MARGOT*", model="hfs", source="hfs")
SFS_STAR = Method(column="sfs_margot_star", title="SFS-MARGOT*", model="sfs", source="sfs")

FIRST_METHODS = (OCT_H, MM_SVM_OCT, MARGOT)
SECOND_METHODS = (OCT_1, OCT_H_STAR, HFS_STAR, SFS_STAR)


def _planes() -> tuple[Method, ...]:
    """The methods on the 2-D sets, with a limit of four hours."""
    local = Method(column="local_svm", title="Local SVM", model="local_svm", source="margot")
    return tuple(replace(m, time_limit=14400.0) for m in (local, *FIRST_METHODS))


def _starts() -> tuple[Method, ...]:
    """Every MARGOT model without and with its start heuristic."""
    models = (MARGOT, replace(HFS_STAR, title="HFS-MARGOT"), replace(SFS_STAR, title="SFS-MARGOT"))
    return tuple(replace(m, start=start) for m in models for start in (False, True))


def _fixed() -> tuple[Method, ...]:
    """The MARGOT models with fixed hyperparameters, and (not shown) with tuned ones."""
    tuned = (MARGOT, HFS_STAR, SFS_STAR)
    names = (("margot", "MARGOT"), ("hfs_margot", "HFS-MARGOT"), ("sfs_margot", "SFS-MARGOT"))
    fixed = (replace(m, column=c, title=t, fixed=True) for m, (c, t) in zip(tuned, names, strict=True))
    return (*fixed, *(replace(m, shown=False) for m in tuned))


def _depths() -> tuple[Method, ...]:
    """OCT-H and MARGOT with depths 2, 3 and 4."""
    return tuple(
        replace(m, column=f"{m.column}_d{d}", title=f"{m.title}, D={d}", depth=d, time_limit=3600.0)
        for d in (2, 3, 4)
        for m in (OCT_H, MARGOT)
    )


def _univariate() -> tuple[Method, ...]:
    """OCT-1 with depths 2, 3 and 4, and HFS-MARGOT with depth 2."""
    deeper = (
        replace(OCT_1, column=f"oct_1_d{d}", title=f"OCT-1, D={d}", depth=d, time_limit=_BY_DEPTH[d]) for d in (2, 3, 4)
    )
    return (*deeper, replace(HFS_STAR, column="hfs_margot_star_d2", title="HFS-MARGOT*, D=2"))


def _acc_and_bacc(part: str) -> tuple[str, str]:
    return f"{part}_acc", f"{part}_bacc"


def _fits(name: str, title: str, methods: tuple[Method, ...], measures: tuple[str, ...], **more: Any) -> Spec:
    return Spec(name=name, title=title, methods=methods, measures=measures, **{"reference": name, **more})


SPECS: tuple[Spec | SearchSpec, ...] = (
    Spec(name="datasets", title="The data sets", layout="datasets", reference="datasets"),
    _fits("synthetic", "2-D sets: time (s), gap (%), train ACC (%)", _planes(), ("time", "gap", "train_acc"),
          data=PLANE_SETS),
    _fits("test_accuracy", "Test ACC and BACC (%)", FIRST_METHODS, _acc_and_bacc("test")),
    _fits("train_accuracy", "Train ACC and BACC (%)", FIRST_METHODS, _acc_and_bacc("train")),
    _fits("time_gap", "Time (s) and gap (%)", FIRST_METHODS, ("time", "gap")),
    _fits("features", "Features used, in all and by node", FIRST_METHODS, ("F", "F_t")),
    _fits("test_accuracy_fs", "Feature selection: test ACC and BACC (%)", SECOND_METHODS, _acc_and_bacc("test")),
    _fits("train_accuracy_fs", "Feature selection: train ACC and BACC (%)", SECOND_METHODS, _acc_and_bacc("train")),
    _fits("time_gap_fs", "Feature selection: time (s) and gap (%)", SECOND_METHODS, ("time", "gap")),
    _fits("features_fs", "Feature selection: features used, in all and by node", SECOND_METHODS, ("F", "F_t")),
    _fits("warm_start", "First incumbent f0 and best after the root node f1, with and without a start", _starts(),
          ("f0", "f1"), layout="starts"),
    _fits("depths", "Depths 2, 3, 4: test ACC (%) and gap (%)", _depths(), ("test_acc", "gap"), reference=None),
    _fits("oct1_depths_test", "HFS-MARGOT* against OCT-1 of depths 2, 3, 4: test ACC and BACC (%), features",
          _univariate(), (*_acc_and_bacc("test"), "sumF")),
    _fits("oct1_depths_train", "HFS-MARGOT* against OCT-1 of depths 2, 3, 4: train ACC and BACC (%)", _univariate(),
          _acc_and_bacc("train")),
    _fits("fixed_test_accuracy", "Fixed hyperparameters: test ACC and BACC (%), and what tuning gains (d)", _fixed(),
          _acc_and_bacc("test"), layout="gains"),
    _fits("fixed_train_accuracy", "Fixed hyperparameters: train ACC and BACC (%), and what tuning gains (d)", _fixed(),
          _acc_and_bacc("train"), layout="gains"),
    _fits("fixed_time_gap", "Fixed hyperparameters: time (s) and gap (%), and what tuning gains (d)", _fixed(),
          ("time", "gap"), layout="gains"),
    SearchSpec(name="hyperparameters", title="Hyperparameters by 4-fold cross-validation, best accuracy",
               models=(("oct_h", "accuracy"), ("mm_svm_oct", "accuracy"), ("margot", "accuracy"))),
    SearchSpec(name="hyperparameters_fs", title="Hyperparameters by 4-fold cross-validation, fewest features",
               models=(("oct_1", "accuracy"), ("oct_h", "features"), ("hfs", "features"), ("sfs", "features"))),
)  # fmt: skip

_BY_NAME = {spec.name: spec for spec in SPECS}


def names() -> tuple[str, ...]:
    """The tables that can be run and printed."""
    return tuple(_BY_NAME)


def find(name: str) -> Spec | SearchSpec:
    """The spec of an experiment; ValueError for an unknown name."""
    if name not in _BY_NAME:
        raise ValueError(f"unknown experiment {name!r}; there are: {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def all_sets(specs: Sequence[Spec | SearchSpec]) -> list[str]:
    """The sets of some experiments, without duplicates."""
    return list(dict.fromkeys(name for spec in specs for name in spec.data))


def resolve_sets(data: Sequence[str] | None, specs: Sequence[Spec | SearchSpec] = SPECS) -> list[str] | None:
    """The names of sets given by a user, in the spelling of the experiments; ValueError for an unknown one."""
    if data is None:
        return None
    known = all_sets(specs)
    stems = {stem: name for name in known for stem in (name.casefold(), _stem(name))}
    return [stems.get(name.strip().casefold()) or _raise_unknown("data set", name, known, specs) for name in data]


def resolve_models(only: Sequence[str] | None, specs: Sequence[Spec | SearchSpec] = SPECS) -> list[str] | None:
    """The models given by a user; ValueError for one that none of the experiments has."""
    if only is None:
        return None
    known = list(dict.fromkeys(m for spec in specs for m in _models(spec)))
    return [name if name in known else _raise_unknown("model", name, known, specs) for name in only]


def _models(spec: Spec | SearchSpec) -> list[str]:
    return [m.model for m in spec.methods] if isinstance(spec, Spec) else [model for model, _ in spec.models]


def _stem(name: str) -> str:
    try:
        return find_entry(name).stem
    except ValueError:
        return name.casefold()  # a generated set


def _raise_unknown(what: str, name: str, known: Sequence[str], specs: Sequence[Spec | SearchSpec]) -> str:
    """Raise a ValueError that lists the known names and suggests the most similar one."""
    where = f" in {specs[0].name}" if len(specs) == 1 else ""
    close = get_close_matches(name.casefold(), [k.casefold() for k in known], n=1)
    meant = next((k for k in known if close and k.casefold() == close[0]), None)
    hint = f"did you mean {meant!r}?  There are" if meant else "there are"
    raise ValueError(f"no {what} {name!r}{where}; {hint}: {', '.join(known)}")
