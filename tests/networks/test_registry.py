"""Networks by name, each for the structures it is meant for."""

import numpy as np
import pytest

from deepbf.networks import check_network, check_structure, network_for
from deepbf.networks.registry import MOST_SORTED
from tests.untrained import EVERY_INPUT, EVERY_NETWORK, untrained

FAR = [0.0, 1e7, 1e30, -1e30]


def test_auto_is_the_default_of_the_structure() -> None:
    assert check_network("auto", "vector") == "gated"
    assert check_network("auto", "exchangeable") == "deepset"
    assert check_network("auto", "series") == "summary"


@pytest.mark.parametrize(("structure", "network"), EVERY_NETWORK)
def test_every_network_goes_by_its_name(structure: str, network: str) -> None:
    assert check_structure(structure) == structure
    assert check_network(network, structure) == network


def test_a_set_network_is_refused_for_vectors() -> None:
    with pytest.raises(
        ValueError, match="network for structure='vector' must be one of 'auto', 'gated', 'mlp', 'fnn', 'bnn'"
    ):
        check_network("deepset", "vector")


@pytest.mark.parametrize("network", ["deepsets", "DeepSet", 3, None])
def test_an_unknown_network_is_refused(network: object) -> None:
    with pytest.raises(ValueError, match=r"network for structure='exchangeable' must be one of.*'deepset2'"):
        check_network(network, "exchangeable")


# These take ten seconds to compile; those that they are made of are tried above and elsewhere.
COMPILES_LONG = ("set-attention", "conv")
WITH_SLOW = [pytest.param(*one, marks=pytest.mark.slow) if one[1] in COMPILES_LONG else one for one in EVERY_INPUT]


@pytest.mark.parametrize(("structure", "network", "data_shape"), WITH_SLOW)
def test_every_network_is_finite_far_out(structure: str, network: str, data_shape: tuple[int, ...]) -> None:
    estimator = untrained(structure, network, data_shape)
    data = np.stack([np.full(data_shape, value) for value in FAR])
    mixed = np.broadcast_to(np.resize(FAR, data_shape[:1]).reshape(-1, *[1] * (len(data_shape) - 1)), data_shape)
    assert np.isfinite(estimator.log_bf_members(np.concatenate([data, mixed[None]]))).all()


def test_few_scalar_observations_are_sorted_by_default() -> None:
    assert network_for("exchangeable", (2,)) == network_for("exchangeable", (MOST_SORTED,)) == "sorted"
    assert network_for("exchangeable", (MOST_SORTED + 1,)) == "deepset"
    # Vectors have no order.
    assert network_for("exchangeable", (2, 3)) == "deepset"
    assert network_for("vector", (2,)) == "gated"
    assert network_for({"trials": "exchangeable"}, (2,)) == "mixed"
