"""One hard fit searched by many processes: open nodes travel as tasks of Dask (docs/cluster.md)."""
