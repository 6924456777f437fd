"""
Prediction intervals from two quantile trees
============================================

Quantile regression is a task of a dozen lines (:doc:`/extending`).  The trees for the quantiles 0.05 and 0.95 are the
ends of an interval of 90 %, whose width is a formula: it can grow with a feature within a leaf.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from margotree import MargotRegressor
from margotree.problem import Items, Regression


class Quantile(Regression):
    """The pinball loss: q per unit above the prediction, 1 - q per unit below it."""

    name = "quantile"

    def __init__(self, q):
        self.q = q

    def items(self, y, *, last, side=None, choice=None):
        if not last:
            return Regression().items(y, last=last, side=side)
        return Items(p=np.full(len(y), self.q), m=np.full(len(y), 1 - self.q), r=y, l=y)


# Hours in an emergency department: delays are skewed, and they grow with the number of patients who wait.
rng = np.random.default_rng(0)
n = 900
waiting, tests, night = rng.uniform(0, 30, n), rng.integers(0, 5, n), rng.random(n) < 0.4
delay = rng.exponential(np.where(night, 0.2 + 0.12 * waiting, 0.3), n)
hours = 1 + 0.04 * waiting + 0.5 * tests + delay
X = pd.DataFrame({"waiting": waiting, "tests": tests.astype(float), "night": night.astype(float)})
X, X_test, y, y_test = train_test_split(X, pd.Series(hours, name="hours"), test_size=0.5, random_state=0)

ends = [
    MargotRegressor(depth=2, budget=1, leaf_budget=2, loss=Quantile(q), time_limit=3).fit(X, y) for q in (0.05, 0.95)
]

# %%
# The upper end: at night it rises with the number of patients who wait.

print(ends[1].export_text())

# %%
# On new samples somewhat fewer than 90 % may lie in the interval, because the trees are fitted to other samples.
# ``calibrate`` and ``predict_interval`` of one tree guarantee the share on average, with one width per leaf.

low, high = np.sort([model.predict(X_test) for model in ends], axis=0)
inside = np.mean((low <= y_test) & (y_test <= high))

figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True)
for ax, at_night in zip(axes, (False, True), strict=True):
    here = (X_test["night"] == at_night).to_numpy()
    ax.vlines(X_test["waiting"][here], low[here], high[here], color="#9bbfd6", linewidth=1.5)
    ax.plot(X_test["waiting"][here], y_test[here], ".", color="#1f2933", markersize=4)
    ax.set_title("night" if at_night else "day")
    ax.set_xlabel("patients who wait")
axes[0].set_ylabel(f"hours and their interval ({100 * inside:.0f} % inside)")
figure.tight_layout()
