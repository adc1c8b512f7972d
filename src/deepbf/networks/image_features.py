"""Fixed features of images: products at offsets, along the edges and at coarser grains; spectrum, histogram, scans.

Inside, arrays have the shape (batch, channels, rows, columns).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.base import AbstractColumns, Pilot, PlainView, Storable, squash
from deepbf.networks.features import FEWEST_RAMPS, SoftHistogram, choose_knots
from deepbf.networks.image_predictions import Predictions, in_blocks
from deepbf.networks.vector import VectorColumns, fit_vector_columns

Offset = tuple[int, int]

# Of the squared mean and absolute: float32 cannot tell a smaller variance from rounding.
RELATIVE_VARIANCE = 1e-10
SMALLEST_VARIANCE = 1e-12
# How far apart pixels are whose products are averaged, by the number of channels that share the features.
RADII = ((1, 4.0), (3, 3.0), (8, 2.0))
FEWEST_RADIUS = 1.0
# The same between channels, of the sizes of values, and at coarser grains.
CROSSED_RADIUS = 1.0
SIZE_RADIUS = 1.5
COARSE_RADIUS = 2.0
# Up to this many channels every channel meets every other; beyond it only itself.
MOST_CROSSED = 3
# Lines of pixels next to an edge, and how far apart pixels along them are, whose products are averaged. A pixel there
# is predicted by fewer neighbours, so products over the whole image do not say what an exact evidence needs: of
# Gaussian fields of 16 x 16 pixels they left a standard error of 1.4 to 6 in its quadratic forms, and with these
# beside them 0.04 to 1.2 (regression on 6,000 fields, throwaway script).
EDGE_LINES = 2
EDGE_LAGS = 2
# Grains get coarser until images have fewer rows or columns than this.
FEWEST_COARSE_PIXELS = 4
# Where the log of a squared, unit-variance value bends into a constant: near 0 its sign and size are mere noise.
SIZE_FLOOR = 0.1
POWER_FLOOR = 1e-4
NUM_RINGS = 8
NUM_SECTORS = 4


def as_images(data: jax.Array) -> jax.Array:
    """Return data of shape (batch, rows, columns, ...) as (batch, channels, rows, columns)."""
    return jnp.moveaxis(data.reshape(*data.shape[:3], -1), 3, 1)


def standardised(images: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return images at mean 0 and variance 1, channel by channel, and the mean and variance that they had."""
    mean = images.mean(axis=(2, 3))
    centred = images - mean[:, :, None, None]
    variance = jnp.mean(centred * centred, axis=(2, 3)) + RELATIVE_VARIANCE * mean * mean + SMALLEST_VARIANCE
    return centred / jnp.sqrt(variance)[:, :, None, None], mean, variance


def near_offsets(shape: Sequence[int], radius: float) -> list[Offset]:
    """Return the offsets (rows, columns) within the radius that images of this shape have, one of each sign.

    Examples
    --------
    >>> near_offsets((8, 8), 1.5)
    [(0, 0), (0, 1), (1, -1), (1, 0), (1, 1)]
    """
    rows, columns = (min(math.floor(radius), size - 1) for size in shape)
    return [
        (down, right)
        for down in range(rows + 1)
        for right in range(-columns, columns + 1)
        if (down, right) >= (0, 0) and math.hypot(down, right) <= radius
    ]


def padded_waves(images: jax.Array, radius: float) -> jax.Array:
    """Return the Fourier transform of images with room around them, so that offsets do not reach around the edges."""
    rows, columns = (size + math.floor(radius) for size in images.shape[2:])
    return jnp.fft.rfft2(images, s=(rows, columns))


def mean_products(
    first: jax.Array, second: jax.Array, offsets: Sequence[Offset], shape: Sequence[int], padded: Sequence[int]
) -> jax.Array:
    """Return means of products of pixels of the second image with those at the offsets from them of the first.

    Both are transforms of images of this shape with room around them to the `padded` one. The result has shape (batch,
    channels * offsets), channel by channel.
    """
    sums = jnp.fft.irfft2(first * jnp.conj(second), s=tuple(padded))
    down, right = np.array(offsets).T
    counts = (shape[0] - np.abs(down)) * (shape[1] - np.abs(right))
    return (sums[:, :, down, right] / counts.astype(np.float32)).reshape(len(sums), -1)


