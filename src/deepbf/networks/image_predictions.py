"""How well pixels are predicted from those before them, by what each model's images teach about neighbours.

Of a Gaussian field the log density is a sum over pixels: of log variances, and of squared errors of the best linear
prediction from the pixels before them, row by row. Few neighbours say almost all that the others do (Vecchia 1988).
With the scale of the field unknown, the density depends on the sum of squares alone, whatever its distribution is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.special import softmax

from deepbf._compilation import compiled
from deepbf.networks.base import Pilot, Storable
from deepbf.networks.features import SMALLEST_DEVIATION, log_density_of_scale

Floats = NDArray[np.float64]

# Neighbours are at most this far away. For two kinds of Gaussian fields of 16 x 16 pixels the log Bayes factor made of
# predictions alone was off by 0.61 with a radius of 3, 0.42 with 4 and 0.37 with 5 (root mean square inside 1:1000,
# throwaway script); with the fields' own covariances by 0.51, 0.22 and 0.08.
LARGEST_RADIUS = 5
# A model's images are a mixture of so many kinds, told apart by how they correlate: one kind for all length scales of
# a model was off by 1.5 instead of 0.6 (radius 3). Rounds that fit the kinds to the images that they explain best took
# the 0.37 above to 0.15; more than five gained nothing.
NUM_KINDS = 3
NUM_ROUNDS = 5
# Kinds at most, over all models.
MOST_KINDS = 12
# Offsets whose correlations images are first told apart by.
FIRST_OFFSETS = ((0, 1), (1, 0), (1, 1), (1, -1), (0, 2), (2, 0))
# Of the variance: the least of its eigenvalues that are believed, and the least variance of errors.
SMALLEST_EIGENVALUE = 1e-4
# Of the mean square of an image, added to errors before their logarithm is taken.
SMALLEST_ERROR = 1e-6
SMALLEST_SQUARE = 1e-30
# From here on pixels at the edges are left out: they are few, and each has weights of its own.
MOST_WITH_EDGES = 4096
# Values described at a time: what is computed of them stays in the processor's cache.
VALUES_AT_A_TIME = 32_768
# Values of each model that covariances are taken from: 4,096 images of 16 x 16 pixels.
MOST_FOR_COVARIANCES = 2**20


def in_blocks(describe: Callable[[jax.Array], jax.Array], data: jax.Array) -> jax.Array:
    """Return what `describe` says of a few images at a time, shape (batch, features)."""
    size = max(1, min(len(data), VALUES_AT_A_TIME // math.prod(data.shape[1:])))
    padded = jnp.pad(data, ((0, -len(data) % size), *[(0, 0)] * (data.ndim - 1)))
    described = jax.lax.map(describe, padded.reshape(-1, size, *data.shape[1:]))
    return described.reshape(len(padded), -1)[: len(data)]


class Predictions(Storable):
    """Log mean squared errors of predictions, and the log evidence of each model that they make.

    Each channel has several kinds of weights, as many for one model as for another. `weights` has the shape (channels,
    kinds, rows, columns, neighbours), where rows and columns run over how many of a pixel's neighbours lie beyond the
    edges: 0 to the radius rows above, and columns from all on the left to all on the right. `log_variances` of the
    errors have the same shape without neighbours. `scale`, shape (2, channels, kinds), has the mean and the standard
    deviation of the log mean squared error of images of each kind.
    """

    weights: jax.Array
    log_variances: jax.Array
    scale: jax.Array
    num_models: int = eqx.field(static=True)
    radius: int = eqx.field(static=True)

    @classmethod
    def fit(cls, pilot: Pilot) -> Predictions:
        """Return the predictions for images like these, one array per model."""
        rows, columns = pilot[0].shape[1:3]
        radius = max(1, min(LARGEST_RADIUS, rows - 1, (columns - 1) // 2))
        num_kinds = max(1, min(NUM_KINDS, MOST_KINDS // len(pilot)))
        most = max(64, MOST_FOR_COVARIANCES // (rows * columns))
        by_model = [data[:most].reshape(*data[:most].shape[:3], -1) for data in pilot]
        found = [
            _fit_kinds(np.moveaxis(images[..., [channel]], 3, 1), radius, num_kinds)
            for channel in range(by_model[0].shape[3])
            for images in by_model
        ]
        num_channels, parts = by_model[0].shape[3], list(zip(*found, strict=True))
        weights, log_variances, scale = (
            np.concatenate(one).reshape(num_channels, -1, *one[0].shape[1:]) for one in parts
        )
        return cls.of(weights, log_variances, scale, len(pilot), radius)

    @classmethod
    def of(cls, weights: Floats, log_variances: Floats, scale: Floats, num_models: int, radius: int) -> Predictions:
        """Return the predictions with these arrays, each with channels and kinds as its leading axes."""
        found = (jnp.asarray(one, jnp.float32) for one in (weights, log_variances, np.moveaxis(scale, 2, 0)))
        return cls(next(found), next(found), next(found), num_models, radius)

    @property
    def num_features(self) -> int:
        """How many columns there are: one per model, and one per kind and channel."""
        return self.num_models + math.prod(self.weights.shape[:2])

    def __call__(self, images: jax.Array) -> jax.Array:
        """Return (batch, features) from images of shape (batch, channels, rows, columns).

        First the log evidence of each model against the mean of all, then the log errors.
        """
        log_errors, log_densities = self.log_densities(images)
        by_model = log_densities.reshape(*log_densities.shape[:2], self.num_models, -1)
        evidence = jax.nn.logsumexp(by_model, axis=3).sum(axis=1)
        against = evidence - evidence.mean(axis=1, keepdims=True)
        return jnp.concatenate([against, log_errors.reshape(len(images), -1)], axis=1)

    def log_densities(self, images: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return log mean squared errors, and log densities, each of shape (batch, channels, kinds).

        Errors are in units of the image's root mean square, and of their own standard deviations. The log density of
        an elliptical distribution, up to a constant that is the same for all kinds, is::

            -1/2 sum(log variances) - n/2 log(errors) + log p(log(errors in the units of the data))

        for n pixels. The last term is the density of Student's t, a bell with cautious tails.
        """
        (rows, columns), radius = images.shape[2:], self.radius
        # About 0, and in units of the image's own size: nothing overflows.
        square = jnp.mean(images * images, axis=(2, 3), keepdims=True)
        sized = images / jnp.sqrt(square + SMALLEST_SQUARE)
        above, place = np.minimum(np.arange(rows), radius), np.arange(columns)
        beside = radius + np.minimum(place - radius, 0) + np.maximum(place - (columns - 1 - radius), 0)
        padded = jnp.pad(sized, ((0, 0), (0, 0), (radius, 0), (radius, radius)))
        if rows * columns > MOST_WITH_EDGES:
            above, beside = np.array([radius]), np.array([radius])
            padded, sized = sized, sized[:, :, radius:, radius : columns - radius]
        weights = self.weights[:, :, above][:, :, :, beside]
        log_variances = self.log_variances[:, :, above][:, :, :, beside]
        errors = sized[:, :, None]
        for k, (down, right) in enumerate(neighbours_before(radius)):
            top, left = radius + down, radius + right
            near = padded[:, :, top : top + sized.shape[2], left : left + sized.shape[3]]
            errors = errors - weights[..., k] * near[:, :, None]
        log_errors = jnp.log(jnp.mean(errors * errors * jnp.exp(-log_variances), axis=(3, 4)) + SMALLEST_ERROR)
        mean, deviation = self.scale
        log_scale = log_density_of_scale(log_errors + jnp.log(square[:, :, 0] + SMALLEST_SQUARE), mean, deviation)
        return log_errors, log_scale - 0.5 * rows * columns * (log_errors + log_variances.mean(axis=(2, 3)))


