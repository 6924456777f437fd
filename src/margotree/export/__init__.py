"""Export of trees to SQL, C, plain Python and ONNX, with the same predictions and without margotree.

- ``common``: the rules in the units of the user, used by all exports. Start here.
- ``sql``, ``c``, ``python``, ``onnx``: one module per target
- ``c_expressions``, ``c_probabilities``: expressions of C, and the C function of ``predict_proba``
- ``sql_probabilities``: the SQL expression of a probability
- ``c_cells``: the C function that converts the cells of a table to features
"""

from margotree.export.c import to_c
from margotree.export.onnx import to_onnx
from margotree.export.python import to_python
from margotree.export.sql import to_sql

__all__ = ["to_c", "to_onnx", "to_python", "to_sql"]
