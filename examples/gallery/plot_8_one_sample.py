"""
The decision path of one sample
===============================

Columns of a data frame are found by name. The path of a sample contains its side at every split and its value of the
hyperplane (1 is the margin). The plot shows the samples at the root by this value.
"""

from sklearn.datasets import load_breast_cancer

from margotree import HFSMargotClassifier
from margotree.plots import plot_node

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
tree = HFSMargotClassifier(depth=2, C=100, budget=2, time_limit=3).fit(X, y).tree_

patient = X.iloc[[73]]
print(f"predicted {tree.predict(patient)[0]}, diagnosed {y.iloc[73]}")
print(tree.path(patient.iloc[0]))

plot_node(tree, X, y, 0)
