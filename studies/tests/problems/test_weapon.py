"""The weapon study: probabilities by hand, simulators against probabilities, sums against people one by one."""

import pickle
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from deepbf.baselines.integration import integrate
from deepbf_studies import problems
from deepbf_studies.problems import weapon

NAMES = ("weapon-sum", "weapon-full")
LEAST_P_VALUE = 1e-6
# Worked out with pencil and paper from the table of the study at A = 1/2, B = 1/4, C = 1/5.
POINT = np.array([0.5, 0.25, 0.2])
BY_HAND = {
    "pd": [0.7, 0.5, 0.3, 0.9, 0.4, 0.8],
    "stroop": [0.7, 0.4, 0.2, 0.9, 0.4, 0.8],
}


@pytest.mark.parametrize("tree", ["pd", "stroop"])
def test_cell_probabilities_by_hand(tree: str) -> None:
    np.testing.assert_allclose(weapon.correct_probs(POINT, tree=tree), BY_HAND[tree], rtol=1e-14)
    log_probs = weapon.LOG_PROBS[tree](*POINT)
    np.testing.assert_allclose(np.exp(log_probs.wrong), 1 - np.array(BY_HAND[tree]), rtol=1e-14)


@pytest.mark.parametrize("tree", ["pd", "stroop"])
def test_cell_probabilities_follow_the_printed_table(tree: str) -> None:
    A, B, C = params = np.random.default_rng(1).random((3, 500))
    table = {
        "pd": [
            C + (1 - C) * (A + (1 - A) * B),
            C + (1 - C) * (1 - A) * (1 - B),
            C + (1 - C) * (1 - A) * B,
            C + (1 - C) * (A + (1 - A) * (1 - B)),
            C + (1 - C) * B,
            C + (1 - C) * (1 - B),
        ],
        "stroop": [
            A + (1 - A) * (C + (1 - C) * B),
            (1 - A) * (C + (1 - C) * (1 - B)),
            (1 - A) * (C + (1 - C) * B),
            A + (1 - A) * (C + (1 - C) * (1 - B)),
            C + (1 - C) * B,
            C + (1 - C) * (1 - B),
        ],
    }[tree]
    log_probs = weapon.LOG_PROBS[tree](*params)
    np.testing.assert_allclose(np.exp(log_probs.correct), table, rtol=1e-13)
    np.testing.assert_allclose(np.exp(log_probs.wrong), 1 - np.array(table), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("corner", [[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]])
@pytest.mark.parametrize("tree", ["pd", "stroop"])
def test_corners_of_the_cube_can_be_simulated(tree: str, corner: list[int]) -> None:
    probs = weapon.correct_probs(np.array(corner, dtype=float), tree=tree)
    assert set(probs) <= {0.0, 1.0}
    params = np.array([corner], dtype=float)
    data = weapon.simulate_sum(np.random.default_rng(2), params, tree=tree, num_trials=5)
    np.testing.assert_array_equal(data[0, :6], 5 * probs)


@pytest.mark.parametrize("tree", ["pd", "stroop"])
def test_simulators_follow_the_probabilities(tree: str) -> None:
    params = np.tile(POINT, (4000, 1))
    rng = np.random.default_rng(3)
    sums = weapon.simulate_sum(rng, params, tree=tree, num_trials=72)
    full = weapon.simulate_full(rng, params, tree=tree, num_obs=2, num_trials=36)
    assert sums.shape == (4000, 12)
    assert full.shape == (4000, 2, 6)
    np.testing.assert_array_equal(sums[:, :6] + sums[:, 6:], 72)
    for counts in (sums[:, :6], full.sum(axis=1)):
        for cell, prob in enumerate(BY_HAND[tree]):
            expected = 4000 * stats.binom.pmf(np.arange(73), 72, prob)
            common = expected > 10
            observed = np.bincount(counts[:, cell], minlength=73)
            pooled, anticipated = (np.append(x[common], x[~common].sum()) for x in (observed, expected))
            assert stats.chisquare(pooled, anticipated).pvalue > LEAST_P_VALUE


def test_log_likelihoods_are_binomial() -> None:
    sum_models = problems.load("weapon-sum", num_obs=2).models
    full_models = problems.load("weapon-full", num_obs=2).models
    for tree, of_sum, of_full in zip(["pd", "stroop"], sum_models, full_models, strict=True):
        assert of_sum.log_likelihood is not None
        assert of_full.log_likelihood is not None
        params, data = of_full.simulate(5, seed=4)
        probs = weapon.correct_probs(np.asarray(params), tree=tree)
        by_person = stats.binom.logpmf(data, 36, probs[:, None]).sum(axis=(1, 2))
        np.testing.assert_allclose(of_full.log_likelihood(params, data), by_person, rtol=1e-11)
        sums = weapon.sum_over_people(data, num_trials=36)
        summed = stats.binom.logpmf(sums[:, :6], 72, probs).sum(axis=1)
        np.testing.assert_allclose(of_sum.log_likelihood(params, sums), summed, rtol=1e-11)
        # One data set for all parameters.
        np.testing.assert_allclose(of_sum.log_likelihood(params, sums[2])[2], summed[2], rtol=1e-11)
        np.testing.assert_allclose(of_full.log_likelihood(params, data[2])[2], by_person[2], rtol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_densities_take_traced_parameters_and_data(name: str) -> None:
    for model in problems.load(name, num_obs=3).models:
        assert model.log_likelihood is not None
        assert model.log_prior is not None
        params, data = model.simulate(4, seed=5)
        expected = model.log_likelihood(params, data)
        value = jax.jit(model.log_likelihood)(jnp.asarray(params), jnp.asarray(data))
        np.testing.assert_allclose(value, expected, rtol=1e-4)
        gradient = jax.grad(model.log_likelihood)(jnp.asarray(POINT), data[0])
        step = 1e-6
        for j in range(3):
            up, down = POINT + step * np.eye(3)[j], POINT - step * np.eye(3)[j]
            slope = (model.log_likelihood(up, data[0]) - model.log_likelihood(down, data[0])) / (2 * step)
            assert gradient[j] == pytest.approx(slope, rel=1e-3, abs=1e-3)
        outside = jnp.array([[0.5, 0.5, 1.0], [-0.1, 0.5, 0.5], [0.5, 0.5, 0.5]])
        np.testing.assert_array_equal(
            np.isfinite(jax.jit(model.log_likelihood)(outside, data[0])), [False, False, True]
        )
        np.testing.assert_array_equal(model.log_prior(outside), [-np.inf, -np.inf, 0.0])
        assert jnp.isfinite(jax.grad(model.log_likelihood)(outside[0], data[0])).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_weapon_study_is_complete(name: str) -> None:
    study = problems.load(name)
    assert (study.name, study.num_obs) == (name, 42)
    assert study.structure == {"weapon-sum": "vector", "weapon-full": "exchangeable"}[name]
    assert [model.name for model in study.models] == ["process dissociation", "Stroop"]
    assert all(model.transform == "unit" for model in study.models)
    assert name in problems.names()
    data = study.models[0].simulate(2, seed=6).data
    assert data.shape == {"weapon-sum": (2, 12), "weapon-full": (2, 42, 6)}[name]
    copied = pickle.loads(pickle.dumps(study))
    np.testing.assert_array_equal(copied.exact_log_bf(data), study.exact_log_bf(data))


def test_the_toy_studies_keep_their_default() -> None:
    assert problems.load("data-3").num_obs == 128


def test_sums_and_people_give_the_same_bayes_factor() -> None:
    full, sums = problems.load("weapon-full", num_obs=5), problems.load("weapon-sum", num_obs=5)
    data = np.concatenate([model.simulate(4, seed=7).data for model in full.models])
    totals = weapon.sum_over_people(data, num_trials=36)
    expected = sums.exact_log_bf(totals)
    np.testing.assert_array_equal(full.exact_log_bf(data), expected)
    # And through the likelihood of every person's counts, whose binomial coefficients cancel.
    np.testing.assert_allclose(integrate(full.models, data, route="grid").log_bf, expected, atol=1e-6)


def test_data_favour_the_tree_they_came_from() -> None:
    study = problems.load("weapon-sum")
    first, second = (study.exact_log_bf(model.simulate(40, seed=8).data) for model in study.models)
    assert first.mean() > 1
    assert second.mean() < -1


def test_the_evidence_of_one_trial_averages_to_one() -> None:
    # Over all 64 outcomes of one trial a cell, evidences sum to 1: a check of prior, likelihood and integral at once.
    models = weapon.sum_models(1)
    correct = np.stack(np.meshgrid(*[[0, 1]] * 6, indexing="ij"), axis=-1).reshape(-1, 6)
    result = integrate(models, np.concatenate([correct, 1 - correct], axis=1), route="grid")
    np.testing.assert_allclose(np.exp(result.log_evidence).sum(axis=0), 1, rtol=1e-6)


def test_bad_counts_are_refused() -> None:
    study = problems.load("weapon-sum", num_obs=1)
    good = np.full((1, 12), 18)
    assert np.isfinite(study.exact_log_bf(good)).all()
    with pytest.raises(ValueError, match=re.escape("data must have shape (num_datasets, 12); received shape (1, 6)")):
        study.exact_log_bf(good[:, :6])
    with pytest.raises(ValueError, match="whole counts from 0 to 36; received -1"):
        study.exact_log_bf(good - 19)
    bad = good.copy()
    bad[0, 1] = 20
    with pytest.raises(ValueError, match=r"36 answers per cell.* data set 0 has 20 and 18 in the cell 'white gun'"):
        study.exact_log_bf(bad)
