"""A fit that goes on from a trained estimator is nearer to the exact answer than one that begins anew."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import deepbf
from deepbf.estimator import fitting
from deepbf_studies.problems import normal_mean_log_bf
from tests.simulators import ANY_NUMBER, FREE_MEAN, NORMAL_MEAN, WALK_OR_NOISE, ZERO_MEAN, around_mean

Floats = NDArray[np.float64]
WIDE = 2.0


def draw_wide(rng: np.random.Generator, size: int) -> Floats:
    return rng.normal(0.0, WIDE, size)


# The same names, another prior.
WIDE_MEAN = [deepbf.Model(FREE_MEAN.name, prior=draw_wide, simulator=around_mean), ZERO_MEAN]


def error_of(bf: deepbf.BayesFactor, scale: float) -> float:
    """Return the root mean square error of the log Bayes factor where the exact one is within a thousand to one."""
    data = np.concatenate(
        [
            deepbf.Model("free", prior=lambda rng, size: rng.normal(0, scale, size), simulator=around_mean)
            .simulate(1000, 7)
            .data,
            ZERO_MEAN.simulate(1000, 8).data,
        ]
    )
    exact = normal_mean_log_bf(data, prior_scale=scale)
    return float(np.sqrt(np.mean((bf.log_bf(data) - exact)[np.abs(exact) < np.log(1e3)] ** 2)))


def test_another_prior_is_followed_in_few_steps(normal_mean: deepbf.BayesFactor) -> None:
    options: dict[str, Any] = {"structure": "exchangeable", "steps": 200, "seed": 3, "progress": False}
    warm = deepbf.fit(WIDE_MEAN, start=normal_mean, **options)
    cold = deepbf.fit(WIDE_MEAN, **options)
    before, after = error_of(normal_mean, WIDE), error_of(warm, WIDE)
    assert after < 0.5 * before
    assert after < 0.7 * error_of(cold, WIDE)
    assert after < 0.2
    assert warm.record.num_earlier_simulations == normal_mean.record.num_simulations


@pytest.mark.slow
def test_a_dear_simulator_after_a_cheap_one(normal_mean: deepbf.BayesFactor, tmp_path: Path) -> None:
    normal_mean.save(tmp_path / "cheap.deepbf")
    options: dict[str, Any] = {"structure": "exchangeable", "num_simulations": 2000, "seed": 3, "progress": False}
    warm = deepbf.fit(WIDE_MEAN, start=tmp_path / "cheap.deepbf", **options)
    assert error_of(warm, WIDE) < 0.5 * error_of(normal_mean, WIDE)
    assert error_of(warm, WIDE) < 0.7 * error_of(deepbf.fit(WIDE_MEAN, **options), WIDE)
    # Simple classifiers joined; a fit may go on from that, too, and forgets nothing.
    again = deepbf.fit(WIDE_MEAN, start=warm, **{**options, "seed": 4})
    assert again.network == warm.network
    assert error_of(again, WIDE) < 1.2 * error_of(warm, WIDE)


def test_the_same_seed_brings_new_simulations_and_the_same_bits(normal_mean: deepbf.BayesFactor) -> None:
    seen: list[Floats] = []

    def recorded(rng: np.random.Generator, size: int) -> Floats:
        seen.append(rng.normal(size=(size, 10)))
        return seen[-1]

    models = [FREE_MEAN, deepbf.Model(ZERO_MEAN.name, simulator=recorded)]
    options: dict[str, Any] = {"structure": "exchangeable", "steps": 20, "seed": 1, "progress": False}
    cold = deepbf.fit(models, **options)
    first = np.concatenate(seen)
    seen.clear()
    warm = deepbf.fit(models, start=cold, **options)
    assert not np.isin(np.concatenate(seen)[:, 0], first[:, 0]).any()
    data = ZERO_MEAN.simulate(50, 2).data
    np.testing.assert_array_equal(
        warm.log_bf_members(data), deepbf.fit(models, start=cold, **options).log_bf_members(data)
    )
    assert (warm.log_bf(data) != cold.log_bf(data)).all()
    assert warm.num_members == normal_mean.num_members


WRONG: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "other models": ([ZERO_MEAN, FREE_MEAN], {}, ValueError, "same models.*'free mean', 'zero mean'"),
    "another structure": (NORMAL_MEAN, {"structure": "vector"}, ValueError, "same structure.*'exchangeable'.*'vector'"),
    "another network": (NORMAL_MEAN, {"network": "deepset"}, ValueError, "same network.*'committee'.*'deepset'"),
    "another ensemble": (NORMAL_MEAN, {"ensemble": 7}, ValueError, "same ensemble.*4.*7"),
    "covariates": (
        NORMAL_MEAN,
        {"structure": "vector", "covariates": {"x": np.arange(10.0)}},
        ValueError,
        "same structure",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_gone_on_from_is_refused_before_anything_is_simulated(
    case: str, normal_mean: deepbf.BayesFactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "train", lambda *_, **__: pytest.fail("training began"))
    models, options, error, says = WRONG[case]
    with pytest.raises(error, match=says):
        deepbf.fit(models, start=normal_mean, **{"structure": "exchangeable", "progress": False, **options})


def test_a_start_of_another_kind_is_refused(normal_mean: deepbf.BayesFactor) -> None:
    with pytest.raises(TypeError, match=r"start must be a trained estimator.*received int"):
        deepbf.fit(NORMAL_MEAN, structure="exchangeable", start=3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(FileNotFoundError, match=r"there is no file nowhere\.deepbf"):
        deepbf.fit(NORMAL_MEAN, structure="exchangeable", start="nowhere.deepbf")
    renamed = [deepbf.Model(name, prior=m.prior, simulator=m.simulator) for name, m in zip(
        normal_mean.names, ANY_NUMBER, strict=True)]  # fmt: skip
    with pytest.raises(ValueError, match="same num_obs: it has None"):
        deepbf.fit(renamed, structure="exchangeable", num_obs=(2, 10), start=normal_mean)


def test_settled_networks_and_other_shapes_are_refused() -> None:
    settled = deepbf.fit(WALK_OR_NOISE, network="bnn", steps=5, progress=False)
    with pytest.raises(ValueError, match=r"cannot be trained any further.*'bnn'"):
        deepbf.fit(WALK_OR_NOISE, steps=5, start=settled, progress=False)
    begun = deepbf.fit(WALK_OR_NOISE, steps=5, progress=False)
    longer = [
        deepbf.Model(model.name, simulator=lambda rng, size: rng.normal(size=(size, 8))) for model in WALK_OR_NOISE
    ]
    with pytest.raises(ValueError, match=r"start was trained on data sets of shape \(6,\).*shape \(8,\)"):
        deepbf.fit(longer, steps=5, start=begun, progress=False)
