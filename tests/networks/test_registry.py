"""Networks by name, each for the structures it is meant for."""

import jax
import numpy as np
import pytest

from deepbf.layout import STRUCTURES, WHOLE, ArrayLayout, DataLayout, find_structure
from deepbf.layout.structure import MOST_SORTED
from deepbf.networks import check_network, choose_network
from deepbf.networks.registry import summary_kind
from tests.untrained import EVERY_INPUT, EVERY_NETWORK, untrained

FAR = [0.0, 1e7, 1e30, -1e30]


def one_array(structure: str, shape: tuple[int, ...] = ()) -> DataLayout:
    return DataLayout((ArrayLayout(WHOLE, STRUCTURES[structure], shape),))


def test_auto_is_a_committee_wherever_there_is_a_plain_view() -> None:
    for structure in ("vector", "exchangeable", "series", "nested", "image"):
        assert choose_network(one_array(structure, (4, 20))) == "committee"
    assert choose_network(DataLayout((ArrayLayout("trials", STRUCTURES["exchangeable"], (2,)),))) == "committee"


@pytest.mark.parametrize(("structure", "network"), EVERY_NETWORK)
def test_every_network_goes_by_its_name(structure: str, network: str) -> None:
    assert find_structure(structure) is STRUCTURES[structure]
    check_network(network, one_array(structure))
    assert choose_network(one_array(structure), network) == network


def test_a_set_network_is_refused_for_vectors() -> None:
    with pytest.raises(
        ValueError,
        match="network for structure='vector' must be one of 'auto', 'committee', 'head', 'gated', 'mlp', 'fnn'",
    ):
        check_network("deepset", one_array("vector"))


@pytest.mark.parametrize("network", ["deepsets", "DeepSet", 3, None])
def test_an_unknown_network_is_refused(network: object) -> None:
    with pytest.raises(ValueError, match=r"network for structure='exchangeable' must be one of.*'deepset2'"):
        check_network(network, one_array("exchangeable"))


# These take ten seconds to compile; those that they are made of are tried above and elsewhere.
COMPILES_LONG = ("set-attention", "conv")
WITH_SLOW = [pytest.param(*one, marks=pytest.mark.slow) if one[1] in COMPILES_LONG else one for one in EVERY_INPUT]


@pytest.mark.parametrize(("structure", "network", "data_shape"), WITH_SLOW)
def test_every_network_is_finite_far_out(structure: str, network: str, data_shape: tuple[int, ...]) -> None:
    estimator = untrained(structure, network, data_shape)
    data = np.stack([np.full(data_shape, value) for value in FAR])
    mixed = np.broadcast_to(np.resize(FAR, data_shape[:1]).reshape(-1, *[1] * (len(data_shape) - 1)), data_shape)
    assert np.isfinite(estimator.log_bf_members(np.concatenate([data, mixed[None]]))).all()


@pytest.mark.parametrize(("structure", "network", "data_shape"), [*EVERY_INPUT, ("exchangeable", "committee", (13, 6))])
def test_no_preparation_calls_lapack(structure: str, network: str, data_shape: tuple[int, ...]) -> None:
    # Its threads wait for each other for ever where another part of the same program keeps them busy.
    preparation = untrained(structure, network, data_shape).ensemble.preparation
    program = jax.jit(preparation.__call__).lower(jax.ShapeDtypeStruct((4, *data_shape), np.float32))
    assert "lapack" not in program.as_text()


def test_few_scalar_observations_are_sorted_by_default() -> None:
    exchangeable = STRUCTURES["exchangeable"]
    assert exchangeable.default_network((2,)) == "sorted-head"
    assert exchangeable.default_network((MOST_SORTED,)) == "sorted-head"
    assert exchangeable.default_network((MOST_SORTED + 1,)) == "deepset"
    # Vectors have no order.
    assert exchangeable.default_network((2, 3)) == "deepset"


def test_the_arrays_of_mixed_data_are_prepared_as_they_are_alone() -> None:
    few, many = (ArrayLayout(name, STRUCTURES["exchangeable"], (size,)) for name, size in (("few", 4), ("many", 20)))
    data = np.random.default_rng(1).normal(size=(300, 24)).astype(np.float32)
    summary = summary_kind(DataLayout((few, many))).fit_preparation([data, 2 * data])
    alone = [summary_kind(DataLayout((ArrayLayout(WHOLE, one.structure, one.shape),))) for one in (few, many)]
    parts = [data[:, :4], data[:, 4:]]
    expected = [type(kind.fit_preparation([part, 2 * part])) for kind, part in zip(alone, parts, strict=True)]
    assert [type(part) for part in summary.parts] == expected  # pyright: ignore[reportAttributeAccessIssue]
    assert expected[0] is not expected[1]
