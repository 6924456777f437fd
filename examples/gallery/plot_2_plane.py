"""
Why splits are trained together
===============================

Four regions, two classes. If the splits are trained one after the other (left), the root is the best single line, and
no splits below it are good. If they are trained together (right), the root alone separates nothing, but its children
then classify almost all samples.
"""

import matplotlib.pyplot as plt

from margotree import LocalSVMTreeClassifier, MargotClassifier
from margotree.paper.data import make_partitions
from margotree.plots import plot_plane

points = make_partitions(4, random_state=0).dataset
X, y = points.X, points.y

greedy = LocalSVMTreeClassifier(depth=2, C=[1, 1e4]).fit(X, y)
together = MargotClassifier(depth=2, C=[1, 1e4], time_limit=10).fit(X, y)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6))
for ax, tree, name in zip(axes, (greedy, together), ("one after the other", "together"), strict=True):
    plot_plane(tree.tree_, X, y, ax, legend=False)
    ax.set_title(f"{name}: accuracy {tree.score(X, y):.0%}")
figure.tight_layout()

# %%
print(together.certificate_)
