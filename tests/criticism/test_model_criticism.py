"""criticise: one call says which models fit the data, and refuses bad input before it trains."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import deepbf
from deepbf import Model

NUM_OBS = 40


def centred(scale: float) -> Model:
    """A model without parameters, which needs no training."""
    return Model(f"scale {scale:g}", simulator=lambda rng, size: rng.normal(0.0, scale, (size, NUM_OBS)))


FREE = Model(
    "free mean",
    prior=lambda rng, size: rng.normal(0.0, 2.0, size),
    simulator=lambda rng, mean: rng.normal(mean[:, None], 1.0, (len(mean), NUM_OBS)),
)
ONE = Model("one", simulator=lambda rng, size: rng.normal(size=(size, 1)))
OBSERVED = np.random.default_rng(3).normal(2.0, 1.0, NUM_OBS)


def criticised(models: list[Model], observed: Any) -> deepbf.criticism.Criticism:
    return deepbf.criticise(
        models,
        observed,
        structure="exchangeable",
        steps=300,
        num_replicates=300,
        num_draws=500,
        seed=1,
        progress=False,
    )


@pytest.fixture(scope="module")
def found() -> deepbf.criticism.Criticism:
    """Of data about 0 of scale 2, under models without parameters, which need no training."""
    return criticised([centred(1.0), centred(2.0), centred(5.0)], 2.0 * (OBSERVED - OBSERVED.mean()))


def test_it_says_which_models_fit(found: deepbf.criticism.Criticism) -> None:
    assert [one.fits for one in found] == [False, True, False]
    assert found.verdict == "scale 1 and scale 5 do not fit the data; nothing here speaks against scale 2"
    one = found["scale 2"]
    assert one.z is not None
    assert one.z.covers_half
    assert one.check["sd"].verdict == "as predicted"
    assert found["scale 1"].check["sd"].verdict == "too large"


@pytest.mark.slow
def test_a_model_with_parameters_is_fitted_to_the_data() -> None:
    # Quantiles of a normal: no statistic is far out. The greatest of OBSERVED is (exactly: 0.02 are as large).
    observed = 2.0 + stats.norm.ppf((np.arange(NUM_OBS) + 0.5) / NUM_OBS)
    found = criticised([FREE, centred(1.0)], observed)
    assert found.verdict == "scale 1 does not fit the data; nothing here speaks against free mean"
    one = found["free mean"]
    assert one.check["mean"].verdict == "as predicted"
    # The sampler that it trained can be asked more: the exact posterior mean is 0.99 of the observed one.
    draws = one.sampler.sample(observed, 2000, seed=1)
    assert abs(draws.mean() - observed.mean() * NUM_OBS / (NUM_OBS + 0.25)) < 0.1


def test_it_prints_itself_and_is_plain_data(found: deepbf.criticism.Criticism) -> None:
    text = str(found)
    assert text.startswith("Scale 1 and scale 5 do not fit the data")
    for name in found.names:
        assert name in text
    plain = found.to_dict()
    assert plain["models"]["scale 5"]["fits"] is False
    assert plain["models"]["scale 2"]["check"]["statistics"][0]["name"] == "mean"


def test_one_model_and_other_structures() -> None:
    vector = deepbf.criticise(centred(1.0), np.zeros(NUM_OBS), statistics="sd", progress=False)
    assert vector.models[0].z is None
    assert vector.models[0].check["sd"].verdict == "too small"
    assert vector.verdict == "scale 1 does not fit the data"
    usual = deepbf.criticise(centred(1.0), np.random.default_rng(0).normal(size=NUM_OBS), progress=False)
    assert usual.verdict == "nothing here speaks against scale 1"


def test_a_range_of_observations_is_passed_on() -> None:
    model = Model("any", simulator=lambda rng, size, num_obs: rng.normal(size=(size, num_obs)))
    result = deepbf.criticise(
        model, np.random.default_rng(0).normal(size=25), structure="exchangeable", num_obs=(24, 25),
        num_replicates=50, num_draws=50, progress=False,
    )  # fmt: skip
    assert result.models[0].sampler.num_obs == (24, 25)


@pytest.mark.parametrize(
    ("changes", "kind", "says"),
    [
        ({"models": []}, ValueError, "at least one model"),
        ({"models": ["free"]}, TypeError, "model must be one deepbf.Model"),
        ({"observed": [1.0, 2.0]}, ValueError, "whose data sets have shape"),
        ({"observed": np.full(NUM_OBS, np.nan)}, ValueError, "observed has"),
        ({"structure": {"a": "vector"}}, ValueError, "one array"),
        ({"structure": "set"}, ValueError, "structure"),
        ({"method": "mcmc"}, ValueError, "method"),
        ({"statistics": "median"}, ValueError, "median"),
        ({"seconds": 1.0, "steps": 5}, ValueError, "seconds"),
        ({"seconds": -1.0}, ValueError, "seconds"),
        ({"num_draws": 0}, ValueError, "num_draws"),
        ({"num_replicates": 0}, ValueError, "num_replicates"),
        ({"seed": -1}, ValueError, "seed"),
        ({"models": [ONE], "observed": [1.0]}, ValueError, "at least 2"),
    ],
)
def test_bad_input_is_refused_before_training(
    changes: dict[str, Any], kind: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepbf.criticism.model_criticism.fit_posterior", lambda *_, **__: pytest.fail("it trained"))
    arguments: dict[str, Any] = {"models": [FREE], "observed": OBSERVED, "structure": "exchangeable"}
    with pytest.raises(kind, match=says):
        deepbf.criticise(**(arguments | changes))
