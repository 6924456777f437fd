"""Deprecated import path of margotree.paper.experiments; removed in 0.3."""

from margotree._moved import forward

__getattr__ = forward(__name__, "margotree.paper.experiments")

if __name__ == "__main__":
    from margotree.paper.experiments.__main__ import main

    raise SystemExit(main())
