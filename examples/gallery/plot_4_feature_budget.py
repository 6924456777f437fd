"""
How many features does a split need?
====================================

The same data with a budget of 1, 2 and 3 features per split: which ones are taken, and in how many of the three splits.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from margotree import HFSMargotClassifier
from margotree.plots import plot_features

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)

trees = {}
for budget in (1, 2, 3):
    model = HFSMargotClassifier(depth=2, C=100, budget=budget, time_limit=3).fit(X_train, y_train)
    trees[f"budget {budget}"] = model.tree_
    print(
        f"budget {budget}: right on {model.score(X_test, y_test):.1%} of new samples, gap {model.certificate_.gap:.0%}"
    )

plot_features(trees)
