"""The optimum of small problems, computed without any code, solver or scaling of the package.

:func:`optimum` tries every routing that a hyperplane can make and returns an interval that contains the optimal
objective.  The hyperplanes and multipliers come from an interior point solver (Clarabel); what is claimed of them is
computed in exact integers, so a bad result of the solver makes the interval wide, but never wrong.  Only
:mod:`oracle.judge`, which compares the claims of the engine with the interval, imports the package.
"""
