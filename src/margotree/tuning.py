"""Deprecated import path of margotree.model_selection and margotree.paper.tuning; removed in 0.3."""

from margotree._moved import forward

__getattr__ = forward(__name__, "margotree.model_selection", "margotree.paper.tuning")
