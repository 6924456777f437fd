"""One fit of the exact engine in many processes: open nodes are sent as tasks of Dask (docs/cluster.md).

Start with :mod:`~margotree.engines.distributed.search`, the search in the process of the fit.

- ``engine``: the engine ``bnb`` with a cluster.
- ``search``: the queue of open nodes, and the tasks made of them.
- ``task``: what a worker does with a task.
- ``serialization``: the problem and its search as data for other processes.
- ``workers``: the workers of a cluster: warm-up, tasks and losses.
- ``connection``: the client of a scheduler, and processes on this machine.
- ``transfer_volume``: counts of the data sent and received.
"""
