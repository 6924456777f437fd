"""MM-SVM-OCT, the max-margin tree of Blanco, Japon and Puerto.

- :mod:`~margotree.baselines.mmsvm.problem`: the problem and its value function; start reading here
- :mod:`~margotree.baselines.mmsvm.polish`: the best tree with a given routing
- :mod:`~margotree.baselines.mmsvm.start`: the first tree, from Local SVM
- :mod:`~margotree.baselines.mmsvm.miqcp`: the mixed-integer model
- :mod:`~margotree.baselines.mmsvm.engine`: the engine that solves the model
- :mod:`~margotree.baselines.mmsvm.estimators`: the scikit-learn classifier
"""
