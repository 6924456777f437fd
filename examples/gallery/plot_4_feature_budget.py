"""
How many features does a split need?
====================================

The same data with a budget of 1, 2 and 3 features per split: the selected features, and the number of splits that use
each of them.
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
        f"budget {budget}: accuracy {model.score(X_test, y_test):.1%} on new samples, gap {model.certificate_.gap:.0%}"
    )

plot_features(trees)
