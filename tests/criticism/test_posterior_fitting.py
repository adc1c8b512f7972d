import os
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import deepbf
from deepbf.criticism import PartialPosteriorError
from deepbf.training.console import ProgressBar
from tests.criticism.models import NORMAL, QUICK, normal_data, normal_posterior, normal_prior


def test_the_same_seed_gives_the_same_sampler(quick_sampler: deepbf.PosteriorSampler) -> None:
    again, other = (deepbf.fit_posterior(NORMAL, **{**QUICK, "seed": seed}) for seed in (1, 2))
    observed = np.linspace(-1, 2, 8)
    np.testing.assert_array_equal(quick_sampler.sample(observed, 20), again.sample(observed, 20))
    assert not np.any(again.sample(observed, 20) == other.sample(observed, 20))


def test_a_fixed_number_of_simulations() -> None:
    sampler = deepbf.fit_posterior(NORMAL, structure="exchangeable", num_simulations=4096, seed=1, progress=False)
    assert sampler.record.num_simulations == 4096
    assert sampler.record.stopped == "budget"


@pytest.mark.slow
def test_a_budget_in_seconds_is_kept() -> None:
    sampler = deepbf.fit_posterior(NORMAL, structure="exchangeable", seconds=30, seed=1, progress=False)
    assert sampler.record.num_steps > 0
    assert sampler.record.seconds < 40
    assert "flow" in repr(sampler)


@pytest.mark.slow
def test_a_gan_learns_where_the_posterior_is() -> None:
    sampler = deepbf.fit_posterior(NORMAL, **{**QUICK, "steps": 400}, method="gan")
    observed = np.linspace(0, 2, 8)
    drawn = sampler.sample(observed, 2000)
    mean, sd = normal_posterior(observed)
    assert abs(drawn.mean() - mean) < sd
    assert 0.5 < drawn.std() / sd < 2


def test_a_simulator_that_fails_leaves_what_was_trained() -> None:
    calls = 0

    def breaking(rng: np.random.Generator, means: NDArray[Any]) -> NDArray[Any]:
        nonlocal calls
        calls += 1
        # Far enough behind the pilot for some steps before it.
        return normal_data(rng, means) if calls < 500 else np.full((len(means), 8), np.nan)

    broken = deepbf.Model("broken", prior=normal_prior, simulator=breaking)
    with pytest.raises(
        PartialPosteriorError, match=r"Model 'broken' failed with seed .* not finite.*`partial`"
    ) as caught:
        deepbf.fit_posterior(broken, **{**QUICK, "steps": 10_000})
    assert caught.value.partial is not None
    assert np.isfinite(caught.value.partial.sample(np.zeros(8), 10)).all()


def test_an_interrupt_returns_what_was_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupts = iter([signal.SIGINT])

    def interrupt_once(self: ProgressBar, *args: Any, **options: Any) -> None:
        for number in interrupts:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(ProgressBar, "show", interrupt_once)
    with pytest.warns(UserWarning, match=r"training was interrupted after .* best sampler so far"):
        sampler = deepbf.fit_posterior(NORMAL, **{**QUICK, "steps": 100_000})
    assert sampler.record.stopped == "interrupted"
    assert np.isfinite(sampler.sample(np.zeros(8), 10)).all()


def test_a_simulator_that_fails_at_once_is_named() -> None:
    failing = deepbf.Model("failing", prior=normal_prior, simulator=lambda rng, means: 1 / 0)
    with pytest.raises(deepbf.SimulationError, match=r"Model 'failing' failed with seed 1: its simulator raised Zero"):
        deepbf.fit_posterior(failing, **QUICK)


def test_a_prior_outside_its_transform_is_named() -> None:
    wrong = deepbf.Model(
        "wrong",
        prior=lambda rng, size: {"spread": np.abs(rng.normal(size=size)), "shift": rng.normal(size=size)},
        simulator=lambda rng, params: normal_data(rng, params["shift"]),
        transform={"spread": "positive", "shift": "unit"},
    )
    with pytest.raises(
        deepbf.SimulationError, match=r"its prior raised .* for parameter 'shift', which .* between 0 and 1; correct"
    ):
        deepbf.fit_posterior(wrong, **QUICK)


