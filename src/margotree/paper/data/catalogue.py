"""The known facts about each set: shape, classes, names, and sources."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The entry of a set.

    ``counts`` are the numbers of samples of each label without the rows with missing values; ``positive`` are the
    labels that become +1.  ``targets`` and ``ids`` are the possible names (lower case) of the label column and of
    columns that are not features, in a table with a header.  ``fingerprint`` is that of the authors' table; ``uci``
    and ``openml`` are numbers in these repositories; ``shipped`` says whether the set is part of scikit-learn.
    """

    name: str
    stem: str
    counts: dict[str, int]
    positive: frozenset[str]
    class_names: tuple[str, str]
    feature_names: tuple[str, ...]
    fingerprint: str
    targets: tuple[str, ...] = ("class",)
    ids: tuple[str, ...] = ()
    uci: int | None = None
    openml: tuple[int, ...] = ()
    shipped: bool = False

    @property
    def n_samples(self) -> int:
        return sum(self.counts.values())

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @property
    def file_name(self) -> str:
        return f"{self.stem}.csv"


def _numbered(n: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(1, n + 1))


def _cell_nuclei() -> tuple[str, ...]:
    shape = ("radius", "texture", "perimeter", "area", "smoothness")
    measures = (*shape, "compactness", "concavity", "concave points", "symmetry", "fractal dimension")
    return tuple(f"{m} {s}" for s in ("mean", "error", "worst") for m in measures)


def _returns() -> tuple[str, ...]:
    return tuple(f"pulse {j} {part}" for j in range(1, 18) for part in ("re", "im"))


def _regions() -> tuple[str, ...]:
    return tuple(f"region {j} {state}" for j in range(1, 23) for state in ("rest", "stress"))


def _squares() -> tuple[str, ...]:
    rows, columns = ("top", "middle", "bottom"), ("left", "middle", "right")
    return tuple(f"{r}-{c} not {player}" for r in rows for c in columns for player in "xo")


_CYTOLOGY = (
    "clump thickness", "cell size uniformity", "cell shape uniformity", "marginal adhesion",
    "epithelial cell size", "bare nuclei", "bland chromatin", "normal nucleoli", "mitoses",
)  # fmt: skip
_OCEAN = (
    "vconst_corr", "vconst_2", "vconst_3", "vconst_4", "vconst_5", "vconst_7", "ah_corr", "ah_bolus", "slm_corr",
    "efficiency_factor", "tidal_mix_max", "vertical_decay_scale", "convect_corr", "bckgrnd_vdc1", "bckgrnd_vdc_ban",
    "bckgrnd_vdc_eq", "bckgrnd_vdc_psim", "Prandtl",
)  # fmt: skip
_HEART = (
    "age", "sex", "chest pain", "resting pressure", "cholesterol", "fasting sugar", "resting ecg", "max heart rate",
    "exercise angina", "ST depression", "ST slope", "vessels", "thal",
)  # fmt: skip
_VOICE = (
    "MDVP:Fo(Hz)", "MDVP:Fhi(Hz)", "MDVP:Flo(Hz)", "MDVP:Jitter(%)", "MDVP:Jitter(Abs)", "MDVP:RAP", "MDVP:PPQ",
    "Jitter:DDP", "MDVP:Shimmer", "MDVP:Shimmer(dB)", "Shimmer:APQ3", "Shimmer:APQ5", "MDVP:APQ", "Shimmer:DDA",
    "NHR", "HNR", "RPDE", "DFA", "spread1", "spread2", "D2", "PPE",
)  # fmt: skip
_SPENDING = ("Region", "Fresh", "Milk", "Grocery", "Frozen", "Detergents_Paper", "Delicassen")

