"""The node problem: an SVM in which some samples must stay on their sides, with few features if required.

- `svm`: solves one node problem with all features; start reading here
- `best_subset`: chooses the features under a budget, by branch and bound
- `kernels`: the compiled functions of both
"""
