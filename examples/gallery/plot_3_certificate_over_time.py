"""
The certificate over time
=========================

A search keeps two numbers: the objective of the best tree so far, and a lower bound on the objective of any tree. The
optimum lies between them. Usually the tree is found early, and the rest of the time is used for the proof.
"""

from sklearn.datasets import load_breast_cancer

from margotree import MargotClassifier
from margotree.plots import plot_progress
from margotree.progress import recording

X, y = load_breast_cancer(return_X_y=True)
X = X[:, 20:28]

with recording() as events:
    tree = MargotClassifier(depth=2, C=[1, 100], time_limit=5).fit(X, y)
plot_progress(events)

# %%
print(tree.certificate_)
