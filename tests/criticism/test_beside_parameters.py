from typing import Any

import numpy as np
import pytest

import deepbf
from deepbf.criticism import posterior_fitting
from deepbf.criticism.beside_parameters import PARAMETERS, to_real
from deepbf.models.transform import Unconstrained
from tests.criticism.models import BOUNDED


def test_the_joint_model_draws_what_the_model_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    trained_on = []

    def stop_before_training(models: Any, layout: Any, **_: Any) -> None:
        trained_on.append(models.models[0])
        raise KeyboardInterrupt

    monkeypatch.setattr(posterior_fitting, "train", stop_before_training)
    with pytest.raises(KeyboardInterrupt):
        deepbf.fit_posterior(BOUNDED, steps=1, progress=False)
    own = BOUNDED.simulate(20, 5)
    unconstrained = Unconstrained.fit(own.params, BOUNDED.transform)
    joint = trained_on[0].simulate(20, 5)
    np.testing.assert_array_equal(joint.data["data"], own.data)
    flat, _ = unconstrained.to_params(joint.data[PARAMETERS])
    np.testing.assert_allclose(flat, unconstrained.flatten(own.params), rtol=1e-12)


@pytest.mark.parametrize("transform", ["unit", "positive", (-1.0, 3.0), "real"])
def test_draws_on_the_bounds_stay_finite(transform: object) -> None:
    params = np.array([0.0, 1.0, -1.0, 3.0, 0.5])
    unconstrained = Unconstrained.fit(params, transform)
    real = to_real(unconstrained, np.clip(params, unconstrained.low, unconstrained.high))
    assert np.isfinite(real).all()


@pytest.mark.parametrize("structure", ["series", {"z": "vector", "a": "series"}])
def test_parameters_stand_beside_the_data(structure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def stop_before_training(models: Any, layout: Any, **_: Any) -> None:
        seen.append(layout.structure)
        raise KeyboardInterrupt

    def simulator(rng: np.random.Generator, mean: Any) -> Any:
        data = rng.normal(mean[:, None], 1.0, (len(mean), 6))
        return data if isinstance(structure, str) else {"z": data[:, :2], "a": data}

    model = deepbf.Model("normal", prior=lambda rng, size: rng.normal(size=size), simulator=simulator)
    monkeypatch.setattr(posterior_fitting, "train", stop_before_training)
    with pytest.raises(KeyboardInterrupt):
        deepbf.fit_posterior(model, structure=structure, steps=1, progress=False)
    assert seen == [({"data": structure} if isinstance(structure, str) else structure) | {PARAMETERS: "vector"}]


def test_no_array_may_be_called_like_the_parameters() -> None:
    with pytest.raises(ValueError, match="may not name an array 'parameters'"):
        deepbf.fit_posterior(BOUNDED, structure={PARAMETERS: "vector"}, steps=1, progress=False)


def test_columns_are_named_by_number() -> None:
    model = deepbf.Model(
        "two",
        prior=lambda rng, size: rng.normal(size=(size, 2)),
        simulator=lambda rng, p: p,
        transform=["real", "unit"],
    )
    with pytest.raises(deepbf.SimulationError, match="for column 1 of its parameters"):
        deepbf.fit_posterior(model, steps=1, progress=False)
