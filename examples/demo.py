"""A readable tree for breast cancer biopsies, with a certificate of its quality.

Thirty measurements of cell nuclei, 569 biopsies, two diagnoses; the table is part of scikit-learn.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from margotree import HFSMargotClassifier

X, target = load_breast_cancer(return_X_y=True, as_frame=True)
y = target.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)

# Two features per split are easy to read; four-fold cross-validation chooses C = 100 among 1, 10, 100 and 1000.
tree = HFSMargotClassifier(depth=2, C=100, budget=2, time_limit=60, verbose=1).fit(X_train, y_train)

print("\nThe tree: a sample that meets the rule goes into the first block, others into the block after 'else'.\n")
print(tree.export_text())
print("\nThe certificate\n")
print(tree.certificate_)
train, test = tree.score(X_train, y_train), tree.score(X_test, y_test)
print(f"\naccuracy {train:.1%} on the training samples and {test:.1%} on new samples")
