"""
MARGOT and OCT-1 in the plane
=============================

Four regions whose borders are not parallel to the axes. Splits by one feature each (OCT-1) approximate them by steps;
MARGOT needs three hyperplanes.
"""

import matplotlib.pyplot as plt
import numpy as np

from margotree import MargotClassifier, OCT1Classifier
from margotree.paper.data import make_partitions
from margotree.plots import plot_plane

points = make_partitions(4, random_state=0).dataset
rotation = np.array([[0.8, -0.6], [0.6, 0.8]])
X, y = points.X @ rotation, points.y
models = {
    "OCT-1, depth 2": OCT1Classifier(depth=2, min_samples_leaf=1, time_limit=4),
    "OCT-1, depth 3": OCT1Classifier(depth=3, min_samples_leaf=1, time_limit=4),
    "MARGOT, depth 2": MargotClassifier(depth=2, C=[1, 1e4], time_limit=4),
}

figure, axes = plt.subplots(1, 3, figsize=(12, 4.2))
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X, y)
    plot_plane(model.tree_, X, y, ax, legend=False, support=None, margins=name.startswith("MARGOT"))
    ax.set_title(f"{name}: accuracy {model.score(X, y):.0%}")
    print(f"{name}: {model.certificate_.statement}")
figure.tight_layout()
