"""
A tree that fits on a slide
===========================

Thirty measurements of cell nuclei, 569 biopsies, two diagnoses. At most two features per split are enough, and the tree
says them in their own units.
"""

from sklearn.datasets import load_breast_cancer

from margotree import HFSMargotClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})

tree = HFSMargotClassifier(depth=2, C=100, budget=2, time_limit=4).fit(X, y)
tree.tree_.plot()

# %%
# What is proved of it after four seconds:
print(tree.certificate_)
