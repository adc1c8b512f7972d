import numpy as np
import pytest

import deepbf
from deepbf.criticism.beside_parameters import PARAMETERS, structure_beside, to_real, with_parameters
from deepbf.layout import STRUCTURES
from deepbf.models.transform import Unconstrained
from tests.criticism.models import BOUNDED


def test_the_joint_model_draws_what_the_model_draws() -> None:
    own = BOUNDED.simulate(20, 5)
    unconstrained = Unconstrained.fit(own.params, BOUNDED.transform)
    joint = with_parameters(BOUNDED, unconstrained).simulate(20, 5)
    np.testing.assert_array_equal(joint.data["data"], own.data)
    flat, _ = unconstrained.to_params(joint.data[PARAMETERS])
    np.testing.assert_allclose(flat, unconstrained.flatten(own.params), rtol=1e-12)


@pytest.mark.parametrize("transform", ["unit", "positive", (-1.0, 3.0), "real"])
def test_draws_on_the_bounds_stay_finite(transform: object) -> None:
    params = np.array([0.0, 1.0, -1.0, 3.0, 0.5])
    unconstrained = Unconstrained.fit(params, transform)
    real = to_real(unconstrained, np.clip(params, unconstrained.low, unconstrained.high))
    assert np.isfinite(real).all()


def test_parameters_stand_beside_the_data() -> None:
    vector, series, nested = (STRUCTURES[name] for name in ("vector", "series", "nested"))
    assert structure_beside(series) == {"data": series, PARAMETERS: vector}
    assert structure_beside({"z": vector, "a": nested}) == {"a": nested, PARAMETERS: vector, "z": vector}
    with pytest.raises(ValueError, match="may not name an array 'parameters'"):
        structure_beside({PARAMETERS: vector})


def test_columns_are_named_by_number() -> None:
    model = deepbf.Model(
        "two",
        prior=lambda rng, size: rng.normal(size=(size, 2)),
        simulator=lambda rng, p: p,
        transform=["real", "unit"],
    )
    unconstrained = Unconstrained.fit(np.zeros((1, 2)), model.transform)
    with pytest.raises(deepbf.SimulationError, match="for column 1 of its parameters"):
        with_parameters(model, unconstrained).simulate(50, 1)
