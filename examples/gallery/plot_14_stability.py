"""
How stable is the tree?
=======================

Would other patients have led to the same tree? ``tree_stability`` trains it again on bootstrap samples. A feature that
returns in nearly every refit is needed; of features that replace each other, each returns in a part of the refits only.
Predictions are often more stable than the features: here several measurements say nearly the same.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from margotree import MargotClassifier
from margotree.model_selection import tree_stability
from margotree.plots import plot_stability

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
model = MargotClassifier(depth=1, C=10, budget=2, time_limit=2)
found = tree_stability(model, X, y.map({0: "malignant", 1: "benign"}), n_refits=20)
print(found)
plot_stability(found)
plt.show()
