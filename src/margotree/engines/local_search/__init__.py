"""The local search: good trees of any size, without a bound (docs/local_search.md).

Start reading at ``descent`` (one descent) and ``search`` (many of them).

- ``training_data``: the problem as arrays, subsets of its samples, and trees with their objective
- ``node_samples``: the samples of one node, with their penalties and subtree costs
- ``initial_splits``: the initialisation strategies of a node
- ``support_search``: an SVM with a budget or feature penalties
- ``upper_nodes``: a better hyperplane for an upper node while its subtrees are fixed
- ``descent``: train one node after the other until the objective stops falling
- ``annealing``: soft trees
- ``starts``: the starts of descents, and statistics of which kind of start improves the best tree
- ``start_screening``: try several starts on few samples, continue with the best
- ``subtrees``: starts that train a single subtree of a good tree
- ``restart_pool``: new starts that are compared among themselves
- ``subsampling``: the subsamples of successive halving
- ``search``: descents from many starts, in threads
- ``sparsification``: the search for problems with small feature penalties
- ``kernels``: the compiled functions
"""
