"""The paper's data sets by name, its split, its generators of partitions, and the numbers it prints."""

from margotree.data.catalogue import dataset_names
from margotree.data.dataset import DataError, Dataset, TrainTest
from margotree.data.encode import one_hot_squares
from margotree.data.paper import paper_hyperparameters, paper_table, paper_tables
from margotree.data.partitions import Partitions, make_partitions
from margotree.data.places import load
from margotree.data.split import paper_split

__all__ = [
    "DataError",
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
