"""The problem of one tree node: an SVM in which some samples must stay on their sides, with few features if required.

`svm` solves one node problem with all features or with feature penalties. `best_subset` chooses the features under a
budget. `kernels` holds the compiled functions of both. Start reading with `svm.py`.
"""
