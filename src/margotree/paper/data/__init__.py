"""The paper's data sets by name, its split, generated partition sets, and the numbers printed in the paper.

- ``locations``: :func:`load`, which finds, downloads and caches a set; start reading here
- ``dataset``: the classes of a data set and of its training and test part
- ``catalogue``, ``read``, ``download``: the known sets, the parser of their tables, their sources in the network
- ``split``, ``one_hot``, ``synthetic``: the split, another encoding of Tic-Tac-Toe, the generated sets
- ``published``: the tables and hyperparameters of the paper
"""

from margotree.paper.data.catalogue import dataset_names
from margotree.paper.data.dataset import DataError, DataMissingError, Dataset, TrainTest
from margotree.paper.data.locations import load
from margotree.paper.data.one_hot import one_hot_squares
from margotree.paper.data.published import paper_hyperparameters, paper_table, paper_tables
from margotree.paper.data.split import paper_split
from margotree.paper.data.synthetic import Partitions, make_partitions

__all__ = [
    "DataError",
    "DataMissingError",
    "Dataset",
    "Partitions",
    "TrainTest",
    "dataset_names",
    "load",
    "make_partitions",
    "one_hot_squares",
    "paper_hyperparameters",
    "paper_split",
    "paper_table",
    "paper_tables",
]
