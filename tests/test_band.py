"""``band="auto"``: what it stands for, and who says so."""

import numpy as np
import pytest

from margotree import HFSMargotClassifier, LocalSVMTreeClassifier, MargotClassifier, load
from margotree.estimators.automatic_band import auto_band, resolve_band
from margotree.solution import Certificate, VerificationError


def some_samples(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)


def test_the_width_shrinks_with_the_samples_between_its_limits():
    widths = [auto_band(n) for n in (1, 10, 100, 1000, 10**4, 10**6)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == 1e-3 and widths[2] == pytest.approx(1e-4) and widths[-1] == 1e-7


def test_a_number_is_left_alone_and_other_words_are_refused():
    assert resolve_band(0.5, 10**6) == 0.5
    with pytest.raises(ValueError, match="positive finite number or 'auto', got 'thin'"):
        MargotClassifier(band="thin").fit(*some_samples())


@pytest.mark.parametrize("classifier", [MargotClassifier, HFSMargotClassifier, LocalSVMTreeClassifier])
def test_tree_file_certificate_and_verify_name_the_width(classifier, tmp_path):
    X, y = some_samples()
    X, y = np.vstack([X, X]), np.concatenate([y, y])  # repeated samples do not narrow the band
    model = classifier(C=10.0, time_limit=5, node_limit=200).fit(X, y)
    assert model.band == "auto"
    model.save(tmp_path / "tree.json")
    tree = load(tmp_path / "tree.json")
    wanted = 1 / 60**2
    assert tree.eps == tree.certificate.eps == tree.terms["eps"] == wanted
    assert f"splits: {wanted:g}" in str(tree.certificate)
    assert f"{wanted:g}" in str(tree.verify(X, y))


def test_a_certificate_for_another_width_is_caught():
    X, y = some_samples()
    model = LocalSVMTreeClassifier(C=10.0).fit(X, y)
    tree = model.tree_
    object.__setattr__(tree, "certificate", tree.certificate.with_(eps=1e-9))
    with pytest.raises(VerificationError, match="is about a band of 1e-09"):
        tree.verify(X, y)


def test_certificates_of_earlier_files_have_no_width():
    record = LocalSVMTreeClassifier().fit(*some_samples()).certificate_.to_dict()
    del record["eps"]
    old = Certificate.from_dict(record)
    assert np.isnan(old.eps) and "band" not in str(old)


def test_the_papers_experiments_name_its_width():
    from margotree.paper.experiments.case import MODELS_WITH_EPS, Case
    from margotree.paper.experiments.train import settings

    for model in MODELS_WITH_EPS:
        assert settings(Case(data="x", model=model, params=()))["band"] == 1e-3
    assert "band" not in settings(Case(data="x", model="oct_1", params=()))


def test_the_former_name_of_the_band_warns_and_works():
    X, y = some_samples()
    expected = MargotClassifier(band=0.01, node_limit=5).fit(X, y)
    for cls in (MargotClassifier, LocalSVMTreeClassifier):
        with pytest.warns(FutureWarning, match="it is called band"):
            model = cls(eps=0.01).fit(X, y)
        assert model.tree_.eps == expected.tree_.eps == 0.01
    assert "eps" not in repr(expected)
