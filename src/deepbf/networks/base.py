"""What every network and every preparation of its inputs is, and the pieces that several of them share."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf._compilation import IN_A_HURRY, compiled


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
    num_across
        How many observations, pixels of an image, stand side by side in a row of them; 0 where they are on no grid.
    num_beside
        Then follow so many columns of another view of the same data, for networks that read it too.
    """

    num_linear: int
    num_summary: int
    num_obs: int = 0
    obs_dim: int = 0
    knows_size: bool = False
    num_beside: int = 0
    num_across: int = 0

    @property
    def width(self) -> int:
        """How many columns there are in all."""
        return self.num_summary + self.num_obs * self.obs_dim + self.num_beside

    @property
    def num_describing(self) -> int:
        """How many leading columns describe a data set: its summary, or all of them where there is none."""
        return self.num_summary or self.width


STORABLE: dict[str, type[Storable]] = {}


class Storable(eqx.Module):
    """A part of an estimator that its file describes by class name and fields; subclasses register themselves."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        STORABLE[cls.__name__] = cls


class AbstractPreparation(Storable):
    """A fixed map from standardised data sets to network inputs: no trained weights, shared by the ensemble."""

    @abc.abstractmethod
    def __call__(self, data: jax.Array) -> jax.Array:
        """Return prepared inputs, shape (batch, layout.width), from standardised data of shape (batch, ...)."""

    @abc.abstractmethod
    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        """Return what the prepared columns are, for data sets of shape `data_shape`."""


def prepare(preparation: AbstractPreparation, data: jax.Array) -> jax.Array:
    """Return what networks read of standardised data sets: `preparation` as a function, to be compiled."""
    return preparation(data)


# Standardised pilot simulations, one array per model; and how a preparation is fitted to them.
Pilot = Sequence[NDArray[np.float32]]
FitPreparation = Callable[..., AbstractPreparation]
# ``init(layout, num_models, key=key)`` returns a network with random weights.
InitNetwork = Callable[..., "AbstractNetwork"]


class AbstractNetwork(eqx.Module):
    """A trained map from prepared inputs to log odds.

    `orthogonal` says whether steps of its weight matrices are made orthogonal (Muon) or are Adam's.
    """

    orthogonal: ClassVar[bool] = False

    @abc.abstractmethod
    def __call__(self, inputs: jax.Array) -> jax.Array:
        """Return log odds of each model but the last against the last, shape (batch, K - 1)."""

    def parts(self, inputs: jax.Array) -> jax.Array:
        """Return the log odds of each network that this one is made of, shape (parts, batch, K - 1): mostly one."""
        return self(inputs)[None]

    def settle(self, reference: jax.Array) -> AbstractNetwork:
        """Return the network with all that depended on the batch fixed by a reference batch; most depend on none."""
        del reference
        return self


@dataclass(frozen=True)
class NetworkKind:
    """One named architecture: how its inputs are prepared, how it starts and how fast it may learn.

    Parameters
    ----------
    fit_preparation
        From standardised pilot simulations, one array per model, to the preparation of data like them. Networks for a
        structure that has covariates also take ``covariates=``, the table.
    init
        ``init(layout, num_models, key=key)`` returns a network for prepared inputs of that `InputLayout`. Kinds that
        start alike have equal ones, so that what is compiled for the one serves the other.
    peak_rate
        The largest learning rate.
    any_num_obs
        Whether data sets may differ in the number of their observations.
    scalars_only
        Whether observations must be scalars.
    """

    fit_preparation: FitPreparation
    init: InitNetwork
    peak_rate: float
    any_num_obs: bool = False
    scalars_only: bool = False


# From here on the square under the root is all there is, and it would soon overflow.
LARGE = 1e9


def squash(values: jax.Array) -> jax.Array:
    """Return the values with heavy tails pulled in: linear near 0, logarithmic far away.

    This is arcsinh to an absolute error of float32, in half the time of `jnp.arcsinh`, which spends it on relative
    accuracy near 0.
    """
    size = jnp.abs(values)
    root = jnp.where(size < LARGE, jnp.sqrt(1.0 + size * size), size)
    return jnp.copysign(jnp.log(size + root), values)


class Head(eqx.Module):
    """Log odds as a linear function of the summary plus a smooth function of a few of its directions.

    For competing exponential families this is the exact form: a linear statistic plus a function of the sufficient
    statistics. What training sees in the middle of the range then also holds in the tails, where the other model's
    data are too rare to teach anything.
    """

    straight: eqx.nn.Linear
    directions: eqx.nn.Linear
    bend: eqx.nn.MLP
    num_linear: int = eqx.field(static=True)
    straight_scale: float = eqx.field(static=True)
    size_column: int | None = eqx.field(static=True)

    def __init__(
        self,
        layout: InputLayout,
        num_inputs: int,
        num_models: int,
        *,
        num_directions: int,
        width: int,
        straight_scale: float,
        key: jax.Array,
    ) -> None:
        keys = jax.random.split(key, 3)
        straight = eqx.nn.Linear(layout.num_linear, num_models - 1, use_bias=False, key=keys[0])
        # Starting flat: the bend, not chance, decides what the first steps look like.
        self.straight = eqx.tree_at(lambda layer: layer.weight, straight, 0.0 * straight.weight)
        self.directions = eqx.nn.Linear(num_inputs, num_directions, use_bias=False, key=keys[1])
        num_outputs = (num_models - 1) * (2 if layout.knows_size else 1)
        self.bend = eqx.nn.MLP(num_directions, num_outputs, width, 2, activation=jax.nn.silu, key=keys[2])
        self.num_linear = layout.num_linear
        self.size_column = layout.num_summary - 1 if layout.knows_size else None
        self.straight_scale = straight_scale

    def __call__(self, inputs: jax.Array) -> jax.Array:
        bent = jax.vmap(lambda row: self.bend(self.directions(row)))(inputs)
        if self.size_column is not None:
            # The evidence grows with the number of observations, bent or not.
            constant, growing = jnp.split(bent, 2, axis=1)
            bent = constant + self.straight_scale * inputs[:, self.size_column, None] * growing
        return self.straight_scale * jax.vmap(self.straight)(inputs[:, : self.num_linear]) + bent


class HeadAlone(AbstractNetwork):
    """A network that is nothing but the head, on all that its inputs have; kinds differ in how they start it."""

    head: Head

    def __call__(self, inputs: jax.Array) -> jax.Array:
        return self.head(inputs)


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
    return kind if link is None else replace(kind, init=InitLinked(kind.init, link))


@dataclass(frozen=True)
class InitLinked:
    """How a network with a link behind it starts."""

    init: InitNetwork
    link: Link

    def __call__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> LinkedNetwork:
        return LinkedNetwork(self.init(layout, num_models, key=key), self.link)


# A column that varies less than this is constant but for rounding.
SMALLEST_SPREAD = 1e-6
# Data sets of the pilot that the columns' scales are taken from.
MOST_FOR_SCALES = 4096


class AbstractColumns(Storable):
    """The columns of a plain view, before they are scaled."""

    @abc.abstractmethod
    def __call__(self, data: jax.Array) -> jax.Array:
        """Return columns, shape (batch, columns), from standardised data of shape (batch, ...)."""


class PlainView(AbstractPreparation):
    """Columns at mean 0 and unit spread over all models, far values pulled in; absent observations are nan.

    Where their number varies, `largest` is the most observations, and their number joins the columns.
    """

    columns: AbstractColumns
    location: jax.Array
    spread: jax.Array
    largest: int = eqx.field(static=True)

    @classmethod
    def fit(cls, columns: AbstractColumns, pilot: Pilot, *, any_size: bool = False) -> PlainView:
        """Return the view by these columns of data like the pilot's, one array per model."""
        read = compiled(type(columns).__call__, columns, options=IN_A_HURRY)
        each = max(2, MOST_FOR_SCALES // len(pilot))
        found = np.concatenate([np.asarray(read(jnp.asarray(data[:each]))) for data in pilot]).astype(np.float64)
        location, spread = found.mean(axis=0), found.std(axis=0)
        absent = any_size and any(bool(np.isnan(data).any()) for data in pilot)
        return cls(
            columns,
            jnp.asarray(location, jnp.float32),
            jnp.asarray(np.where(spread > SMALLEST_SPREAD, spread, 1.0), jnp.float32),
            pilot[0].shape[1] if absent else 0,
        )

    def __call__(self, data: jax.Array, fraction: float = 1.0) -> jax.Array:
        """Return the scaled columns; where their number varies, observations may count as a `fraction` of theirs."""
        scaled = squash((self.columns(data) - self.location) / self.spread)
        if not self.largest:
            return scaled
        present = ~jnp.isnan(data.reshape(*data.shape[:2], -1)).any(axis=2)
        number = fraction * present.sum(axis=1, keepdims=True)
        log_size = 4.0 * jnp.log(number) / np.log(max(self.largest, 2)) - 2.0
        return jnp.concatenate([scaled, log_size, number / self.largest], axis=1)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        return InputLayout(0, self.location.size + (2 if self.largest else 0))


FREE_WIDTH = 64
FREE_DEPTH = 3


class FreeNetwork(AbstractNetwork):
    """Dense layers on everything that is known of the data: given time, it can learn any answer.

    Its matrices take Muon's steps, with which it learned the same from a quarter of the time of Adam's.
    """

    orthogonal: ClassVar[bool] = True

    layers: eqx.nn.MLP

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        self.layers = eqx.nn.MLP(layout.width, num_models - 1, FREE_WIDTH, FREE_DEPTH, activation=jax.nn.gelu, key=key)

    def __call__(self, inputs: jax.Array) -> jax.Array:
        return jax.vmap(self.layers)(inputs)