def _own_products(images: jax.Array, radius: float) -> jax.Array:
    """Return means of products of pixels within the radius of each other, channel by channel."""
    shape = images.shape[2:]
    waves = padded_waves(images, radius)
    padded = [size + math.floor(radius) for size in shape]
    return mean_products(waves, waves, near_offsets(shape, radius), shape, padded)


def product_features(images: jax.Array) -> jax.Array:
    """Return means of products, shape (batch, features): near each other, along the edges, and at coarser grains."""
    num_channels, *shape = images.shape[1:]
    radius = next((radius for most, radius in RADII if num_channels <= most), FEWEST_RADIUS)
    found = [_own_products(images, radius), *_edge_products(images, single=num_channels > MOST_CROSSED)]
    if 1 < num_channels <= MOST_CROSSED:
        waves, near = padded_waves(images, CROSSED_RADIUS), near_offsets(shape, CROSSED_RADIUS)
        first, second = np.triu_indices(num_channels, k=1)
        either = [*near, *((-down, -right) for down, right in near[1:])]
        padded = [size + math.floor(CROSSED_RADIUS) for size in shape]
        found.append(mean_products(waves[:, first], waves[:, second], either, shape, padded))
    while min(images.shape[2:]) >= 2 * FEWEST_COARSE_PIXELS:
        images = coarsened(images)
        found.append(_own_products(images, COARSE_RADIUS))
    return jnp.concatenate(found, axis=1)