def neighbours_before(radius: int) -> list[tuple[int, int]]:
    """Return the offsets within the radius of pixels that come before one, row by row.

    Examples
    --------
    >>> neighbours_before(1)
    [(-1, 0), (0, -1)]
    """
    steps = range(-radius, radius + 1)
    return [
        (down, right)
        for down in steps
        for right in steps
        if (down, right) < (0, 0) and math.hypot(down, right) <= radius
    ]


def _fit_kinds(images: NDArray[np.float32], radius: int, num_kinds: int) -> tuple[Floats, Floats, Floats]:
    """Return weights, log variances and scales for one channel of one model: a mixture of kinds of images, by EM.

    `images` has shape (images, 1, rows, columns).
    """
    products = _products(images[:, 0].astype(np.float64), 2 * radius)
    squared = products * products
    # Each image in units of its own mean square, and in later rounds of its errors.
    own = np.maximum(products[:, 2 * radius, 2 * radius, None], SMALLEST_SQUARE)
    squares = np.repeat(own, num_kinds, axis=1)
    shares = _first_shares(products, 2 * radius, num_kinds)
    for _ in range(NUM_ROUNDS - 1):
        kinds = _fit_to_shares(products, squared, shares, squares, radius)
        predictions = Predictions.of(kinds[0][None], kinds[1][None], kinds[2][None], 1, radius)
        found = np.asarray(compiled(_log_densities, predictions)(jnp.asarray(images)), np.float64)
        log_errors, log_densities = np.split(found, 2, axis=1)
        shares, squares = softmax(log_densities, axis=1), own * np.exp(log_errors)
    return _fit_to_shares(products, squared, shares, squares, radius)


def _log_densities(predictions: Predictions, images: jax.Array) -> jax.Array:
    """Return the two results of `Predictions.log_densities` side by side."""
    return in_blocks(lambda some: jnp.concatenate(predictions.log_densities(some), axis=2), images)


