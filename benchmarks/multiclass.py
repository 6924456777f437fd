"""Test accuracy of multi-class MARGOT beside CART of the same depth (the table of docs/multiclass.md).

    python benchmarks/multiclass.py --data FOLDER [--sets iris wine ...] [--starts N]

The folder holds one CSV per set with the label in its last column.  A quarter of the rows is for testing; a quarter of
the others is for the choice of C.  The local search stops after a number of starts, so that the trees do not depend on
the machine; seconds are processor time.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from margotree import MargotClassifier

#: C of the root, and its factor from level to level.
CHOICES = ((1.0, 10.0), (0.1, 10.0), (10.0, 3.0), (1.0, 1.0))
SETS = ("iris", "wine", "vehicle", "segment", "vowel", "satimage", "penbased")


def model(depth: int, choice: tuple[float, float], starts: int) -> MargotClassifier:
    C = [choice[0] * choice[1] ** level for level in range(depth)]
    return MargotClassifier(depth=depth, C=C, engine="alternating", node_limit=starts, time_limit=None)


def measure(path: Path, starts: int, choices: tuple[tuple[float, float], ...]) -> str:
    table = pd.read_csv(path)
    X, y = table.iloc[:, :-1].to_numpy(np.float64), table.iloc[:, -1].to_numpy()
    depth = 3 if len(np.unique(y)) <= 8 else 4
    train, test, y_train, y_test = train_test_split(X, y, random_state=1, stratify=y)
    part, rest, y_part, y_rest = train_test_split(train, y_train, random_state=1, stratify=y_train)
    began = time.process_time()
    scores = [model(depth, choice, starts).fit(part, y_part).score(rest, y_rest) for choice in choices]
    chosen = choices[int(np.argmax(scores))]
    fitted = model(depth, chosen, starts).fit(train, y_train)
    seconds = time.process_time() - began
    cart = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(train, y_train).score(test, y_test)
    words = f"{chosen[0]:g}, times {chosen[1]:g}"
    return (
        f"| {path.stem} | {len(y)} | {len(np.unique(y))} | {depth} | {100 * fitted.score(test, y_test):.1f} "
        f"| {100 * cart:.1f} | {words} | {seconds:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--starts", type=int, default=12)
    parser.add_argument("--choices", type=int, default=len(CHOICES), help="number of values of C to choose from")
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    print("| set | rows | classes | depth | MARGOT, % | CART, % | C of the root, per level | seconds |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |", flush=True)
    for name in args.sets:
        print(measure(args.data / f"{name}.csv", args.starts, CHOICES[: args.choices]), flush=True)


if __name__ == "__main__":
    main()
