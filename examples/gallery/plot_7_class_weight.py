"""
Class weights
=============

Class weights multiply C for the samples of a class. Here a missed sample of class 1 costs as much as one, five or fifty
false alarms: the region of class 1 grows with the factor.
"""

import matplotlib.pyplot as plt
import numpy as np

from margotree import MargotClassifier
from margotree.plots import plot_plane

rng = np.random.default_rng(0)
X = np.vstack([rng.normal([0, 0], 1, (60, 2)), rng.normal([2, 1], 1, (20, 2))])
y = np.repeat([0, 1], [60, 20])

figure, axes = plt.subplots(1, 3, figsize=(12, 4))
for ax, factor in zip(axes, (1, 5, 50), strict=True):
    tree = MargotClassifier(depth=1, C=1, class_weight={0: 1, 1: factor}, time_limit=3).fit(X, y)
    plot_plane(tree.tree_, X, y, ax, legend=False)
    missed = np.sum((tree.predict(X) == 0) & (y == 1))
    alarms = np.sum((tree.predict(X) == 1) & (y == 0))
    ax.set_title(f"factor {factor}: {missed} missed, {alarms} false alarms")
figure.tight_layout()
