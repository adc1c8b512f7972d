"""The Bayesian GAN: a generator of parameters from data and noise, and a critic of pairs of data and parameters.

After Wang and Rockova (2022), https://arxiv.org/abs/2208.12113. Two things differ from theirs, both measured
(docs/design.md). The critic compares a true pair with a generated one of the same data (the relativistic pairing of
Jolicoeur-Martineau, 2018, https://arxiv.org/abs/1807.00734), its slope penalised at both, in place of the Wasserstein
distance. And the game is played in a frame, a location and a scale of the parameters given the data, which regression
finds by itself: posteriors are often a hundred times narrower than their prior, and without it the critic would have
to find them first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from deepbf._compilation import FITS_HELD
from deepbf.criticism.posterior_network import AbstractPosteriorNetwork, bounded, mlp, scaled_down
from deepbf.networks.base import InputLayout
from deepbf.training.optimise import LARGEST_GRADIENT, NetworkForm, num_weights

NUM_CONTEXT = 32
WIDTH = 64
# Draws for the score of one pair.
NUM_SCORED = 8
# On the squared slope of the critic, per frame's scale.
PENALTY = 0.5
# Learning rates as multiples of the frame's: the critic must keep ahead of what it judges.
GENERATOR_RATE = 0.2
CRITIC_RATE = 0.6
# Little momentum, for each player's gradient turns with the other's moves.
MOMENTUM, FORGETTING = 0.5, 0.99


class Pairs(NamedTuple):
    """Prepared data sets and, in their frames, the parameters that made them and generated ones."""

    summaries: jax.Array
    true: jax.Array
    generated: jax.Array


class Frame(eqx.Module):
    """A location and a log scale for each parameter given one prepared data set; a part of the location is linear."""

    straight: eqx.nn.Linear
    layers: eqx.nn.MLP
    num_linear: int = eqx.field(static=True)

    def __init__(self, layout: InputLayout, *, width: int, key: jax.Array) -> None:
        keys = jax.random.split(key)
        straight = eqx.nn.Linear(layout.num_linear, layout.obs_dim, use_bias=False, key=keys[0])
        # Starting flat: the bend, not chance, decides what the first steps look like.
        self.straight = eqx.tree_at(lambda layer: layer.weight, straight, 0.0 * straight.weight)
        self.layers = scaled_down(mlp(layout.num_summary, 2 * layout.obs_dim, width, 2, key=keys[1]), 0.1)
        self.num_linear = layout.num_linear

    def __call__(self, summary: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return location and log scale, one entry per parameter."""
        location, log_scale = jnp.split(self.layers(summary), 2)
        return location + self.straight(summary[: self.num_linear]), bounded(log_scale)


class Generator(eqx.Module):
    """From what the data say and noise to parameters in their frame; starts by returning the noise."""

    context: eqx.nn.MLP
    layers: eqx.nn.MLP

    def __init__(self, layout: InputLayout, *, key: jax.Array) -> None:
        keys = jax.random.split(key)
        self.context = mlp(layout.num_summary, NUM_CONTEXT, WIDTH, 2, key=keys[0])
        self.layers = scaled_down(mlp(NUM_CONTEXT + layout.obs_dim, layout.obs_dim, WIDTH, 2, key=keys[1]), 0.1)

    def __call__(self, summary: jax.Array, noise: jax.Array) -> jax.Array:
        """Return one draw for each row of the noise, shape (num_draws, coordinates)."""
        context = self.context(summary)
        return jax.vmap(lambda one: one + self.layers(jnp.concatenate([context, one])))(noise)


class Critic(eqx.Module):
    """How true a pair of data and parameters looks, the parameters in their frame."""

    context: eqx.nn.MLP
    layers: eqx.nn.MLP

    def __init__(self, layout: InputLayout, *, key: jax.Array) -> None:
        keys = jax.random.split(key)
        self.context = mlp(layout.num_summary, NUM_CONTEXT, WIDTH, 2, key=keys[0])
        self.layers = mlp(NUM_CONTEXT + layout.obs_dim, 1, WIDTH, 2, key=keys[1])

    def compare(self, pairs: Pairs) -> tuple[jax.Array, jax.Array]:
        """Return how much truer the true pairs look than the generated ones, and the squared slopes at both."""
        contexts = jax.vmap(self.context)(pairs.summaries)
        look = jax.vmap(jax.value_and_grad(lambda params, context: self.layers(jnp.concatenate([context, params]))[0]))
        (true, true_slope), (generated, generated_slope) = look(pairs.true, contexts), look(pairs.generated, contexts)
        return true - generated, jnp.sum(true_slope**2 + generated_slope**2, axis=1)