def coarsened(images: jax.Array) -> jax.Array:
    """Return means over squares of two by two pixels; an odd last row or column is left out."""
    rows, columns = (size - size % 2 for size in images.shape[2:])
    even = images[:, :, :rows, :columns]
    return even.reshape(*images.shape[:2], rows // 2, 2, columns // 2, 2).mean(axis=(3, 5))


def _edge_products(images: jax.Array, *, single: bool) -> list[jax.Array]:
    """Return means of products along the lines next to the edges, opposite edges taken together.

    Turned by half a circle, an image of stationary values is as probable as before, so nothing is lost by that.
    `single` asks for the outermost lines alone, and neighbours along them.
    """
    num_lines, most_lags = (1, 1) if single else (EDGE_LINES, EDGE_LAGS)
    found = []
    for upright in (images, jnp.swapaxes(images, 2, 3)):
        length = upright.shape[3]
        num_lags = min(most_lags, length - 1)
        # Shape (batch, channels, ends, lines, length).
        lines = jnp.stack([upright[:, :, :num_lines], upright[:, :, ::-1, ::-1][:, :, :num_lines]], axis=2)
        padded = jnp.pad(lines, (*[(0, 0)] * 4, (num_lags, num_lags)))
        lags = range(-num_lags, num_lags + 1)
        shifted = jnp.stack([padded[..., num_lags + lag : num_lags + lag + length] for lag in lags], axis=3)
        counts = np.array([2.0 * (length - abs(lag)) for lag in lags], np.float32)
        for line in range(num_lines):
            products = (lines[:, :, :, line, None, None] * shifted[:, :, :, :, line:]).sum(axis=(2, 5))
            means = products / counts[:, None]
            # A line meets itself at lags of one sign.
            found += [means[:, :, num_lags:, 0], means[:, :, :, 1:]]
    return [one.reshape(len(images), -1) for one in found]


def shape_features(scaled: jax.Array) -> list[jax.Array]:
    """Return skewness, kurtosis, and how the sizes of neighbours go together, each of shape (batch, features)."""
    sizes, mean_size, size_variance = standardised(jnp.log(scaled * scaled + SIZE_FLOOR))
    shape = scaled.shape[2:]
    near, padded = near_offsets(shape, SIZE_RADIUS), [size + math.floor(SIZE_RADIUS) for size in shape]
    waves, size_waves = (padded_waves(one, SIZE_RADIUS) for one in (scaled, sizes))
    together = [
        mean_products(size_waves, size_waves, near[1:], shape, padded),
        mean_products(size_waves, waves, near, shape, padded),
    ]
    moments = [squash(jnp.mean(scaled**power, axis=(2, 3))) for power in (3, 4)]
    return [*moments, mean_size, size_variance, *together]


def spectrum_bins(rows: int, columns: int) -> NDArray[np.float32]:
    """Return the weights of frequencies in bins, shape (rows * (columns // 2 + 1), bins), as `rfft2` lays them out.

    Bins are rings about 0, evenly spaced, cut into sectors; each averages what is in it, and empty ones are left out.
    """
    down, right = np.fft.fftfreq(rows)[:, None], np.fft.rfftfreq(columns)
    size = np.hypot(down, right).ravel()
    ring = np.minimum((NUM_RINGS * size / size.max()).astype(int), NUM_RINGS - 1)
    # The first sector is centred on the direction along rows.
    turned = np.arctan2(down, right).ravel() / np.pi + 0.5 / NUM_SECTORS
    sector = np.floor(NUM_SECTORS * (turned % 1.0)).astype(int) % NUM_SECTORS
    member = np.eye(NUM_RINGS * NUM_SECTORS)[ring * NUM_SECTORS + sector] * (size > 0)[:, None]
    member = member[:, member.any(axis=0)]
    return (member / member.sum(axis=0)).astype(np.float32)


def log_power(scaled: jax.Array) -> jax.Array:
    """Return the log power of images of unit variance in bins of frequencies, shape (batch, channels * bins)."""
    batch, num_channels, rows, columns = scaled.shape
    waves = jnp.fft.rfft2(scaled)
    power = (waves.real**2 + waves.imag**2).reshape(batch, num_channels, -1) / (rows * columns)
    return jnp.log(power @ spectrum_bins(rows, columns) + POWER_FLOOR).reshape(batch, -1)


# Ramps for each view of neighbours, and for all of them in all channels.
MOST_RAMPS = 16
RAMPS_IN_ALL = 128
# Values that place the histograms' knots: plenty for a few dozen knots, however large the images.
MOST_FOR_KNOTS = 200_000
# Pairs of neighbours: to the right, below, and along the two diagonals.
NEIGHBOURS = ((0, 1), (1, 0), (1, 1), (1, -1))


def neighbour_views(images: jax.Array) -> list[jax.Array]:
    """Return squashed values, and differences and sums of neighbours, each of shape (batch, channels, pixels)."""
    squashed = squash(images)
    rows, columns = images.shape[2:]
    views = [squashed]
    for down, right in NEIGHBOURS:
        one = squashed[:, :, down:, max(right, 0) : columns + min(right, 0)]
        other = squashed[:, :, : rows - down, max(-right, 0) : columns - max(right, 0)]
        views.append(one - other)
        # Sums of diagonal neighbours say little that the others do not.
        if not down * right:
            views.append(one + other)
    return [view.reshape(*view.shape[:2], -1) for view in views]


class ImageStatistics(Storable):
    """The fixed features of images, not scaled yet: first the log evidence of each model by predictions.

    `histograms` has a soft histogram for each view of neighbours.
    """

    predictions: Predictions
    histograms: tuple[SoftHistogram, ...]

    @classmethod
    def fit(cls, pilot: Pilot) -> ImageStatistics:
        """Return the features that suit images like these, one array per model."""
        most = max(1, MOST_FOR_KNOTS // (len(pilot) * pilot[0][0].size))
        found = [neighbour_views(as_images(jnp.asarray(data[:most]))) for data in pilot]
        num_channels = math.prod(pilot[0].shape[3:])
        num_ramps = max(FEWEST_RAMPS, min(MOST_RAMPS, RAMPS_IN_ALL // (len(found[0]) * num_channels)))
        histograms = []
        for view in zip(*found, strict=True):
            knots = choose_knots(np.concatenate([np.asarray(one).ravel() for one in view]), num_ramps + 1)
            slope = jnp.asarray(1.0 / np.diff(knots), jnp.float32)
            histograms.append(SoftHistogram(slope[None], jnp.asarray(-knots[:-1] / np.diff(knots), jnp.float32)))
        return cls(Predictions.fit(pilot), tuple(histograms))

    def __call__(self, data: jax.Array) -> jax.Array:
        """Return (batch, features) from standardised data of shape (batch, rows, columns, ...)."""
        return in_blocks(self._describe, data)

    def _describe(self, data: jax.Array) -> jax.Array:
        images = as_images(data)
        scaled, mean, variance = standardised(images)
        # Raw products as well as correlations: where a model knows its level and scale, they are what it predicts.
        products = [squash(product_features(images)), product_features(scaled)]
        found = [squash(mean), jnp.log(variance), *products, *shape_features(scaled), log_power(scaled)]
        for view, histogram in zip(neighbour_views(images), self.histograms, strict=True):
            # Channels as if they were more images.
            ramps = histogram(view.reshape(-1, view.shape[2], 1))
            found.append(ramps.reshape(len(images), -1))
        return jnp.concatenate([self.predictions(images), *found], axis=1)


# Values of the coarser grid that the plain view shows: they take twice as many columns.
MOST_CELLS = 256
# Where exponents of squares of z-values would drown all others.
LARGEST_Z = 12.0
# Sides of windows grow by about this factor, up to half of the image.
WINDOW_GROWTH = 1.5


class ImageColumns(AbstractColumns):
    """Images cell by cell, as vectors have it, with scans for blobs, the spectrum and correlations.

    A cell is one pixel unless there are too many: then a mean over a coarser grid, of which `down` and `right` say how
    much of each row and column of pixels belongs to each row and column of cells.
    """

    values: VectorColumns
    down: jax.Array
    right: jax.Array

    def __call__(self, data: jax.Array) -> jax.Array:
        return in_blocks(self._read, data)

    def _read(self, data: jax.Array) -> jax.Array:
        images = as_images(data)
        scaled, mean, variance = standardised(images)
        level = [squash(mean), jnp.log(variance)]
        if images.shape[1] > MOST_CROSSED:
            # Statistics of each of many channels would outnumber the values.
            scaled, _, _ = standardised(scaled.mean(axis=1, keepdims=True))
        squares, _, _ = standardised(scaled * scaled)
        found = [*scans(scaled), *scans(squares), log_power(scaled), product_features(scaled)]
        cells = in_cells(images, self.down, self.right)
        return jnp.concatenate([self.values(cells), *level, *found], axis=1)


def in_cells(images: jax.Array, down: jax.Array, right: jax.Array) -> jax.Array:
    """Return means over the cells of a coarser grid, shape (batch, channels, rows, columns)."""
    return jnp.einsum("bkrc,rs,ct->bkst", images, down, right)


def scans(signals: jax.Array) -> list[jax.Array]:
    """Return scan statistics of images of mean 0 and unit variance, each of shape (batch, channels).

    For square windows of many sizes: the greatest and the least mean over all places, in standard errors, and the log
    mean over places of exp(z^2 / 2), the evidence of a blob of that size at an unknown place.
    """
    # Sums over rectangles from the corner: those over windows are differences of four of them.
    totals = jnp.pad(jnp.cumsum(jnp.cumsum(signals, axis=2), axis=3), ((0, 0), (0, 0), (1, 0), (1, 0)))
    found = []
    for side in window_sides(min(signals.shape[2:])):
        across = totals[:, :, side:] - totals[:, :, :-side]
        z = (across[:, :, :, side:] - across[:, :, :, :-side]) / side
        bent = jnp.clip(z, -LARGEST_Z, LARGEST_Z)
        evidence = jax.nn.logsumexp(0.5 * bent * bent, axis=(2, 3)) - math.log(z.shape[2] * z.shape[3])
        found += [z.max(axis=(2, 3)), z.min(axis=(2, 3)), evidence]
    return found


def window_sides(side: int) -> list[int]:
    """Return sides of windows from 1 to half of the image, evenly spread on a log scale.

    Examples
    --------
    >>> window_sides(16)
    [1, 2, 3, 4, 6, 8]
    """
    most = max(1, side // 2)
    steps = math.ceil(math.log(most) / math.log(WINDOW_GROWTH)) + 1
    return sorted({round(most ** (i / max(steps - 1, 1))) for i in range(steps)})


def plain_image(pilot: Pilot) -> PlainView:
    """Return the plain view of images."""
    rows, columns = pilot[0].shape[1:3]
    shrinking = math.sqrt(min(1.0, MOST_CELLS / pilot[0][0].size))
    down, right = (_cell_shares(size, max(1, math.floor(shrinking * size))) for size in (rows, columns))
    cells = [np.asarray(in_cells(as_images(jnp.asarray(data)), down, right)) for data in pilot]
    return PlainView.fit(ImageColumns(fit_vector_columns(cells), down, right), pilot)


def _cell_shares(num_pixels: int, num_cells: int) -> jax.Array:
    """Return the weights of pixels in the mean of each cell along one axis, shape (pixels, cells), evenly cut."""
    edges = np.linspace(0, num_pixels, num_cells + 1)
    place = np.arange(num_pixels)[:, None]
    inside = np.clip(np.minimum(place + 1, edges[1:]) - np.maximum(place, edges[:-1]), 0.0, None)
    return jnp.asarray(inside / inside.sum(axis=0), jnp.float32)
