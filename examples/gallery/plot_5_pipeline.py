"""
Categories and missing values
=============================

A data frame with words and missing cells can be fitted as it is. The budget counts columns, and the rules name them.
"""

import numpy as np
import pandas as pd

from margotree import HFSMargotClassifier

rng = np.random.default_rng(0)
people = pd.DataFrame(
    {
        "age": rng.integers(20, 80, 150).astype(float),
        "bmi": rng.uniform(18, 40, 150).round(1),
        "smokes": rng.choice(["no", "yes"], 150),
        "town": rng.choice(["Rome", "Oslo", "Lima"], 150),
    }
)
ill = people["age"] + 2 * people["bmi"] + 15 * (people["smokes"] == "yes") + rng.normal(0, 8, 150) > 115
people.loc[rng.choice(150, 10), "bmi"] = np.nan

model = HFSMargotClassifier(depth=2, budget=3, C=100, time_limit=3)
model.fit(people, np.where(ill, "ill", "well"))
model.tree_.plot()
