"""Draw the plots of the first page (``make plots``): the tree of examples/demo.py, and its certificate over time.

python docs/make_plots.py                       # both; the tree after 60 s
python docs/make_plots.py progress --seconds 30
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from margotree import HFSMargotClassifier, MargotClassifier
from margotree.plots import plot_progress
from margotree.progress import recording

IMAGES = Path(__file__).parent / "images"


def draw_tree(seconds: float) -> None:
    X, target = load_breast_cancer(return_X_y=True, as_frame=True)
    y = target.map({0: "malignant", 1: "benign"})
    X_train, _, y_train, _ = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    tree = HFSMargotClassifier(depth=2, C=100, budget=2, time_limit=seconds).fit(X_train, y_train)
    tree.tree_.plot().figure.savefig(IMAGES / "tree.png", dpi=110, bbox_inches="tight")
    print(tree.export_text())
    print(tree.certificate_)


def draw_progress(seconds: float) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    with recording() as events:
        MargotClassifier(depth=2, C=10, time_limit=seconds).fit(X[:, :10], y)
    plot_progress(events).figure.savefig(IMAGES / "progress.png", dpi=110, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plots", nargs="*", choices=["tree", "progress"], default=["tree", "progress"])
    parser.add_argument("--seconds", type=float, default=60, help="time limit of each fit")
    args = parser.parse_args()
    for plot in args.plots:
        {"tree": draw_tree, "progress": draw_progress}[plot](args.seconds)


if __name__ == "__main__":
    main()