def _fit_to_shares(
    products: Floats, squared: Floats, shares: Floats, squares: Floats, radius: int
) -> tuple[Floats, Floats, Floats]:
    """Return weights, log variances and scales of each kind, of which each image has a share, in units of its own."""
    kinds = []
    for share, square in zip(shares.T, squares.T, strict=True):
        # A kind that explains no image is that of all of them.
        counts = share if share.sum() > 1 else np.ones(len(share))
        counts = counts / counts.sum()
        log_square = np.log(square)
        mean = counts @ log_square
        deviation = math.sqrt(counts @ (log_square - mean) ** 2)
        covariances = _steady_means(products, squared, counts, square)
        kinds.append((*_fit_weights(covariances, radius), np.array([mean, max(deviation, SMALLEST_DEVIATION)])))
    weights, log_variances, scale = (np.stack(one) for one in zip(*kinds, strict=True))
    return weights, log_variances, scale


def _products(images: Floats, reach: int) -> Floats:
    """Return means of products at offsets up to `reach`, 0 where images are smaller.

    That at the offset (i, j) is at index (reach + i, reach + j) of each image.
    """
    rows, columns = images.shape[1:]
    down, right = min(reach, rows - 1), min(reach, columns - 1)
    padded = (rows + down, columns + right)
    sums = np.fft.irfft2(np.abs(np.fft.rfft2(images, s=padded)) ** 2, s=padded)
    i, j = np.arange(-down, down + 1), np.arange(-right, right + 1)
    means = sums[:, i[:, None], j] / ((rows - np.abs(i))[:, None] * (columns - np.abs(j)))
    return np.pad(means, ((0, 0), (reach - down,) * 2, (reach - right,) * 2))


def _steady_means(products: Floats, squared: Floats, counts: Floats, units: Floats) -> Floats:
    """Return weighted means of products over images, without differences between directions that may be chance.

    `products` has shape (images, offsets down, offsets right), and `squared` are their squares; each image counts in
    its own `units`, and `counts` sum to 1. By how much offsets differ from their mirror images, and those down from
    those to the right, is kept as far as it is more than chance explains (empirical Bayes).
    """
    means = np.tensordot(counts / units, products, axes=1)
    # The sum of squared deviations of products in their units, weighted by squared counts.
    chance = np.tensordot((counts / units) ** 2, squared, axes=1)
    chance += means**2 * (counts @ counts) - 2.0 * means * np.tensordot(counts**2 / units, products, axes=1)
    for mirrored in (np.fliplr, np.transpose):
        same, different = (means + mirrored(means)) / 2, (means - mirrored(means)) / 2
        by_chance = (chance + mirrored(chance)) / 4
        kept = max(0.0, 1.0 - by_chance[different != 0].sum() / max((different**2).sum(), SMALLEST_SQUARE))
        means, chance = same + kept * different, (1.0 + kept**2) * by_chance
    return means


def _first_shares(products: Floats, reach: int, num_kinds: int) -> Floats:
    """Return which kind each image is of, shape (images, kinds): cut evenly along what their correlations differ in."""
    own = np.maximum(products[:, reach, reach], SMALLEST_SQUARE)
    near = [(down, right) for down, right in FIRST_OFFSETS if max(down, right) <= reach]
    correlations = np.stack([products[:, reach + down, reach + right] / own for down, right in near], axis=1)
    centred = correlations - correlations.mean(axis=0)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    kinds = np.searchsorted(np.quantile(along, np.arange(1, num_kinds) / num_kinds), along)
    return np.eye(num_kinds)[kinds]


def _fit_weights(covariances: Floats, radius: int) -> tuple[Floats, Floats]:
    """Return the weights of neighbours and the log variances of errors, for each way in which some are beyond an edge.

    Shapes (radius + 1, 2 radius + 1, neighbours) and (radius + 1, 2 radius + 1).
    """
    near = np.array(neighbours_before(radius))
    reach = len(covariances) // 2
    apart = near[:, None] - near
    between = covariances[reach + apart[..., 0], reach + apart[..., 1]]
    towards = covariances[reach + near[:, 0], reach + near[:, 1]]
    variance = max(covariances[reach, reach], SMALLEST_EIGENVALUE)
    # Estimated at each offset by itself, covariances need not make a positive matrix.
    values, vectors = np.linalg.eigh(between)
    between = (vectors * np.maximum(values, SMALLEST_EIGENVALUE * variance)) @ vectors.T
    weights, log_variances = np.zeros((radius + 1, 2 * radius + 1, len(near))), np.zeros((radius + 1, 2 * radius + 1))
    for above in range(radius + 1):
        for beside in range(2 * radius + 1):
            # On the left there is room for `beside` columns, on the right for as many as are left of twice the radius.
            there = (near[:, 0] >= -above) & (near[:, 1] >= -beside) & (near[:, 1] <= 2 * radius - beside)
            if there.any():
                weights[above, beside, there] = solve(between[np.ix_(there, there)], towards[there], assume_a="pos")
            left = variance - weights[above, beside] @ towards
            log_variances[above, beside] = np.log(max(left, SMALLEST_EIGENVALUE * variance))
    return weights, log_variances
