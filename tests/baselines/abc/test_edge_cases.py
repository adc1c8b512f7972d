"""Cases in which counting or fitting alone would mislead: constant features, weightless draws, several empty models."""

import numpy as np
from numpy.testing import assert_allclose

import deepbf
from deepbf.baselines import abc_epsilon, abc_logistic


def normal_beside_a_constant(name: str, mean: float) -> deepbf.Model:
    def simulate(rng: np.random.Generator, size: int) -> np.ndarray:
        return np.stack([rng.normal(mean, 1.0, size), np.full(size, 0.1)], axis=1)

    return deepbf.Model(name, simulator=simulate)


def test_a_constant_feature_says_nothing_wherever_the_observed_one_lies() -> None:
    models = [normal_beside_a_constant("0", 0.0), normal_beside_a_constant("1", 1.0)]
    result = abc_logistic(models, [[0.5, 0.1], [0.5, 0.3]], num_simulations=20_000, num_kept=777, num_splits=2)
    assert (np.abs(result.log_bf) < 1).all()


def test_draws_without_weight_do_not_hide_a_bound() -> None:
    rare = deepbf.Model("rare", simulator=lambda rng, size: rng.binomial(1, 0.2, (size, 1)))
    never = deepbf.Model("never", simulator=lambda rng, size: np.zeros((size, 1)))
    result = abc_logistic([rare, never], [[1]], num_simulations=4000, num_kept=1000, num_splits=2)
    assert result.diagnostics["bound"].all()
    assert any("bound" in warning for warning in result.warnings)
    assert result.log_bf_error[0] > 1


def test_prior_odds_do_not_decide_between_models_without_accepted_draws() -> None:
    models = [
        deepbf.Model(str(mean), simulator=lambda rng, size, mean=mean: rng.normal(mean, 1.0, (size, 1)))
        for mean in (0.0, 1.0, 9.0)
    ]
    result = abc_epsilon(models, [[9.0]], epsilon=0.5, num_simulations=2000, prior_probs=[0.45, 0.05, 0.5])
    assert result.diagnostics["accepted"][0, :2].sum() == 0
    assert_allclose(result.log_bf, 0.0)
