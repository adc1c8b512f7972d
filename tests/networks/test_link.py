"""A link behind a network: applied wherever the network is, and nothing else changes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from numpy.testing import assert_array_equal

from deepbf.networks import NETWORKS, AbstractNetwork, InputLayout, linked
from deepbf.networks.base import NetworkKind


class Shifted(AbstractNetwork):
    """Adds the mean of a reference batch once it is settled."""

    shift: Any = 0.0

    def __call__(self, inputs: jax.Array) -> jax.Array:
        return inputs + self.shift

    def settle(self, reference: jax.Array) -> Shifted:
        return Shifted(reference.mean())


def init(layout: InputLayout, num_models: int, *, key: jax.Array) -> Shifted:
    del layout, num_models, key
    return Shifted()


KIND = NetworkKind(NETWORKS["vector"]["mlp"].fit_preparation, init, peak_rate=1e-3, any_num_obs=True)


def doubled(output: jax.Array) -> jax.Array:
    return 2.0 * output


def test_no_link_is_no_wrapping() -> None:
    assert linked(KIND, None) is KIND


def test_only_the_networks_change() -> None:
    behind = linked(KIND, doubled)
    assert behind.init is not KIND.init
    assert behind.fit_preparation is KIND.fit_preparation
    assert (behind.peak_rate, behind.any_num_obs) == (1e-3, True)


def test_the_link_is_applied_before_and_after_settling() -> None:
    network = linked(KIND, doubled).init(InputLayout(1, 1), 2, key=None)
    rows: Any = np.array([[1.0], [5.0]])
    assert_array_equal(network(rows), [[2.0], [10.0]])
    assert_array_equal(network.settle(rows)(rows), [[8.0], [16.0]])
