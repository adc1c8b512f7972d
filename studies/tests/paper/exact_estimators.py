"""Estimators that are exact but for a constant, in place of trained ones: what is drawn from them is known."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from deepbf_studies.paper import toy_answers, variant_maps
from deepbf_studies.paper.running import results_of
from deepbf_studies.paper.step import Cache
from deepbf_studies.paper.target import Drawing, Target
from deepbf_studies.paper.toy_answers import Settings
from deepbf_studies.problems import load

OFFSET = 0.25
TINY = Settings(
    fnn_steps=1,
    deepset_steps=1,
    our_steps=1,
    our_range_steps=1,
    num_values=5,
    num_datasets=40,
    abc_simulations=400,
    abc_strata=4,
    abc_kept_per_stratum=20,
    abc_kept=40,
)


def exact_of(models: Any) -> Any:
    """The exact log Bayes factor, at any number of observations, of the study with these models."""
    [study] = [study for study in map(load, toy_answers.STUDIES) if study.models[0].name == models[0].name]
    return study.exact_log_bf


class ExactVariants:
    """The variants of two observations by their definitions, each one off by the constant."""

    def __init__(self, models: Any) -> None:
        self.exact = exact_of(models)
        self.estimator = SimpleNamespace(record=SimpleNamespace(seconds=4.0))

    def partial(self, data: Any, training: int) -> SimpleNamespace:
        return self.off(self.exact(data) - self.exact(data[:, :training]))

    def posterior(self, data: Any) -> SimpleNamespace:
        return self.off(self.exact(np.hstack([data, data])) - self.exact(data))

    def inverses(self, data: Any) -> Any:
        return np.stack([self.exact(data) - self.exact(data[:, [k]]) for k in range(2)])

    def geometric(self, data: Any, num_training: int) -> SimpleNamespace:
        assert num_training == 1
        return self.off(self.inverses(data).mean(axis=0))

    def arithmetic(self, data: Any, num_training: int) -> SimpleNamespace:
        assert num_training == 1
        return self.off(np.log(np.exp(self.inverses(data)).mean(axis=0)))

    def off(self, log_bf: Any) -> SimpleNamespace:
        return SimpleNamespace(log_bf=log_bf + OFFSET)


def replace_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put exact estimators, and tiny settings under the name "tiny", where training would be."""

    def train(models: Any, structure: str, method: str, num_steps: int, seed: int) -> SimpleNamespace:
        exact = exact_of(models)
        return SimpleNamespace(log_bf=lambda data: exact(data) + OFFSET, record=SimpleNamespace(seconds=3.0))

    monkeypatch.setattr(toy_answers, "train", train)
    monkeypatch.setattr(variant_maps, "fit_variants", lambda models, *_, **__: ExactVariants(models))
    monkeypatch.setitem(toy_answers.SCALES, "tiny", TINY)


def drawn(target: Target, cache: Cache, scale: str = "tiny") -> Drawing:
    """What a target draws, computed through a cache."""
    return target.draw(results_of(target.plan(scale), cache))