class BayesianGan(AbstractPosteriorNetwork):
    """Frame, generator and critic, trained together; only the first two are asked afterwards."""

    frame: Frame
    generator: Generator
    critic: Critic
    num_summary: int = eqx.field(static=True)
    num_params: int = eqx.field(static=True)

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        del num_models
        keys = jax.random.split(key, 3)
        self.frame = Frame(layout, width=WIDTH, key=keys[0])
        self.generator = Generator(layout, key=keys[1])
        self.critic = Critic(layout, key=keys[2])
        self.num_summary, self.num_params = layout.num_summary, layout.obs_dim

    @property
    def num_noise(self) -> int:
        return self.num_params

    def __call__(self, inputs: jax.Array) -> jax.Array:
        """Return the energy score of a few draws at the true parameters, shape (batch, 1).

        Proper, so least on average for draws of the posterior itself (Gneiting and Raftery, 2007); the critic, which
        changes all the while, could not compare weights of different times.
        """
        # Always the same noise: weights are compared, not noises.
        noise = jax.random.normal(jax.random.key(0), (NUM_SCORED, self.num_noise))

        def score(row: jax.Array) -> jax.Array:
            draws = self.draw(row[: self.num_summary], noise)
            to_truth = jnp.linalg.norm(draws - row[self.num_summary :], axis=1).mean()
            apart = jnp.linalg.norm(draws[:, None] - draws, axis=2).sum() / (NUM_SCORED * (NUM_SCORED - 1))
            return to_truth - 0.5 * apart

        return jax.vmap(score)(inputs)[:, None]

    def draw(self, summary: jax.Array, noise: jax.Array) -> jax.Array:
        location, log_scale = self.frame(summary)
        return location + jnp.exp(log_scale) * self.generator(summary, noise)

    def loss(self, batch: jax.Array, step: jax.Array) -> jax.Array:
        """Return the sum whose gradient moves frame, generator and critic each towards its own end."""
        summaries, params = batch[0, :, : self.num_summary], batch[0, :, self.num_summary :]
        location, log_scale = jax.vmap(self.frame)(summaries)
        in_frame = (params - location) * jnp.exp(-log_scale)
        # The log density of a normal: its best location and scale are the posterior mean and standard deviation.
        frame_loss = jnp.sum(0.5 * in_frame**2 + log_scale, axis=1).mean()
        noise = jax.random.normal(jax.random.fold_in(jax.random.key(0), step), (len(summaries), 1, self.num_noise))
        generated = jax.vmap(self.generator)(summaries, noise)[:, 0]
        pairs = Pairs(summaries, jax.lax.stop_gradient(in_frame), generated)
        ahead, slopes = self.critic.compare(pairs._replace(generated=jax.lax.stop_gradient(generated)))
        critic_loss = jax.nn.softplus(-ahead).mean() + PENALTY * slopes.mean()
        # The same comparison, seen by the generator: the critic's weights stand still.
        still = jax.tree.map(lambda leaf: jax.lax.stop_gradient(leaf) if eqx.is_array(leaf) else leaf, self.critic)
        ahead, _ = still.compare(pairs)
        return frame_loss + critic_loss + jax.nn.softplus(ahead).mean()


@lru_cache(FITS_HELD)
def three_rates(form: NetworkForm) -> optax.GradientTransformation:
    """Return an optimiser with a learning rate for each of frame, generator and critic.

    It is Adam with little momentum, for each player's gradient turns with the other's moves; its updates are multiplied
    by 1 for the frame, GENERATOR_RATE and CRITIC_RATE for the two players, before the schedule's own rate.
    """
    gan = cast(BayesianGan, form.blank)
    rates = [
        np.full(num_weights(part), rate, np.float32)
        for part, rate in zip((gan.frame, gan.generator, gan.critic), (1.0, GENERATOR_RATE, CRITIC_RATE), strict=True)
    ]
    # Weights are flattened in the order of the fields.
    flat = np.concatenate(rates)
    return optax.chain(
        optax.clip_by_global_norm(LARGEST_GRADIENT),
        optax.scale_by_adam(b1=MOMENTUM, b2=FORGETTING),
        optax.stateless(lambda updates, params: flat * cast(jax.Array, updates)),
    )
