"""The paper's data sets by name, its split, its generators of partitions, and the numbers it prints."""

from margotree.data.catalogue import dataset_names
from margotree.data.dataset import DataError, Dataset, TrainTest
from margotree.data.paper import paper_hyperparameters, paper_table, paper_tables
from margotree.data.places import load
from margotree.data.split import paper_split

__all__ = [
    "DataError",
    "Dataset",
    "TrainTest",
    "dataset_names",
    "load",
    "paper_hyperparameters",
    "paper_split",
    "paper_table",
    "paper_tables",
]
