"""
A first tree
============

Thirty measurements of cell nuclei, 569 biopsies, two diagnoses. At most two features per split are sufficient, and the
tree is shown in the units of the features.
"""

from sklearn.datasets import load_breast_cancer

from margotree import HFSMargotClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})

tree = HFSMargotClassifier(depth=2, C=100, budget=2, time_limit=4).fit(X, y)
tree.tree_.plot()

# %%
# The certificate after four seconds:
print(tree.certificate_)
