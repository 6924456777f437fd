"""Export of a tree to an ONNX graph."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from margotree import __version__
from margotree.export.common import (
    excesses,
    label_type,
    leaf_formulas,
    leaf_table,
    margin_rule,
    origins,
    unscaled_hyperplanes,
)
from margotree.problem import topology
from margotree.table.cell_rules import CellRule
from margotree.table.table_description import raw_columns
from margotree.tree import HyperplaneTree, RegressionTree
from margotree.tree.probabilities import LABEL_LEAD
from margotree.tree.score import NO_OTHER_LABEL, leaf_targets, reachable_labels

if TYPE_CHECKING:
    from margotree.tree import Tree

#: The first versions with comparisons of doubles that runtimes from 2022 on support.
_OPSET, _IR = 15, 8
#: The operators on strings.
_ML, _ML_OPSET = "ai.onnx.ml", 2


def to_onnx(tree: Tree | RegressionTree, *, float32: bool = False, columns: bool = False) -> Any:
    """Return the tree as an ``onnx.ModelProto``.

    The package onnx is needed (``pip install "margotree[onnx]"``); ``onnx.save(model, path)`` writes the model. The
    input ``X`` has one row per sample: the features in the order and the units of the training data. The output
    ``label`` has strings, whole numbers, booleans or doubles, like the labels of the tree. The output ``probabilities``
    is the result of ``predict_proba``, one column per class; in a row with NaN or infinity it is NaN and the label is
    meaningless, because a graph cannot raise an error. The graph of a regression tree has the output ``prediction``,
    which is NaN in such a row.

    With ``columns`` the inputs are the columns of the training table, by their names: strings for columns of words,
    numbers for the others, with NaN for a missing cell, 0 or 1 for truth values and the days since the first date of
    training for dates. The graph compares words exactly as they are spelled in training; an empty string is a missing
    cell. Where ``predict`` raises an error about a cell, the output is NaN.

    The metadata of the model contain, as JSON, ``features``, ``classes`` or ``target``, and the rules for the cells of
    a table: ``columns`` (the fields of :class:`margotree.table.cell_rules.CellRule`), ``missing`` and ``comma``.

    Parameters
    ----------
    tree : Tree
        The tree.
    float32 : bool
        Whether ``X`` has single precision. The graph computes in double precision in both cases.
    columns : bool
        Whether the inputs are columns, and not features.
    """
    if find_spec("onnx") is None:
        raise ImportError('ONNX export needs the package onnx; pip install "margotree[onnx]"')
    from onnx import checker, helper

    rules = raw_columns(tree).rules if columns else ()
    graph = (
        _NumberGraph(tree, float32, rules) if isinstance(tree, RegressionTree) else _ClassGraph(tree, float32, rules)
    )
    model = helper.make_model(
        graph.build(), ir_version=_IR,
        opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_ML, _ML_OPSET)],
        producer_name="margotree", producer_version=__version__,
    )  # fmt: skip
    outcome = {"target": tree.target_name} if isinstance(tree, RegressionTree) else {"classes": tree.classes.tolist()}
    properties = {"features": list(tree.features), **outcome, **raw_columns(tree).record()}
    helper.set_model_props(model, {name: json.dumps(value) for name, value in properties.items()})
    checker.check_model(model)
    return model


AnyTree = TypeVar("AnyTree", bound=HyperplaneTree)


class _Graph(ABC, Generic[AnyTree]):
    """Builds the graph: the sides at all nodes by one matrix product, then one step down per level."""

    def __init__(self, tree: AnyTree, float32: bool, rules: Sequence[CellRule]) -> None:
        from onnx import TensorProto

        self.tree, self.rules = tree, rules
        self.input = TensorProto.FLOAT if float32 else TensorProto.DOUBLE
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    @abstractmethod
    def outputs(self, x: str) -> list[Any]:
        """Add the operations for the double-precision input ``x``; return the descriptions of the outputs."""

    def build(self) -> Any:
        """Return the graph."""
        from onnx import TensorProto, helper

        if self.rules:
            parts = [self._features_of_column(k, rule) for k, rule in enumerate(self.rules)]
            outputs = self.outputs(self._op("Concat", *parts, axis=1))
            kinds = [self.input if rule.numeric else TensorProto.STRING for rule in self.rules]
            names = [rule.column for rule in self.rules]
            inputs = [helper.make_tensor_value_info(name, k, ["samples"]) for name, k in zip(names, kinds, strict=True)]
        else:
            outputs = self.outputs(self._op("Cast", "X", to=TensorProto.DOUBLE))
            inputs = [helper.make_tensor_value_info("X", self.input, ["samples", self.tree.n_features])]
        return helper.make_graph(self.nodes, "margotree", inputs, outputs, self.constants)

    def _features_of_column(self, k: int, rule: CellRule) -> str:
        """Add the features of a column: a matrix with one row per sample."""
        from onnx import TensorProto

        nothing = (np.nan,) * len(rule.features)
        missing = nothing if rule.missing is None else rule.missing
        if not rule.numeric:
            rows = [nothing if rule.other is None else rule.other, missing, *(values for _, values in rule.words)]
            words = ["", *(word for word, _ in rule.words)]
            code = self._op("LabelEncoder", rule.column, domain=_ML, keys_strings=words, default_int64=0,
                            values_int64s=list(range(1, 1 + len(words))))  # fmt: skip
            return self._op("Gather", self._constant(f"column {k}", np.array(rows)), code)
        cells = self._op("Cast", rule.column, to=TensorProto.DOUBLE)
        column = self._op("Unsqueeze", cells, self._constant(f"axis of column {k}", np.array([1])))
        if rule.missing is None:
            return column
        known = np.array([[1.0, *[0.0] * (len(rule.features) - 1)]])
        with_zeros = self._op("Mul", column, self._constant(f"number of column {k}", known))
        filled = self._constant(f"missing in column {k}", np.array([missing]))
        return self._op("Where", self._op("IsNaN", column), filled, with_zeros)

    def _from_origins(self, x: str) -> str:
        """Add the subtraction of the origins of features, where there are any."""
        origin = origins(self.tree)
        return self._op("Sub", x, self._constant("origin", origin)) if origin.any() else x

    def _sides(self, x: str) -> tuple[str, str]:
        """Add the sums of all nodes, and a matrix with 1 where a sample goes right at a node, 0 where it goes left.

        ``x`` is the difference from the origins.
        """
        from onnx import TensorProto

        weights, threshold = unscaled_hyperplanes(self.tree)
        total = self._op("MatMul", x, self._constant("weights", np.ascontiguousarray(weights.T)))
        right = self._op("GreaterOrEqual", total, self._constant("threshold", threshold))
        return total, self._op("Cast", right, to=TensorProto.INT64)

    def _leaf(self, sides: str) -> str:
        """Add the position of the leaf of each sample: from node t to 2 t + 1 or 2 t + 2, level by level."""
        one = self._constant("one", np.array([1]))
        # The column of the root gives the shape and the first side.
        side = self._op("Gather", sides, self._constant("root", np.array([0])), axis=1)
        at = self._op("Add", side, one)
        for _ in range(self.tree.levels - 1):
            side = self._op("GatherElements", sides, at, axis=1)
            at = self._op("Add", self._op("Add", at, at), self._op("Add", side, one))
        first = self._constant("first leaf", np.array([topology.n_nodes(self.tree.levels)]))
        flat = self._op("Squeeze", at, self._constant("axis", np.array([1])))
        return self._op("Sub", flat, first)

    def _nan_where_not_finite(self, x: str, found: str, out: str) -> None:
        """Add the output ``out``: the rows of ``found``, with NaN where a row of ``x`` is not finite."""
        nothing = self._op("ReduceSum", self._op("Mul", x, self._constant("zero", np.array([0.0]))),
                           self._constant("across", np.array([1])), keepdims=1)  # fmt: skip
        self._op("Add", found, nothing, out=out)

    def _number(self, name: str, value: float) -> str:
        return self._constant(name, np.array(value))

    def _op(self, kind: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        from onnx import helper

        name = out or f"{kind} {len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def _constant(self, name: str, value: NDArray[Any]) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(value, name))
        return name


class _ClassGraph(_Graph["Tree"]):
    """The graph of a tree of classes."""

    def outputs(self, x: str) -> list[Any]:
        """Add the labels and the probabilities."""
        from onnx import TensorProto, helper

        total, sides = self._sides(self._from_origins(x))
        leaf = self._leaf(sides)
        self._op("Gather", self._constant("labels", self._labels()), leaf, out="label")
        self._nan_where_not_finite(x, self._probabilities(total, sides, leaf), "probabilities")
        types = {
            str: TensorProto.STRING, int: TensorProto.INT64, bool: TensorProto.BOOL, float: TensorProto.DOUBLE
        }  # fmt: skip
        return [
            helper.make_tensor_value_info("label", types[label_type(self.tree)], ["samples"]),
            helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["samples", len(self.tree.classes)]),
        ]

    def _probabilities(self, total: str, sides: str, leaf: str) -> str:
        table = leaf_table(self.tree)
        if table is not None:
            return self._op("Gather", self._constant("shares", table), leaf)
        rule = margin_rule(self.tree)
        n_labels = len(rule.intercept)
        is_own = self._op(
            "Gather", self._constant("own label", np.eye(n_labels, dtype=bool)[self.tree.leaf_class]), leaf
        )
        distance = self._op("Where", is_own, self._number("no distance", 0.0), self._distances(total, sides))
        change = self._op("MatMul", distance, self._constant("slope", rule.slope))
        odds = self._op("Add", change, self._constant("intercept", rule.intercept))
        others = self._op("Where", is_own, self._number("lowest", -np.inf), odds)
        lead = self._op("Add", self._op("ReduceMax", others, axes=[1]), self._number("lead", LABEL_LEAD))
        raised = self._op("Add", odds, self._constant("step", rule.step))
        odds = self._op("Where", is_own, self._op("Max", raised, lead), odds)
        shares = self._op("Softmax", odds, axis=1)
        rest = self._op("Mul", shares, self._number("rest", 1.0 - rule.floor))
        weighted = self._op("Add", rest, self._number("floor", rule.floor / n_labels))
        shares = self._op("Div", weighted, self._constant("class weight", rule.class_weight))
        return self._op("Div", shares, self._op("ReduceSum", shares, self._constant("classes", np.array([1]))))

    def _distances(self, total: str, sides: str) -> str:
        """Add the distances from all labels, one column per class, level by level from the leaves up."""
        from onnx import TensorProto

        splits, targets = excesses(self.tree), leaf_targets(self.tree)
        threshold = np.array([split.threshold for split in splits])
        over = self._op("Sub", total, self._constant("thresholds", threshold))
        excess = self._op("Mul", over, self._constant("units", np.array([split.unit for split in splits])))
        h = self._op("Sub", excess, self._constant("ties", np.array([split.tie for split in splits])))
        right = self._op("Cast", sides, to=TensorProto.BOOL)
        zero = self._number("zero cost", 0.0)
        cost = self._op("Where", right, self._op("Max", h, zero), self._op("Neg", h))
        constant = self._constant("constant", np.array([not split.terms for split in splits]))
        cost = self._op("Where", constant, self._number("infinite", np.inf), cost)
        to_right, to_left = self._op("Where", right, zero, cost), self._op("Where", right, cost, zero)
        deepest = self._constant("targets", np.where(targets, 0.0, np.inf)[None])
        distance, last = deepest, self._constant("last axis", np.array([2]))
        for level in reversed(range(self.tree.depth)):
            nodes = topology.level_nodes(level)
            here = self._constant(f"level {level}", np.array(nodes))
            ways = []
            for side, cost in enumerate((to_left, to_right)):
                children = self._constant(f"children {level} {side}", 2 * np.arange(len(nodes)) + side)
                column = self._op("Unsqueeze", self._op("Gather", cost, here, axis=1), last)
                ways.append(self._op("Max", column, self._op("Gather", distance, children, axis=1)))
            distance = self._op("Min", *ways)
        distance = self._op("Squeeze", distance, self._constant("node axis", np.array([1])))
        rule = margin_rule(self.tree)
        if len(rule.intercept) == 2:
            unreachable = self._constant("unreachable", ~reachable_labels(self.tree))
            distance = self._op("Where", unreachable, self._number("no other label", NO_OTHER_LABEL), distance)
        return self._op("Min", distance, self._number("farthest", rule.farthest))

    def _labels(self) -> NDArray[Any]:
        classes = self.tree.classes.tolist()
        labels = [classes[code] for code in self.tree.leaf_class.tolist()]
        kind = label_type(self.tree)
        if kind is int and not all(-(2**63) <= label < 2**63 for label in labels):
            raise ValueError("whole numbers as labels have at most 64 bits in ONNX; train on shorter ones")
        return np.array(labels, dtype={str: np.object_, int: np.int64, bool: np.bool_, float: np.float64}[kind])


class _NumberGraph(_Graph[RegressionTree]):
    """The graph of a tree of numbers."""

    def outputs(self, x: str) -> list[Any]:
        """Add the predictions: the formulas of all leaves by one matrix product, of which each row takes one."""
        from onnx import TensorProto, helper

        formulas, moved = leaf_formulas(self.tree), self._from_origins(x)
        weights = np.zeros((self.tree.n_features, len(formulas)))
        for k, formula in enumerate(formulas):
            for term in formula.terms:
                weights[term.feature, k] = term.weight
        names = ("constant", "low", "high", "unit")
        constant, low, high, unit = (
            self._constant(name, np.array([getattr(formula, name) for formula in formulas])) for name in names
        )
        total = self._op("Add", self._op("MatMul", moved, self._constant("formulas", weights)), constant)
        values = self._op("Mul", self._op("Min", self._op("Max", total, low), high), unit)
        column = self._constant("column", np.array([1]))
        if self.tree.levels:
            leaf = self._op("Unsqueeze", self._leaf(self._sides(moved)[1]), column)
            values = self._op("GatherElements", values, leaf, axis=1)
        self._nan_where_not_finite(x, values, "column of predictions")
        self._op("Squeeze", "column of predictions", column, out="prediction")
        return [helper.make_tensor_value_info("prediction", TensorProto.DOUBLE, ["samples"])]
