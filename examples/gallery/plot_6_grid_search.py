"""
Choosing C with GridSearchCV
============================

With a small C, margins are wide, and splits that do not reduce the objective vanish. With a large C, the tree adapts to
every training sample. Cross-validation finds a value between them; short fits are sufficient for the comparison.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV

from margotree import MargotClassifier

X, y = load_breast_cancer(return_X_y=True)
X, y = X[::3, 20:], y[::3]

search = GridSearchCV(
    MargotClassifier(depth=2, time_limit=0.5),
    {"C": [0.001, 0.01, 0.1, 1, 10, 100, 1000]},
    cv=3,
    return_train_score=True,
)
search.fit(X, y)

found = search.cv_results_
for part, name in (("train", "training"), ("test", "validation")):
    plt.errorbar(
        search.param_grid["C"],
        found[f"mean_{part}_score"],
        found[f"std_{part}_score"],
        marker="o",
        capsize=3,
        label=name,
    )
plt.xscale("log")
plt.xlabel("C")
plt.ylabel("accuracy")
plt.legend()
print(search.best_params_)
