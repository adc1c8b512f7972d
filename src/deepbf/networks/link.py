"""Links: networks whose output is turned into log odds by a fixed function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax

from deepbf.networks.base import AbstractNetwork, InputLayout
from deepbf.networks.registry import NetworkKind

Link = Callable[[jax.Array], jax.Array]


class LinkedNetwork(AbstractNetwork):
    """A network and the function that makes log odds of its output, together a network like any other.

    Training, the held-out judge, the estimator and its file all call networks, so none of them can forget the link.
    """

    network: AbstractNetwork
    link: Link = eqx.field(static=True)

    def __call__(self, inputs: jax.Array) -> jax.Array:
        return self.link(self.network(inputs))

    def settle(self, reference: jax.Array) -> LinkedNetwork:
        return LinkedNetwork(self.network.settle(reference), self.link)


def linked(kind: NetworkKind, link: Link | None) -> NetworkKind:
    """Return the kind of network with the link behind it; the kind itself if there is none."""
    if link is None:
        return kind

    def init(layout: InputLayout, num_models: int, *, key: jax.Array) -> LinkedNetwork:
        return LinkedNetwork(kind.init(layout, num_models, key=key), link)

    return replace(kind, init=init)
