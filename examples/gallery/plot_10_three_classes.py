"""
More than two classes
=====================

Three kinds of iris in two splits. An upper split says which classes it should part (the squares at the foot of its
card); the last one has two labels. The certificate holds for all trees of this depth.
"""

from sklearn.datasets import load_iris

from margotree import MargotClassifier

iris = load_iris(as_frame=True)
kinds = iris.target_names[iris.target]

tree = MargotClassifier(depth=2, C=1, time_limit=20).fit(iris.data, kinds)
print(tree.export_text())
print(tree.certificate_)
tree.plot(title="Three kinds of iris")

# %%
# One score per class, the largest is the label's:
print(tree.classes_)
print(tree.decision_function(iris.data[::50]).round(2))
