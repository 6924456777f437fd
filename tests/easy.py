"""The table ``easy.csv``: 500 patients, four measurements, whether they smoke, whether they died."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = ("age", "bmi", "crp", "hb", "smoker", "died")


def easy_rows(n: int = 500, seed: int = 0) -> list[dict[str, Any]]:
    """The rows; the chance to die grows with age, crp and smoking and falls with hb."""
    rng = np.random.default_rng(seed)
    age, bmi = rng.integers(20, 90, n), rng.normal(27, 4, n).round(1)
    crp, hb = rng.gamma(2, 8, n).round(1), rng.normal(13.5, 1.5, n).round(1)
    smoker = rng.choice(["yes", "no"], n, p=[0.3, 0.7])
    risk = 0.05 * age + 0.04 * crp - 0.3 * hb + 0.8 * (smoker == "yes") + rng.normal(0, 0.7, n)
    died = np.where(risk > np.quantile(risk, 0.72), "yes", "no")
    columns = (age.tolist(), bmi.tolist(), crp.tolist(), hb.tolist(), smoker.tolist(), died.tolist())
    return [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]


def write_rows(path: Path, rows: list[dict[str, Any]], delimiter: str = ",") -> str:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return str(path)
