"""
A regression tree with intervals
================================

A regression tree has a linear formula in every leaf.  A quarter of the samples calibrates prediction intervals, whose
width follows the noise of the leaf.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from margotree import MargotRegressor
from margotree.plots import plot_effect, plot_predictions, plot_residuals

# Rents: in the centre they rise with the size and vary, outside they depend on the age of the house.
rng = np.random.default_rng(0)
n = 800
distance, size, age = rng.uniform(0, 10, n), rng.uniform(20, 120, n), rng.uniform(0, 60, n)
central = distance < 3
rent = np.where(central, 200 + 14 * size, 400 + 8 * size - 5 * age) + np.where(central, 120, 30) * rng.normal(size=n)
X = pd.DataFrame({"distance": distance, "size": size, "age": age})

X, X_test, y, y_test = train_test_split(X, pd.Series(rent, name="rent"), test_size=0.5, random_state=0)
X_other, X_test, y_other, y_test = train_test_split(X_test, y_test, test_size=0.5, random_state=0)

model = MargotRegressor(depth=2, budget=1, leaf_budget=2, time_limit=3).fit(X, y)
model.calibrate(X_other, y_other)
print(model.export_text())

# %%
# The tree: the split, and the formulas with a bar for every weight.

model.tree_.plot()

# %%
# The effect of the size, the other features as in the samples.  ``model.to_html("rent.html", X_test, y_test)`` writes a
# page on which a reader enters a flat, sees the formula filled in, and finds the smallest changes that reach a rent.

plot_effect(model, X_test, "size")

# %%
# Errors on samples that neither trained nor calibrated the tree.

figure, axes = plt.subplots(1, 2, figsize=(12, 5))
plot_predictions(model, X_test, y_test, axes[0])
plot_residuals(model, X_test, y_test, axes[1])
figure.tight_layout()

# %%
# Intervals of 90 %: wide in the centre, narrow outside.

low, high = model.predict_interval(X_test, coverage=0.9).T
inside = np.mean((low <= y_test) & (y_test <= high))
order = np.argsort(model.predict(X_test))
figure, ax = plt.subplots(figsize=(9, 4))
ax.vlines(np.arange(len(order)), low[order], high[order], color="#9bbfd6", linewidth=1.5)
ax.plot(np.arange(len(order)), y_test.to_numpy()[order], ".", color="#1f2933", markersize=4)
ax.set_xlabel("test samples, by prediction")
ax.set_ylabel(f"rent and its interval ({100 * inside:.0f} % inside)")
figure.tight_layout()
