"""The trained map from data and noise to parameters, stage by stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.criticism.conditioning import AbstractPosteriorNetwork, ParameterScale
from deepbf.criticism.joint_model import inside
from deepbf.models.model import Params
from deepbf.models.transform import Unconstrained
from deepbf.networks import AbstractPreparation
from deepbf.networks.ensemble import compile_evaluation, in_batches
from deepbf.standardise import Standardiser
from deepbf.training import TrainingRecord

# Draws computed at once: enough to keep the processor busy, few enough for the cache.
DRAWS_AT_ONCE = 65_536
# Data sets summarised at once.
DATASETS_AT_ONCE = 512


@dataclass(frozen=True)
class TrainedPosterior:
    """The trained map from data and noise to parameters, in its stages."""

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
        return compile_evaluation(self.preparation)

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
