"""The paper's data sets by name, its split, its generators of partitions, and the numbers it prints."""

from margotree.paper.data.catalogue import dataset_names
from margotree.paper.data.dataset import DataError, Dataset, TrainTest
from margotree.paper.data.locations import load
from margotree.paper.data.one_hot import one_hot_squares
from margotree.paper.data.published import paper_hyperparameters, paper_table, paper_tables
from margotree.paper.data.split import paper_split
from margotree.paper.data.synthetic import Partitions, make_partitions

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
