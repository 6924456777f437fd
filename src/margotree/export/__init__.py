"""Trees that leave Python: the same predictions as SQL, C, plain Python or an ONNX graph, without margotree."""

from margotree.export.c import to_c
from margotree.export.onnx import to_onnx
from margotree.export.python import to_python
from margotree.export.sql import to_sql

__all__ = ["to_c", "to_onnx", "to_python", "to_sql"]
