"""
Categories and missing values: a pipeline
=========================================

Trees of hyperplanes need numbers. A pipeline imputes missing values and encodes categories, and the tree shows the
names of its output columns.
"""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from margotree import HFSMargotClassifier

rng = np.random.default_rng(0)
people = pd.DataFrame(
    {
        "age": rng.integers(20, 80, 150).astype(float),
        "bmi": rng.uniform(18, 40, 150).round(1),
        "smokes": rng.choice(["no", "yes"], 150),
    }
)
ill = people["age"] + 2 * people["bmi"] + 15 * (people["smokes"] == "yes") + rng.normal(0, 8, 150) > 115
people.loc[rng.choice(150, 10), "bmi"] = np.nan

prepare = make_column_transformer(
    (SimpleImputer(strategy="median"), ["age", "bmi"]),
    (OneHotEncoder(drop="if_binary", sparse_output=False), ["smokes"]),
    verbose_feature_names_out=False,
)
model = make_pipeline(
    prepare.set_output(transform="pandas"), HFSMargotClassifier(depth=2, budget=3, C=100, time_limit=3)
)
model.fit(people, np.where(ill, "ill", "well"))
model[-1].tree_.plot()
