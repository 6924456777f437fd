"""
Reliable probabilities
======================

The class shares of a leaf are few different numbers, and often 0 or 1 where the tree fits its training data closely.
The default rule of ``predict_proba`` rises with the decision value and is fitted to cross-validated margins.
Points on the diagonal are reliable: of the samples with probability 0.8, 80 % have the class.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from margotree import MargotClassifier
from margotree.estimators import FewSplitsWarning

warnings.simplefilter("ignore", FewSplitsWarning)  # two splits suffice
X, y = make_classification(2000, 8, n_informative=4, n_clusters_per_class=2, flip_y=0.1, random_state=3)
y = np.where(y == 1, "ill", "healthy")
X, X_test, y, y_test = train_test_split(X, y, train_size=300, random_state=0)

figure, axes = plt.subplots(1, 3, figsize=(13, 4.6))
for ax, rule in zip(axes, ("leaf", "smoothed", "margin"), strict=True):
    tree = MargotClassifier(depth=3, C=100, proba=rule, node_limit=1).fit(X, y)
    tree.plot_calibration(X_test, y_test, ax)
    ax.set_xlabel(f'predicted probability, proba="{rule}", log-loss {log_loss(y_test, tree.predict_proba(X_test)):.2f}')
figure.tight_layout()
