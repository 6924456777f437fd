"""
Why this sample? A data frame and one of its rows
=================================================

Columns are found by name. The path of a sample tells the side it takes at every split and how far from the hyperplane
it is, 1 being the margin; the picture shows where the others lie about the last split it passes.
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
