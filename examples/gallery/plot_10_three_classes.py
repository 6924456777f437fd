"""
More than two classes
=====================

Three species of iris, two splits. The squares at the foot of an upper split show which classes it should separate; the
last split has two labels. The certificate is valid for all trees of this depth.
"""

from sklearn.datasets import load_iris

from margotree import MargotClassifier

iris = load_iris(as_frame=True)
species = iris.target_names[iris.target]

tree = MargotClassifier(depth=2, C=1, time_limit=20).fit(iris.data, species)
print(tree.export_text())
print(tree.certificate_)
tree.plot(title="Three species of iris")

# %%
# One score per class; the predicted class has the largest one:
print(tree.classes_)
print(tree.decision_function(iris.data[::50]).round(2))
