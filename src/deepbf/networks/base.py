"""What every network and every preparation of its inputs is."""

from __future__ import annotations

import abc
from dataclasses import dataclass

import equinox as eqx
import jax


@dataclass(frozen=True)
class InputLayout:
    """What the columns of a prepared data set are, in order.

    Parameters
    ----------
    num_linear
        Leading summary columns that are linear in the data's features; a network may scale them without a bend.
    num_summary
        All summary columns, the linear ones included.
    knows_size
        Whether the last summary column is the number of observations, as a share of the largest.
    num_obs, obs_dim
        Then follow `num_obs` observations of `obs_dim` columns each; 0 where the summary says it all.
    """

    num_linear: int
    num_summary: int
    num_obs: int = 0
    obs_dim: int = 0
    knows_size: bool = False

    @property
    def width(self) -> int:
        return self.num_summary + self.num_obs * self.obs_dim


class AbstractPreparation(eqx.Module):
    """A fixed map from standardised data sets to network inputs: no trained weights, shared by the ensemble."""

    @abc.abstractmethod
    def __call__(self, data: jax.Array) -> jax.Array:
        """Return prepared inputs, shape (batch, layout.width), from standardised data of shape (batch, ...)."""

    @abc.abstractmethod
    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        """Return what the prepared columns are, for data sets of shape `data_shape`."""

    @property
    def size_part(self) -> int | None:
        """Which array of mixed data has the number of observations of the data set, if it varies."""
        return None


class AbstractNetwork(eqx.Module):
    """A trained map from prepared inputs to log odds."""

    @abc.abstractmethod
    def __call__(self, inputs: jax.Array) -> jax.Array:
        """Return log odds of each model but the last against the last, shape (batch, K - 1)."""

    def settle(self, reference: jax.Array) -> AbstractNetwork:
        """Return the network with all that depended on the batch fixed by a reference batch; most depend on none."""
        del reference
        return self
