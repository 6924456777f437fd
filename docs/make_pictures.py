"""Draws the picture of the first page (``make pictures``): the tree of examples/demo.py, after 60 s or as given."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from margotree import HFSMargotClassifier

X, target = load_breast_cancer(return_X_y=True, as_frame=True)
y = target.map({0: "malignant", 1: "benign"})
X_train, _, y_train, _ = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)

seconds = float(sys.argv[1]) if sys.argv[1:] else 60
tree = HFSMargotClassifier(depth=2, C=100, budget=2, time_limit=seconds).fit(X_train, y_train)
axes = tree.tree_.plot()
out = Path(__file__).parent / "images" / "tree.png"
axes.figure.savefig(out, dpi=110, bbox_inches="tight")
print(tree.export_text())
print(tree.certificate_)
