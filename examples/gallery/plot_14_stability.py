"""
How stable is the tree?
=======================

Would other patients have led to the same tree? ``tree_stability`` trains it again on bootstrap samples. A feature that
returns in nearly every refit is needed; of features that replace each other, each returns in a part of the refits only.
Predictions are often more stable than the features: here several measurements say nearly the same.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from margotree import MargotClassifier
from margotree.estimators import FewSplitsWarning
from margotree.model_selection import tree_stability
from margotree.plots import plot_stability

warnings.simplefilter("ignore", FewSplitsWarning)  # some refits need one split only
X, y = load_breast_cancer(return_X_y=True, as_frame=True)
model = MargotClassifier(depth=2, C=[1, 100], budget=2, time_limit=0.4)
found = tree_stability(model, X, y.map({0: "malignant", 1: "benign"}), n_refits=20)
print(found)
plot_stability(found)
plt.show()
