"""Margin optimal trees of all tasks as mixed-integer programs, and one adapter per MIP solver.

- `engine`: the engine of all solvers for MARGOT, HFS and SFS; start reading here
- `losses`: the losses of a task and their variables
- `formulation`: the model of a problem; `constants`: its big-M constants; `normal_form`: which of them a tree touches
- `model`: the solver-independent description of a mixed-integer program, and a solver's result
- `adapter`: the interface to a solver, and how its run is limited
- `result`: from a solver's result to a tree and a valid bound
- `scip`, `highs`, `gurobi`, `cplex`, `copt`: the adapters
"""
