"""
Thresholds for a rare class
===========================

One patient in twenty is ill. ``class_weight="balanced"`` makes the splits separate the ill from the well; the
probabilities remain those of the data. A threshold on the probability then decides who counts as ill: a low one finds
more of the ill, with more false alarms. ``TunedThresholdClassifierCV`` of scikit-learn chooses it by cross-validation,
and ``margotree predict --threshold ill=0.1`` applies one to a saved tree. Reliable probabilities make the choice
simple: if a missed case costs nine times as much as a false alarm, the threshold is 0.1.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split

from margotree import MargotClassifier

X, y = make_classification(
    6000, 5, n_informative=3, n_redundant=0, weights=[0.95], flip_y=0.02, n_clusters_per_class=1, random_state=2
)
y = np.where(y == 1, "ill", "well")
X, X_test, y, y_test = train_test_split(X, y, train_size=1500, stratify=y, random_state=0)

model = MargotClassifier(depth=2, C=10, class_weight="balanced", time_limit=1)
tuned = TunedThresholdClassifierCV(model, scoring="balanced_accuracy", cv=3).fit(X, y)
tree = tuned.estimator_
ill = tree.predict_proba(X_test)[:, list(tree.classes_).index("ill")]
chosen = 1 - tuned.best_threshold_  # that of scikit-learn is for the last class, "well"
for threshold in (0.5, chosen):
    found, alarms = (100 * np.mean(ill[y_test == label] >= threshold) for label in ("ill", "well"))
    print(f"from {threshold:.2f} on: {found:.0f} % of the ill are found, {alarms:.0f} % of the well are alarmed")

# %%
# Sensitivity and specificity on new samples, for every threshold.

thresholds = np.geomspace(0.002, 1, 200)
sensitivity = [100 * np.mean(ill[y_test == "ill"] >= p) for p in thresholds]
specificity = [100 * np.mean(ill[y_test == "well"] < p) for p in thresholds]
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.plot(thresholds, sensitivity, label="sensitivity: the ill that are found", color="#b5651d")
ax.plot(thresholds, specificity, label="specificity: the well that are not alarmed", color="#4878a8")
for at, name in ((0.5, "more probable"), (chosen, "tuned")):
    ax.axvline(at, color="0.4", linestyle="--", linewidth=1)
    ax.annotate(f"{name}: {at:.2g}", (at, 3), xytext=(-4, 0), textcoords="offset points", size=9, ha="right")
ax.set(xscale="log", xlabel="threshold on the probability of ill", ylabel="% of new samples", ylim=(0, 102))
ticks = ["0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]
ax.set_xticks([float(tick) for tick in ticks], ticks)
ax.minorticks_off()
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
plt.show()