def test_draws_on_a_bound_are_kept_off_it() -> None:
    model = deepbf.Model(
        "share",
        prior=lambda rng, size: np.where(rng.random(size) < 0.1, 0.0, rng.beta(1, 1, size)),
        simulator=normal_data,
        transform="unit",
    )
    sampler = deepbf.fit_posterior(model, **QUICK)
    assert np.isfinite(sampler.record.held_out_loss)
    drawn = sampler.sample(np.zeros(8), 500)
    assert np.all((drawn > 0) & (drawn < 1))


@pytest.mark.slow
def test_heavy_tails_are_bent() -> None:
    cauchy = deepbf.Model("cauchy", prior=lambda rng, size: rng.standard_cauchy(size), simulator=normal_data)
    sampler = deepbf.fit_posterior(cauchy, **{**QUICK, "steps": 600})
    assert abs(np.median(sampler.sample(np.full(8, 0.5), 1000)) - 0.48) < 0.4
    assert np.median(sampler.sample(np.full(8, 200.0), 1000)) > 50


SCALED = deepbf.Model(
    "scaled", prior=lambda rng, size, scale: scale * rng.normal(size=size), simulator=normal_data,
    hyperparameters={"scale": (0.1, 10)},
)  # fmt: skip
COUNTED = deepbf.Model(
    "counted",
    prior=lambda rng, size: {"level": rng.normal(size=size), "number": rng.integers(1, 5, size)},
    simulator=lambda rng, params: rng.normal(params["level"][:, None], 1, (len(params["level"]), 8)),
)
TWO_ARRAYS = deepbf.Model(
    "two arrays",
    prior=normal_prior,
    simulator=lambda rng, means: {"first": normal_data(rng, means), "second": normal_data(rng, means)},
)


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        (NORMAL, {"method": "flwo"}, ValueError, "method must be one of 'flow', 'gan'; received 'flwo'. Did you mean"),
        (NORMAL, {"structure": "set"}, ValueError, "structure must be one of"),
        ([NORMAL, NORMAL], {}, TypeError, "model must be one deepbf.Model; received list"),
        (SCALED, {}, ValueError, r"depends on its hyperparameters, scale .*model\.at\(scale=\.\.\.\)"),
        (COUNTED, {}, TypeError, "model 'counted' draws parameter 'number' of dtype int64"),
        (NORMAL, {"steps": 3, "seconds": 1}, ValueError, "exactly one budget"),
        (NORMAL, {"steps": 0}, ValueError, "steps must be at least 1"),
        (NORMAL, {"seed": -1}, ValueError, "seed must be a non-negative int"),
        (NORMAL, {"num_obs": (5, 9), "structure": "vector"}, ValueError, "num_obs needs data with one axis"),
        (NORMAL, {"num_obs": 8}, TypeError, "num_obs must be the smallest and the largest"),
        (SCALED.at(scale=1.0), {"executor": 3}, TypeError, "executor must have a submit method"),
        (TWO_ARRAYS, {}, ValueError, "for data sets of one array; .* 'two arrays' returns 'first'"),
        (NORMAL, {"structure": {"a": "vector"}}, ValueError, "for data sets of 'a'; .* returns one array"),
        (NORMAL, {"structure": {"parameters": "vector"}}, ValueError, "may not name an array 'parameters'"),
    ],
)  # fmt: skip
def test_what_cannot_be_fitted(model: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"structure": "exchangeable", "progress": False, **options}
    with pytest.raises(error, match=message):
        deepbf.fit_posterior(model, **given)


def test_a_simulator_that_takes_no_number() -> None:
    fixed = deepbf.Model("fixed", prior=normal_prior, simulator=lambda rng, means: normal_data(rng, means))
    with pytest.raises(TypeError, match=r"must be a function of \(rng, params, num_obs\)"):
        deepbf.fit_posterior(fixed, structure="exchangeable", num_obs=(3, 5))


def test_importing_deepbf_does_not_import_flows() -> None:
    code = "import sys, deepbf, deepbf.criticism; print('flowjax' in sys.modules)"
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.stdout.strip() == "False"
