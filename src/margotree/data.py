"""Deprecated import path of margotree.paper.data; removed in 0.3."""

from margotree._moved import forward

__getattr__ = forward(__name__, "margotree.paper.data")
