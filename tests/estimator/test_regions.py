"""Regions of parameters: they hold the posterior, and their share of the prior is what it is said to be."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

import deepbf
from deepbf.estimator.regions import Box, RankScale, Region, TruncatedPrior, Zoom, counted, effective_number, locate

Floats = NDArray[np.float64]
NUM_OBS = 20


def read(data: Floats) -> Floats:
    """Sufficient statistics of normal data, and of their signs."""
    return np.stack([data.mean(axis=1), np.log(data.std(axis=1) + 1e-9), np.abs(data.mean(axis=1))], axis=1)


def located(model: deepbf.Model, observed: Floats, seed: int = 1, num_datasets: int = 2000) -> Zoom:
    return locate(model, read, read(observed[None]), np.random.SeedSequence(seed), num_datasets=num_datasets)


def posterior_inside(model: deepbf.Model, zoom: Zoom, log_likelihood: Callable[[Any], Floats]) -> float:
    """The share of the posterior in the region, by weighing draws of the prior."""
    assert model.prior is not None
    params = model.prior(np.random.default_rng(9), 400_000)
    log_weights = log_likelihood(params)
    weights = np.exp(log_weights - log_weights.max())
    inside = np.ones(len(weights), bool) if zoom.region is None else zoom.region.holds(params)
    return float(weights[inside].sum() / weights.sum())


def normal_data(mean: float, sd: float = 1.0, seed: int = 5) -> Floats:
    noise = np.random.default_rng(seed).normal(size=NUM_OBS)
    return mean + sd * (noise - noise.mean()) / noise.std()


def normal_log_likelihood(observed: Floats, mean: Floats, sd: Any = 1.0) -> Floats:
    squares = ((observed - observed.mean()) ** 2).sum() + len(observed) * (observed.mean() - mean) ** 2
    return -0.5 * squares / np.square(sd) - len(observed) * np.log(sd)


def draws(rng: np.random.Generator, mean: Any, sd: Any = 1.0) -> Floats:
    mean, sd = np.broadcast_arrays(mean, sd)
    return rng.normal(mean[:, None], sd[:, None], (len(mean), NUM_OBS))


MEAN = deepbf.Model("mean", prior=lambda rng, size: rng.normal(0, 3, size), simulator=draws)
HEAVY = deepbf.Model("heavy", prior=lambda rng, size: 3 * rng.standard_cauchy(size), simulator=draws)
POSITIVE = deepbf.Model("positive", prior=lambda rng, size: rng.exponential(2.0, size), simulator=draws)
WHOLE = deepbf.Model("whole", prior=lambda rng, size: rng.integers(-4, 5, size), simulator=draws)
# Either sign of the parameter makes the same data: the posterior has two modes.
EITHER = deepbf.Model(
    "either",
    prior=lambda rng, size: rng.normal(0, 3, size),
    simulator=lambda rng, root: draws(rng, np.abs(root)),
)
BOTH = deepbf.Model(
    "both",
    prior=lambda rng, size: {"mean": rng.normal(0, 3, size), "log_sd": rng.normal(0, 1, size)},
    simulator=lambda rng, p: draws(rng, p["mean"], np.exp(p["log_sd"])),
)


@pytest.mark.parametrize("value", [0.0, 2.0, -6.0])
@pytest.mark.parametrize("model", [MEAN, HEAVY, POSITIVE, WHOLE], ids=lambda model: model.name)
def test_the_region_holds_the_posterior(model: deepbf.Model, value: float) -> None:
    observed = normal_data(value)
    zoom = located(model, observed)
    assert posterior_inside(model, zoom, lambda mean: normal_log_likelihood(observed, mean)) > 0.995
    if value == 2.0:
        # It is worth it, too: the posterior takes up a tenth of the prior, or less.
        assert np.exp(zoom.log_share) < 0.5


def test_the_region_holds_both_modes() -> None:
    observed = normal_data(3.0)
    zoom = located(EITHER, observed)
    assert posterior_inside(EITHER, zoom, lambda root: normal_log_likelihood(observed, np.abs(root))) > 0.995


def test_parameters_in_a_dict() -> None:
    observed = normal_data(1.0, sd=2.0)
    zoom = located(BOTH, observed)

    def log_likelihood(params: Any) -> Floats:
        return normal_log_likelihood(observed, params["mean"], np.exp(params["log_sd"]))

    assert posterior_inside(BOTH, zoom, log_likelihood) > 0.995
    assert np.exp(zoom.log_share) < 0.3
    cut = zoom.truncated(BOTH)
    assert zoom.region is not None
    assert cut.prior is not None
    params = cut.prior(np.random.default_rng(3), 500)
    assert params["mean"].shape == (500,)
    assert zoom.region.holds(params).all()


@pytest.mark.slow
def test_ten_parameters() -> None:
    model = deepbf.Model(
        "ten",
        prior=lambda rng, size: rng.normal(0, 2, (size, 10)),
        simulator=lambda rng, p: rng.normal(p, 0.5),
    )
    observed = np.random.default_rng(4).normal(0, 2, 10)
    zoom = locate(model, lambda data: data, observed[None], np.random.SeedSequence(2), num_datasets=4000)

    def log_likelihood(params: Floats) -> Floats:
        return -0.5 * (((observed - params) / 0.5) ** 2).sum(axis=1)

    # Weights of the prior's draws would be too uneven: exact posterior draws instead.
    precision = 1 / 0.25 + 1 / 4
    exact = np.random.default_rng(5).normal(observed / 0.25 / precision, precision**-0.5, (20_000, 10))
    assert np.isfinite(log_likelihood(exact)).all()
    assert zoom.region is not None
    assert zoom.region.holds(exact).mean() > 0.98
    assert np.exp(zoom.log_share) < 0.5


def test_the_share_of_the_prior_is_that_of_the_box() -> None:
    params = np.random.default_rng(1).uniform(0, 1, 50_000)
    scale = RankScale.fit(params)
    low, high = norm.ppf([0.2, 0.7])
    region = Region(scale, (Box(np.eye(1), np.array([low]), np.array([high])),))
    model = deepbf.Model("uniform", prior=lambda rng, size: rng.uniform(0, 1, size), simulator=draws)
    zoom = counted(Zoom("uniform", region), model, np.random.SeedSequence(2))
    # The scale itself is known from so many draws.
    error = np.hypot(zoom.error, np.sqrt(0.25 / 50_000) / 0.5)
    assert abs(zoom.log_share - np.log(0.5)) < 4 * error
    assert zoom.error < 0.01


def test_a_truncated_prior_is_the_prior_inside() -> None:
    region = Region(
        RankScale.fit(np.random.default_rng(1).normal(size=(20_000, 2))),
        (Box(np.eye(2), np.array([-1.0, 0.0]), np.array([1.0, 2.0])),),
    )
    prior = TruncatedPrior(lambda rng, size: rng.normal(size=(size, 2)), region, 0.3)
    drawn = prior(np.random.default_rng(2), 20_000)
    assert drawn.shape == (20_000, 2)
    assert region.holds(drawn).all()
    # Half normal between 0 and 2.
    exact = (norm.pdf(0) - norm.pdf(2)) / (norm.cdf(2) - norm.cdf(0))
    assert abs(drawn[:, 1].mean() - exact) < 0.02
    assert prior(np.random.default_rng(2), 7).shape == (7, 2)
    assert (prior(np.random.default_rng(2), 7) == prior(np.random.default_rng(2), 7)).all()


def test_plain_bounds_rule_out_nothing_that_is_inside() -> None:
    rng = np.random.default_rng(3)
    scale = RankScale.fit(rng.normal(size=(5000, 3)))
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    region = Region(scale, (Box(axes, np.full(3, -0.7), np.full(3, 0.9)),))
    params = rng.normal(size=(50_000, 3))
    along = scale(params) @ axes
    assert (region.holds(params) == ((along >= -0.7) & (along <= 0.9)).all(axis=1)).all()


@pytest.mark.parametrize(
    ("prior", "why"),
    [
        (None, "no parameters"),
        (lambda rng, size: np.full(size, np.nan), "not finite"),
        (lambda rng, size: np.full(size, 2.0), "same parameters"),
    ],
)
def test_what_cannot_be_cut_is_left_whole(prior: Any, why: str) -> None:
    def simulator(rng: np.random.Generator, given: Any) -> Floats:
        return draws(rng, np.zeros(given if prior is None else len(given)))

    model = deepbf.Model("m", prior=prior, simulator=simulator)
    zoom = located(model, normal_data(0.0))
    assert zoom.region is None
    assert zoom.log_share == 0.0
    assert why in zoom.why
    assert zoom.truncated(model) is model


def test_data_that_say_nothing_leave_the_prior_whole() -> None:
    model = deepbf.Model(
        "blind", prior=lambda rng, size: rng.normal(size=size), simulator=lambda rng, p: draws(rng, 0 * p)
    )
    zoom = located(model, normal_data(0.3))
    # A box about all of the prior at most.
    assert np.exp(zoom.log_share) > 0.9


def test_a_prior_that_leaves_its_region_is_named() -> None:
    region = Region(RankScale.fit(np.arange(100.0)), (Box(np.eye(1), np.array([5.0]), np.array([6.0])),))
    prior = TruncatedPrior(lambda rng, size: np.zeros(size), region, 1e-9)
    model = deepbf.Model("gone", prior=prior, simulator=draws)
    with pytest.raises(deepbf.SimulationError, match="nothing but its generator"):
        model.simulate(5, seed=1)


def test_the_same_seed_gives_the_same_region() -> None:
    first, second = (located(MEAN, normal_data(1.0), seed=4) for _ in range(2))
    assert first.log_share == second.log_share
    assert located(MEAN, normal_data(1.0), seed=5).log_share != first.log_share


@pytest.mark.parametrize("value", [0.4, 2.0, -5.0])
@pytest.mark.parametrize("model", [MEAN, POSITIVE, BOTH], ids=lambda model: model.name)
def test_narrowed_models_have_the_evidence_of_the_whole_up_to_the_factor(model: deepbf.Model, value: float) -> None:
    observed = normal_data(max(value, 0.4) if model is POSITIVE else value)

    def log_evidence(prior: Any, seed: int, number: int) -> float:
        params = prior(np.random.default_rng(seed), number)
        mean, sd = (params["mean"], np.exp(params["log_sd"])) if model is BOTH else (params, 1.0)
        return float(logsumexp(normal_log_likelihood(observed, mean, sd)) - np.log(number))

    zoom = located(model, observed, num_datasets=4000)
    whole = log_evidence(model.prior, 7, 4_000_000)
    narrowed = log_evidence(zoom.truncated(model).prior, 8, 400_000)
    # Both means over draws have an error of their own, of about a percent.
    assert abs(narrowed + zoom.log_factor - whole) < 4 * zoom.error + 0.02
    assert zoom.error < 0.06


def test_the_window_keeps_what_it_says_of_a_normal_posterior() -> None:
    observed = normal_data(1.0)
    zoom = located(MEAN, observed, num_datasets=4000)
    assert zoom.prior is not None
    # Of a normal, a window twice as wide keeps 1 / sqrt(1 + 1/4).
    assert abs(zoom.log_kept + 0.5 * np.log1p(0.25)) < 4 * zoom.kept_error + 0.01


def test_effective_numbers() -> None:
    assert effective_number(np.zeros(7)) == pytest.approx(7)
    assert effective_number(np.log([1.0, 1e-9])) == pytest.approx(1)
