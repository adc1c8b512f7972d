"""The study of nested data: what its simulators draw, and what a short fit makes of it."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

import deepbf
from deepbf._numerics import cross_entropy, log_evidence
from deepbf_studies import problems

STUDY = problems.load("random-effects")


def test_the_study_is_complete_and_pickles() -> None:
    assert (STUDY.structure, STUDY.num_obs) == ("nested", 20)
    assert [model.name for model in STUDY.models] == ["random effects", "fixed effect"]
    copy = pickle.loads(pickle.dumps(STUDY))
    for model, copied in zip(STUDY.models, copy.models, strict=True):
        data = model.simulate(10, seed=4).data
        assert data.shape == (10, 20, 15)
        assert_array_equal(copied.simulate(10, seed=4).data, data)
        assert np.isfinite(STUDY.exact_log_bf(data)).all()
    assert problems.load("random-effects", num_obs=3).models[0].simulate(2, seed=1).data.shape == (2, 3, 15)


@pytest.mark.parametrize("model", [0, 1])
def test_groups_have_5_to_15_observations_of_the_right_spread(model: int) -> None:
    simulations = STUDY.models[model].simulate(4000, seed=1)
    data = np.asarray(simulations.data, np.float64)
    sizes = (~np.isnan(data)).sum(axis=2)
    counts = np.bincount(sizes.ravel(), minlength=16)
    assert counts[:5].sum() == 0
    assert stats.chisquare(counts[5:]).pvalue > 1e-6
    # Within groups the variance is 1: squared differences of neighbours have mean 2, variance 8.
    halves = (data[:, :, 1] - data[:, :, 0]) ** 2 / 2
    assert abs(halves.mean() - 1) < 5 * np.sqrt(2 / halves.size)
    # Observations of different groups share the common mean alone, variance 1; of one group, its effect too.
    within, across = (np.mean(data[:, 0, 0] * other) for other in (data[:, 0, 1], data[:, 1, 0]))
    assert abs(across - 1) < 0.25
    assert abs(within - across - (1 - model)) < 0.25


def test_data_favour_the_model_they_came_from() -> None:
    first, second = (STUDY.exact_log_bf(model.simulate(300, seed=3).data) for model in STUDY.models)
    assert np.median(first) > 5
    assert np.median(second) < -1


@pytest.mark.slow
def test_a_short_fit_comes_near_the_exact_answer() -> None:
    study = problems.load("random-effects", num_obs=8)
    bf = deepbf.fit(study.models, structure="nested", steps=200, ensemble=2, seed=1, progress=False)
    differences, scores = [], []
    for label, model in enumerate(study.models):
        data = model.simulate(2000, seed=11).data
        answers = (bf.log_bf(data), study.exact_log_bf(data))
        fitted, exact = (cross_entropy(log_evidence(log_bf[:, None]), label) for log_bf in answers)
        differences.append(fitted - exact)
        scores.append(exact)
    # No knowledge is a loss of log 2; the fit has nine tenths of what there is to know, and more.
    knowable = np.log(2) - np.mean(scores)
    assert knowable > 0.2
    assert np.mean(differences) < 0.1 * knowable


def test_masked_data_need_a_network_that_takes_them() -> None:
    with pytest.raises(ValueError, match=r"structure='vector' with network='gated' needs every value.*'nested'"):
        deepbf.fit(STUDY.models, structure="vector", num_simulations=600, progress=False)


@pytest.mark.parametrize(("masked", "says"), [("half", "mask some columns"), ("all", "mask whole data sets")])
def test_masks_that_make_no_sense_are_refused(masked: str, says: str) -> None:
    def simulator(rng: np.random.Generator, size: int) -> object:
        data = rng.normal(size=(size, 3, 4, 2))
        mask = np.zeros(data.shape, bool)
        if masked == "half":
            mask[:, 1, 2, 0] = True
        else:
            mask[5] = True
        return np.ma.MaskedArray(data, mask=mask)

    models = [deepbf.Model(name, simulator=simulator) for name in ("one", "other")]
    with pytest.raises(ValueError, match=says):
        deepbf.fit(models, structure="nested", num_simulations=600, progress=False)
