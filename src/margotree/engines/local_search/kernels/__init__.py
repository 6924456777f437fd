"""The compiled functions of the local search; start reading at ``reduced_problem``.

- ``svm``: a linear SVM by Newton steps on the smoothed hinge loss
- ``curvature``: the Hessian of that SVM, its factorisation and the Newton step
- ``reduced_problem``: the problem of an upper node while its subtrees are fixed: value, thresholds, searches on lines
- ``line_search``: the exact minimum of that problem on a line
- ``edge_directions``: directions along which the samples near the hyperplane keep their values
- ``sorting``: the sort of the events of a line
- ``subtree_costs``: the loss of each sample in a subtree; the best split of a single feature by the Gini impurity
- ``soft_tree``: mini-batch gradient steps for a tree whose splits send every sample both ways
"""
