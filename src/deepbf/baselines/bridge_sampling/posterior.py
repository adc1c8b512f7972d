"""Posterior draws by blackjax's NUTS, many data sets and chains in one compiled program."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.baselines.bridge_sampling.log_density import ModelDensity

NUM_WARM_UP = 500
# Prior draws among which each chain picks its start, in proportion to their posterior density.
NUM_STARTS = 256
# Data sets sampled together: enough to keep the processor busy, few enough for memory.
DATASETS_AT_ONCE = 100


class PosteriorDraws(NamedTuple):
    """Unconstrained draws, shape (data sets, chains, draws, d), and how often the sampler diverged, a data set."""

    draws: NDArray[np.float64]
    num_divergent: NDArray[np.int64]


def import_blackjax() -> Any:
    """Return blackjax, or say which extra brings it."""
    try:
        import blackjax
    except ImportError as error:
        raise ImportError("bridge sampling needs blackjax. Install it with: pip install 'deepbf[bridge]'") from error
    return blackjax


def draw_posterior(
    density: ModelDensity, observed: NDArray[np.generic], *, num_draws: int, num_chains: int, seed: int
) -> PosteriorDraws:
    """Return draws from the posterior given each observed data set."""
    params = density.model.simulate(NUM_STARTS, seed).params
    real = density.space.to_real(density.space.flatten(params))
    # A prior may reach so close to a bound that its draws are rounded onto it.
    starts = jnp.asarray(real[np.isfinite(real).all(axis=1)])
    check_possible(density, starts, observed)
    run = jax.jit(jax.vmap(_make_sampler(density, starts, num_draws, num_chains)))
    parts = []
    for begin in range(0, len(observed), DATASETS_AT_ONCE):
        batch = observed[begin : begin + DATASETS_AT_ONCE]
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed % 2**32), begin), len(batch))
        draws, num_divergent = run(keys, jnp.asarray(batch))
        parts.append(PosteriorDraws(np.asarray(draws), np.asarray(num_divergent)))
    return PosteriorDraws(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def check_possible(density: ModelDensity, starts: jax.Array, observed: NDArray[np.generic]) -> None:
    """Raise where a data set has likelihood 0 at every start: no chain could begin."""
    at_starts = jax.jit(jax.vmap(density, (0, None)))
    for index, data in enumerate(observed):
        if not np.isfinite(np.asarray(at_starts(starts, jnp.asarray(data)))).any():
            raise ValueError(
                f"observed data set {index} has likelihood 0 at {len(starts)} draws from the prior of model "
                f"{density.model.name!r}: it may be impossible under that model, and a Bayes factor infinite. Leave it "
                "out, or check log_likelihood."
            )


def _make_sampler(density: ModelDensity, starts: jax.Array, num_draws: int, num_chains: int) -> Any:
    blackjax = import_blackjax()

    def one_chain(key: jax.Array, data: jax.Array) -> tuple[jax.Array, jax.Array]:
        def log_density(real: jax.Array) -> jax.Array:
            return density(real, data)

        start_key, warm_up_key, draw_key = jax.random.split(key, 3)
        log_densities = jax.vmap(log_density)(starts)
        usable = jnp.where(jnp.isfinite(log_densities), log_densities, -jnp.inf)
        start = starts[jax.random.categorical(start_key, usable)]
        # Its own record of every warm-up step would fill the memory.
        warm_up = blackjax.window_adaptation(blackjax.nuts, log_density, adaptation_info_fn=lambda *_: None)
        (state, tuned), _ = warm_up.run(warm_up_key, start, num_steps=NUM_WARM_UP)
        step = blackjax.nuts(log_density, **tuned).step

        def advance(state: Any, step_key: jax.Array) -> tuple[Any, tuple[jax.Array, jax.Array]]:
            state, info = step(step_key, state)
            return state, (state.position, info.is_divergent)

        _, (draws, divergent) = jax.lax.scan(advance, state, jax.random.split(draw_key, num_draws))
        return draws, divergent.sum()

    def one_dataset(key: jax.Array, data: jax.Array) -> tuple[jax.Array, jax.Array]:
        draws, num_divergent = jax.vmap(one_chain, (0, None))(jax.random.split(key, num_chains), data)
        return draws, num_divergent.sum()

    return one_dataset


def effective_draws(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many independent draws the chains are worth, shape (data sets,), from (data sets, chains, draws)."""
    blackjax = import_blackjax()
    num_draws = values.shape[1] * values.shape[2]
    by_chain = jnp.moveaxis(jnp.asarray(values), 0, 2)
    sizes = np.asarray(blackjax.diagnostics.effective_sample_size(by_chain, chain_axis=0, sample_axis=1))
    sizes = sizes.reshape(len(values))
    # Anticorrelated draws are not credited with more than they are, and chains that never moved with one.
    return np.where(sizes > 0, np.clip(sizes, 1.0, num_draws), 1.0)


def scale_reduction(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the potential scale reduction of each data set's chains; 1 when they agree, and for a single chain."""
    if values.shape[1] == 1:
        return np.ones(len(values))
    blackjax = import_blackjax()
    by_chain = jnp.moveaxis(jnp.asarray(values), 0, 2)
    reduction = np.asarray(blackjax.diagnostics.potential_scale_reduction(by_chain, chain_axis=0, sample_axis=1))
    return np.nan_to_num(reduction.reshape(len(values)), nan=1.0)
