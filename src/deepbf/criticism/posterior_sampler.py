"""PosteriorSampler: draws from a model's posterior at any data set, without training again.

`TrainedPosterior` is the trained map inside it, from data and noise to parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf import _checks
from deepbf._compilation import compiled, in_batches
from deepbf.criticism.beside_parameters import inside
from deepbf.criticism.posterior_network import AbstractPosteriorNetwork, ParameterScale
from deepbf.layout.data_layout import Data, DataLayout
from deepbf.layout.structure import check_observations, is_absent
from deepbf.models.model import Model, Params, masked_where_absent
from deepbf.models.transform import Unconstrained
from deepbf.networks.base import AbstractPreparation, prepare
from deepbf.standardise import Standardiser
from deepbf.training.trained import TrainingRecord

# Draws computed at once: enough to keep the processor busy, few enough for the cache.
DRAWS_AT_ONCE = 65_536
# Data sets summarised at once.
DATASETS_AT_ONCE = 512

# The most values that a simulator is asked for at once.
VALUES_AT_ONCE = 4_000_000
# Parameters and data are drawn by seeds of their own.
PARAMS_KEY, DATA_KEY = 0, 1
NOTHING_TRAINED = TrainingRecord(0, 0, 0.0, math.nan, "nothing to train")


@dataclass(frozen=True)
class TrainedPosterior:
    """The trained map from data and noise to parameters, in its stages.

    Data are standardised, prepared (summarised) and read by the network, which turns noise into draws on its own scale;
    those are unscaled to standardised parameters, to unconstrained ones, and to the model's own.
    """

    standardiser: Standardiser
    preparation: AbstractPreparation
    network: AbstractPosteriorNetwork
    scale: ParameterScale
    parameter_standardiser: Standardiser
    unconstrained: Unconstrained
    record: TrainingRecord

    def to_params(self, drawn: NDArray[np.float32]) -> Params:
        """Return drawn parameters, shape (draws, coordinates), as the model's prior lays them out."""
        standardiser = self.parameter_standardiser
        real = self.scale.inverse(drawn) * standardiser.scale + standardiser.location
        flat, _ = self.unconstrained.to_params(real)
        return self.unconstrained.unflatten(inside(self.unconstrained, flat))

    @cached_property
    def summarise(self) -> Callable[[jax.Array], jax.Array]:
        """The map from standardised data to what the network reads."""
        return compiled(prepare, self.preparation)

    @cached_property
    def draw(self) -> Callable[[jax.Array, jax.Array], jax.Array]:
        """The map from prepared data sets and noise for each to draws."""
        return jax.jit(jax.vmap(lambda summary, noise: self.network.draw(summary, noise)))

    def draw_many(self, data: NDArray[np.generic], num_draws: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """Return draws on the network's scale, shape (data sets, num_draws, coordinates), of checked data sets."""
        summaries = in_batches(self.summarise, data, min(len(data), DATASETS_AT_ONCE), before=self.standardiser)
        at_once = min(len(data), max(1, DRAWS_AT_ONCE // num_draws))
        blocks = []
        for start in range(0, len(data), at_once):
            block = summaries[start : start + at_once]
            num_rows = len(block)
            # The last block is filled up, so that one program serves all.
            block = np.concatenate([block, np.repeat(block[-1:], at_once - num_rows, axis=0)])
            noise = rng.standard_normal((at_once, num_draws, self.network.num_noise), np.float32)
            blocks.append(np.asarray(self.draw(jnp.asarray(block), jnp.asarray(noise)))[:num_rows])
        return np.concatenate(blocks)


@dataclass(frozen=True)
class PosteriorSampler:
    """A trained sampler of one model's posterior, for any data set of the right shape.

    Get one from `deepbf.fit_posterior`.

    Parameters
    ----------
    model
        The model whose posterior it is.
    method
        How it was trained, by name.
    layout
        What its data sets look like.
    trained
        The trained map; None for a model without parameters.
    """

    model: Model
    method: str
    layout: DataLayout
    trained: TrainedPosterior | None = field(default=None, repr=False)

    @property
    def structure(self) -> str | dict[str, str]:
        """How data are laid out, by name."""
        return self.layout.structure

    @property
    def num_obs(self) -> tuple[int, int] | None:
        """The fewest and the most observations of a data set, if that is a range."""
        return self.layout.num_obs

    @property
    def record(self) -> TrainingRecord:
        """What training did; nothing, for a model without parameters."""
        return NOTHING_TRAINED if self.trained is None else self.trained.record

    def sample(self, observed: Data, num_draws: int = 1000, *, seed: int = 0, extrapolate: bool = False) -> Any:
        """Return draws of the parameters given one data set, laid out as the model's prior draws them.

        An array with leading axis `num_draws`, or a dict of such arrays; None for a model without parameters. With
        `extrapolate`, data sets may have more or fewer observations than any in training, with a warning.
        """
        num_draws, seed = _checks.check_count("num_draws", num_draws), _checks.check_seed("seed", seed)
        data = self.layout.check_one("observed", observed, extrapolate=extrapolate)
        return self._draw_params(data, num_draws, seed)

    def sample_many(self, data: Data, num_draws: int = 1000, *, seed: int = 0, extrapolate: bool = False) -> Any:
        """Return draws of the parameters given each of many data sets: leading axes (data sets, num_draws).

        `data` has data sets along a leading axis; where their number of observations may vary, it may be a list.
        """
        num_draws, seed = _checks.check_count("num_draws", num_draws), _checks.check_seed("seed", seed)
        checked = self.layout.check("data", data, extrapolate=extrapolate)
        drawn = self._draw_params(checked, num_draws, seed)
        by_dataset = (len(checked), num_draws)
        if isinstance(drawn, Mapping):
            return {name: array.reshape(*by_dataset, *array.shape[1:]) for name, array in drawn.items()}
        return None if drawn is None else drawn.reshape(*by_dataset, *drawn.shape[1:])

    def predictive(self, observed: Data, num_draws: int = 1000, *, seed: int = 0, extrapolate: bool = False) -> Any:
        """Return data sets from the posterior predictive distribution, one for each of `num_draws` posterior draws.

        They are as the simulator returns them, with as many observations as `observed` if the sampler is for a range.
        Those of a model without parameters do not depend on `observed` otherwise.
        """
        num_draws, seed = _checks.check_count("num_draws", num_draws), _checks.check_seed("seed", seed)
        data = self.layout.check_one("observed", observed, extrapolate=extrapolate)
        num_obs = None if self.layout.asked is None else int(self.layout.count(data)[0])
        params = self._draw_params(data, num_draws, seed)
        return masked_where_absent(self._simulate(params, num_draws, _part_seed(seed, DATA_KEY), num_obs))

    def leave_one_out(
        self, observed: Data, num_draws: int = 1000, *, seed: int = 0, extrapolate: bool = False
    ) -> NDArray[Any]:
        """Return predictive draws of each observation given all others, shape (observations, num_draws, ...).

        The observations must be exchangeable, and independent given the parameters. The sampler must be for a range
        that includes one observation fewer than `observed` has, or have been fitted at exactly so many.
        """
        num_draws, seed = _checks.check_count("num_draws", num_draws), _checks.check_seed("seed", seed)
        layout = self.layout
        if layout.packed or not layout.arrays[0].structure.any_order:
            raise ValueError(
                f"leave_one_out needs exchangeable observations, structure='exchangeable'; this sampler has structure="
                f"{layout.structure!r}. Fit it for data laid out as observations along one axis."
            )
        values = _checks.check_numeric_array("observed", observed)
        if values.ndim != len(layout.shape):
            raise ValueError(
                f"observed must be one data set, with {len(layout.shape)} axes, the first over observations; received "
                f"an array of shape {values.shape}."
            )
        check_observations("observed", values, layout.shape)
        num_rest = len(values) - 1
        low, high = layout.num_obs or (layout.shape[0],) * 2
        if num_rest < 1 or (layout.num_obs is None and num_rest != high):
            fitted = f"{high}" if low == high else f"{low} to {high}"
            raise ValueError(
                f"leave_one_out needs the posterior given one observation fewer than the {len(values)} observed; this "
                f"sampler is for {fitted}. Fit it with num_obs=({max(num_rest, 1)}, {max(num_rest, 1) + 1})."
            )
        others = np.arange(num_rest)[None, :] + (np.arange(num_rest)[None, :] >= np.arange(len(values))[:, None])
        rests = layout.check("observed without one observation", values[others], extrapolate=extrapolate)
        params = self._draw_params(rests, num_draws, seed)
        drawn = np.concatenate(list(self._one_observation_each(params, len(rests) * num_draws, seed)))
        return drawn.reshape(len(rests), num_draws, *drawn.shape[1:])

    def __repr__(self) -> str:
        if self.trained is None:
            return f"PosteriorSampler({self.model.name}, without parameters)"
        record = self.trained.record
        return (
            f"PosteriorSampler({self.model.name}; {self.method}; {record.num_simulations:,} simulations, "
            f"{record.seconds:.0f} s, held-out loss {record.held_out_loss:.4f})"
        )

    def _draw_params(self, data: NDArray[np.generic], num_draws: int, seed: int) -> Params:
        """Return draws given each of these data sets, one after the other along one leading axis."""
        if self.trained is None:
            return None
        if len(data) == 0:
            raise ValueError("data holds no data set; pass at least one.")
        drawn = self.trained.draw_many(data, num_draws, np.random.default_rng(_part_seed(seed, PARAMS_KEY)))
        return self.trained.to_params(drawn.reshape(-1, drawn.shape[2]))

    def _simulate(self, params: Params, size: int, seed: np.random.SeedSequence, num_obs: int | None) -> Any:
        if params is None:
            return self.model.simulate(size, seed, num_obs).data
        return self.model.simulate_given(params, seed, num_obs)

    def _one_observation_each(self, params: Params, size: int, seed: int) -> Iterator[NDArray[np.generic]]:
        """Yield one simulated observation for each of the parameters, block by block."""
        # The fewest that the simulator is known to draw; the first that is there does, for they are exchangeable.
        num_obs = None if self.layout.asked is None else self.layout.asked.low
        values_each = math.prod(self.layout.shape[1:]) * (num_obs or self.layout.shape[0])
        at_once = max(1, VALUES_AT_ONCE // values_each)
        for block, start in enumerate(range(0, size, at_once)):
            rows = slice(start, min(size, start + at_once))
            if isinstance(params, Mapping):
                chosen: Params = {name: array[rows] for name, array in params.items()}
            else:
                chosen = None if params is None else params[rows]
            data = self._simulate(chosen, rows.stop - rows.start, _part_seed(seed, DATA_KEY, block), num_obs)
            present = ~is_absent(data).reshape(*data.shape[:2], -1).any(axis=2)
            yield data[np.arange(len(data)), present.argmax(axis=1)]


def _part_seed(seed: int, *key: int) -> np.random.SeedSequence:
    """Return the seed of one part of the work."""
    return np.random.SeedSequence(seed, spawn_key=key)
