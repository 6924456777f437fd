"""The optimum of small problems, known by means that share nothing with the package: no code, no solver, no scale.

:func:`optimum` tries every routing that a hyperplane can make and returns an interval that contains the optimal
objective.  The hyperplanes and multipliers come from an interior point solver (Clarabel); what is claimed of them is
computed in exact integers, so a bad answer of the solver makes the interval wide, never wrong.  Only
:mod:`oracle.judge`, which runs the engine to hold its claims against that, knows the package.
"""
