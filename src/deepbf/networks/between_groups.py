"""How groups differ: moments over the groups of a data set, whatever their number."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from deepbf.networks.squash import squash

# Far below the variance between groups of any size that is simulated, far above rounding in float32.
SMALLEST_VARIANCE = 1e-8


def between_groups(features: jax.Array, sizes: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return moments over groups, (batch, moments), and each group relative to the others, (batch, groups, features).

    Groups count equally, and again by their sizes: where groups hardly differ large ones are known better, where
    they differ much all are known equally well.
    """
    there = (sizes > 0).astype(jnp.float32)
    weights = jnp.stack([there, sizes], axis=1)
    # At least 1, for a simulated data set without a single group.
    totals = jnp.maximum(weights.sum(axis=2), 1.0)
    shares = weights / totals[..., None]
    log_sizes = jnp.log(jnp.maximum(sizes, 1.0))[..., None]
    columns = jnp.concatenate([features, log_sizes], axis=2)
    means = jnp.einsum("bwg,bgd->bwd", shares, columns)
    centred = columns[:, None] - means[:, :, None, :]
    variances = jnp.einsum("bwg,bwgd->bwd", shares, centred * centred)
    # Fenced off, or the compiler writes out all that leads up to it once more in each of its uses.
    relative = jax.lax.optimization_barrier(
        there[..., None] * centred[:, 1] / jnp.sqrt(variances[:, 1, None, :] + SMALLEST_VARIANCE)
    )
    equal_shares = shares[:, 0, :, None]
    by_column = [means, squash(variances), jnp.log(variances + SMALLEST_VARIANCE)]
    moments = [
        *(part.reshape(part.shape[0], -1) for part in by_column),
        squash((equal_shares * jnp.concatenate([relative**3, relative**4], axis=2)).sum(axis=1)),
        _correlations(equal_shares * relative, relative),
        jnp.log(totals),
    ]
    return jnp.concatenate(moments, axis=1), relative


def _correlations(weighted: jax.Array, relative: jax.Array) -> jax.Array:
    """Return correlations over groups, of the features with each other and with the logarithm of the size."""
    products = jnp.einsum("bgi,bgj->bij", weighted, relative)
    return squash(products[:, *np.triu_indices(relative.shape[2], k=1)])