ENTRIES = (
    Entry(
        name="Breast Cancer D.",
        stem="breast_cancer_diagnostic",
        counts={"B": 357, "M": 212},
        positive=frozenset("M"),
        class_names=("benign", "malignant"),
        feature_names=_cell_nuclei(),
        fingerprint="e2601c1c4c409a48d1867537082e8dd888a01f1cf411bc0e87dfe0f7d511d721",
        targets=("diagnosis", "class"),
        ids=("id",),
        uci=17,
        openml=(1510,),
        shipped=True,
    ),
    Entry(
        name="Breast Cancer W.",
        stem="breast_cancer_wisconsin",
        counts={"2": 444, "4": 239},
        positive=frozenset("4"),
        class_names=("benign", "malignant"),
        feature_names=_CYTOLOGY,
        fingerprint="7d007d59096bb3dd9b6133bb5f6dc07f6f8e51f38fa3a1e55f87c9b23c8ab559",
        ids=("sample_code_number", "id"),
        uci=15,
        openml=(15,),
    ),
    Entry(
        name="Climate Model",
        stem="climate_model",
        counts={"0": 46, "1": 494},
        positive=frozenset("1"),
        class_names=("failure", "success"),
        feature_names=_OCEAN,
        fingerprint="64ae9e05102ef275ca6c2c842a7e847faf9b3466c94b9e16ecb5b9b13a476cf3",
        targets=("outcome", "class"),
        ids=("study", "run"),
        uci=252,
        openml=(40994,),
    ),
    Entry(
        name="Heart Disease C.",
        stem="cleveland",
        counts={"0": 160, "1": 54, "2": 35, "3": 35, "4": 13},
        positive=frozenset("1234"),
        class_names=("healthy", "diseased"),
        feature_names=_HEART,
        fingerprint="ff2615083cae9e207aabf73fd763fd13a0e81fdf620844d9010aa8cdfd6dc356",
        targets=("num", "class"),
        uci=45,
        openml=(49,),
    ),
    Entry(
        name="Ionosphere",
        stem="ionosphere",
        counts={"b": 126, "g": 225},
        positive=frozenset("g"),
        class_names=("bad", "good"),
        feature_names=_returns(),
        fingerprint="747bdfb6e16d2ec78de7813b919f7818b86520d641ad609b24d554fe24adfe18",
        uci=52,
        openml=(59,),
    ),
    Entry(
        name="Parkinsons",
        stem="parkinsons",
        counts={"0": 48, "1": 147},
        positive=frozenset("1"),
        class_names=("healthy", "parkinson"),
        feature_names=_VOICE,
        fingerprint="a55f3ab5eec7d15da7fb57b0035815c6b835b6437565b1152d166191c32e0a14",
        targets=("status", "class"),
        ids=("name",),
        uci=174,
        openml=(1488,),
    ),
    Entry(
        name="Sonar",
        stem="sonar",
        counts={"M": 111, "R": 97},
        positive=frozenset("R"),
        class_names=("mine", "rock"),
        feature_names=tuple(f"band {j}" for j in range(1, 61)),
        fingerprint="35870d8ca889f525aca79a45979aa6921253cc963b2700768f012cf897b684a8",
        uci=151,
        openml=(40,),
    ),
    Entry(
        name="SPECTF H.",
        stem="spectf",
        counts={"0": 55, "1": 212},
        positive=frozenset("1"),
        class_names=("normal", "abnormal"),
        feature_names=_regions(),
        fingerprint="109e154e4feb879335affc4673ac2a22014344cef151ed1fe7ec3a6b5f467a3e",
        targets=("diagnosis", "overall_diagnosis", "class"),
        uci=96,
        openml=(1600, 337),
    ),
    Entry(
        name="Tic-Tac-Toe",
        stem="tic_tac_toe",
        counts={"-1": 332, "1": 626},
        positive=frozenset("1"),
        class_names=("x does not win", "x wins"),
        feature_names=_squares(),
        fingerprint="c6847a2cd7e3bc4f1c76e88e82d99f4500e77b3a1ee3b237db61f18efd74926d",
        uci=101,
        openml=(50,),
    ),
    Entry(
        name="Wholesale",
        stem="wholesale",
        counts={"1": 298, "2": 142},
        positive=frozenset("2"),
        class_names=("hotel or restaurant", "retail"),
        feature_names=_SPENDING,
        fingerprint="b15c3bee79e81449ddb32162f0c79a99aafbb402f64912bbd8d43a9258286ba2",
        targets=("channel", "class"),
        uci=292,
        openml=(1511,),
    ),
    Entry(
        name="fourclass",
        stem="fourclass",
        counts={"-1": 555, "1": 307},
        positive=frozenset("1"),
        class_names=("-1", "+1"),
        feature_names=_numbered(2),
        fingerprint="c718a7d92c66851473cd5f55a4e39473a4e8800f250dc9fd1e16fb75465f2f64",
        targets=("label", "class"),
    ),
)

_BY_NAME = {_key: e for e in ENTRIES for _key in (e.name.lower(), e.stem)}


def dataset_names() -> tuple[str, ...]:
    """The names of the sets for :func:`~margotree.paper.data.load`, as in the paper."""
    return tuple(e.name for e in ENTRIES)


def find(name: str) -> Entry:
    """The entry of a set, by its name in the paper or its file stem."""
    key = str(name).strip().lower()
    if key not in _BY_NAME:
        raise ValueError(f"unknown data set {name!r}; there are: {', '.join(dataset_names())}")
    return _BY_NAME[key]
