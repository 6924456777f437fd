"""Export of a tree to an ONNX graph."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margotree import __version__
from margotree.export.common import label_type, origins, unscaled_hyperplanes
from margotree.problem import topology
from margotree.table.table_description import raw_columns

if TYPE_CHECKING:
    from margotree.tree import Tree

#: The first versions with comparisons of doubles that runtimes from 2022 on support.
_OPSET, _IR = 15, 8


def to_onnx(tree: Tree, *, float32: bool = False) -> Any:
    """Return the tree as an ``onnx.ModelProto``.

    The package onnx is needed (``pip install "margotree[onnx]"``); ``onnx.save(model, path)`` writes the model. The
    input ``X`` has one row per sample: the features in the order and the units of the training data. The output
    ``label`` has strings, whole numbers, booleans or doubles, like the labels of the tree. The output ``probabilities``
    is the result of ``predict_proba``, one column per class; in a row with NaN or infinity it is NaN and the label is
    meaningless, because a graph cannot raise an error.

    The metadata of the model contain, as JSON, ``features``, ``classes`` and the rules for the cells of a table:
    ``columns`` (the fields of :class:`margotree.table.cell_rules.CellRule`), ``missing`` and ``comma``.

    Parameters
    ----------
    tree : Tree
        The tree.
    float32 : bool
        Whether ``X`` has single precision. The graph computes in double precision in both cases.
    """
    if find_spec("onnx") is None:
        raise ImportError('ONNX export needs the package onnx; pip install "margotree[onnx]"')
    from onnx import checker, helper

    graph = _Graph(tree, float32)
    model = helper.make_model(
        graph.build(), opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR,
        producer_name="margotree", producer_version=__version__,
    )  # fmt: skip
    properties = {"features": list(tree.features), "classes": tree.classes.tolist(), **raw_columns(tree).record()}
    helper.set_model_props(model, {name: json.dumps(value) for name, value in properties.items()})
    checker.check_model(model)
    return model


class _Graph:
    """Builds the graph: the sides at all nodes by one matrix product, then one step down per level."""

    def __init__(self, tree: Tree, float32: bool) -> None:
        from onnx import TensorProto

        self.tree = tree
        self.input = TensorProto.FLOAT if float32 else TensorProto.DOUBLE
        self.label = {
            str: TensorProto.STRING, int: TensorProto.INT64, bool: TensorProto.BOOL, float: TensorProto.DOUBLE
        }[label_type(tree)]  # fmt: skip
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def build(self) -> Any:
        from onnx import TensorProto, helper

        x = self._op("Cast", "X", to=TensorProto.DOUBLE)
        leaf = self._leaf(self._sides(x))
        self._op("Gather", self._constant("labels", self._labels()), leaf, out="label")
        self._shares(x, leaf)
        n, k = self.tree.n_features, len(self.tree.classes)
        return helper.make_graph(
            self.nodes,
            "margotree",
            [helper.make_tensor_value_info("X", self.input, ["samples", n])],
            [
                helper.make_tensor_value_info("label", self.label, ["samples"]),
                helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["samples", k]),
            ],
            self.constants,
        )

    def _sides(self, x: str) -> str:
        """Add a matrix with 1 where a sample goes right at a node, 0 where it goes left; one column per node."""
        from onnx import TensorProto

        weights, threshold = unscaled_hyperplanes(self.tree)
        origin = origins(self.tree)
        if origin.any():
            x = self._op("Sub", x, self._constant("origin", origin))
        total = self._op("MatMul", x, self._constant("weights", np.ascontiguousarray(weights.T)))
        right = self._op("GreaterOrEqual", total, self._constant("threshold", threshold))
        return self._op("Cast", right, to=TensorProto.INT64)

    def _leaf(self, sides: str) -> str:
        """Add the position of the leaf of each sample: from node t to 2 t + 1 or 2 t + 2, level by level."""
        one = self._constant("one", np.array([1]))
        # The column of the root gives the shape and the first side.
        side = self._op("Gather", sides, self._constant("root", np.array([0])), axis=1)
        at = self._op("Add", side, one)
        for _ in range(self.tree.depth - 1):
            side = self._op("GatherElements", sides, at, axis=1)
            at = self._op("Add", self._op("Add", at, at), self._op("Add", side, one))
        first = self._constant("first leaf", np.array([topology.n_nodes(self.tree.depth)]))
        flat = self._op("Squeeze", at, self._constant("axis", np.array([1])))
        return self._op("Sub", flat, first)

    def _shares(self, x: str, leaf: str) -> None:
        shares = self._op("Gather", self._constant("shares", self.tree.leaf_shares()), leaf)
        nothing = self._op("ReduceSum", self._op("Mul", x, self._constant("zero", np.array([0.0]))),
                           self._constant("across", np.array([1])), keepdims=1)  # fmt: skip
        self._op("Add", shares, nothing, out="probabilities")

    def _labels(self) -> NDArray[Any]:
        classes = self.tree.classes.tolist()
        labels = [classes[code] for code in self.tree.leaf_class.tolist()]
        kind = label_type(self.tree)
        if kind is int and not all(-(2**63) <= label < 2**63 for label in labels):
            raise ValueError("whole numbers as labels have at most 64 bits in ONNX; train on shorter ones")
        return np.array(labels, dtype={str: np.object_, int: np.int64, bool: np.bool_, float: np.float64}[kind])

    def _op(self, kind: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        from onnx import helper

        name = out or f"{kind} {len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def _constant(self, name: str, value: NDArray[Any]) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(value, name))
        return name
