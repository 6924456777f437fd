"""Fits that the time limit cuts off, on any machine."""

import dataclasses

from margotree import MargotClassifier
from margotree.solution import CUT_OFF


def cutting(monkeypatch, is_cut_off):
    """Have the fits for which ``is_cut_off(estimator)`` say that the time limit cut them off."""
    fit = MargotClassifier.fit

    def fitted(self, *given, **more):
        fit(self, *given, **more)
        if is_cut_off(self):
            self.certificate_ = self.certificate_.with_(warnings=(CUT_OFF,), stopped="time limit")
            self.tree_ = dataclasses.replace(self.tree_, certificate=self.certificate_)
        return self

    monkeypatch.setattr(MargotClassifier, "fit", fitted)
