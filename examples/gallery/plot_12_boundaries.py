"""
Decision boundaries and what features contribute
================================================

The tools of ``sklearn.inspection`` work with the trees: the first figure has the probability of one class over two
measurements. The second one has what each feature contributes to the probability for one sample. Contributions add up
exactly: the share of the class in the training data plus all bars is ``predict_proba``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.inspection import DecisionBoundaryDisplay

from margotree import MargotClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = np.where(y == 0, "malignant", "benign")
names = ["worst radius", "worst texture"]
plane = MargotClassifier(depth=1, C=100, round="auto").fit(X[names], y)
tree = MargotClassifier(C=100, budget=2, time_limit=3, round="auto").fit(X, y)

figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
DecisionBoundaryDisplay.from_estimator(
    plane, X[names], response_method="predict_proba", class_of_interest="malignant", ax=ax, cmap="RdYlBu_r",
    vmin=0, vmax=1, alpha=0.6,
)  # fmt: skip
DecisionBoundaryDisplay.from_estimator(
    plane, X[names], response_method="decision_function", plot_method="contour", levels=[0], ax=ax, colors="black"
)
for label, marker in (("benign", "o"), ("malignant", "^")):
    ax.scatter(*X[names][y == label].to_numpy().T, s=10, marker=marker, c="0.25", label=label)
ax.set(xlabel=names[0], ylabel=names[1], title="probability of malignant")
ax.legend(loc="lower right")

# %%
# The path of one sample in words, and the contributions of its features.

patient = X.iloc[[73]]
print(tree.tree_.path(patient.iloc[0]))
found, k = tree.attributions(patient), list(tree.classes_).index("malignant")
used = np.flatnonzero(found.values[0, :, k])
used = used[np.argsort(np.abs(found.values[0, used, k]))]
figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.barh([X.columns[j] for j in used], 100 * found.values[0, used, k], color="#4878a8")
ax.axvline(0, color="black", linewidth=0.8)
share, probability = 100 * found.base[k], 100 * tree.predict_proba(patient)[0, k]
ax.set(
    xlabel="percentage points",
    title=f"from {share:.0f} % of all samples to a probability of {probability:.0f} %",
)
print("importances:", {X.columns[j]: round(float(tree.feature_importances_[j]), 2) for j in tree.selected_features_})
plt.show()
