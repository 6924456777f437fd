"""Deprecated import path of margotree.plots; removed in 0.3."""

from margotree._moved import forward

__getattr__ = forward(__name__, "margotree.plots")
