"""Features of images against sums written out, predictions against known fields, and the convolutional network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.signal import correlate2d
from scipy.special import logsumexp

from deepbf.networks import image_features, image_predictions
from deepbf.networks.image_features import (
    ImageStatistics,
    as_images,
    coarsened,
    log_power,
    near_offsets,
    plain_image,
    product_features,
    spectrum_bins,
)
from deepbf.networks.image_predictions import Predictions, neighbours_before
from deepbf.networks.images import CHANNELS, WINDOW, ConvImage, ImageSummary
from deepbf_studies import problems
from tests.reading import read

Floats = NDArray[np.float64]


def noise(*shape: int, seed: int = 1) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def products_along(image: Floats, offset: tuple[int, int]) -> float:
    """The mean of products at an offset, pair by pair."""
    (rows, columns), (down, right) = image.shape, offset
    pairs = [
        image[i, j] * image[i + down, j + right]
        for i in range(rows)
        for j in range(columns)
        if 0 <= i + down < rows and 0 <= j + right < columns
    ]
    return float(np.mean(pairs))


@pytest.mark.parametrize("shape", [(9, 7), (2, 5), (3, 2)])
def test_products_at_offsets_are_means_over_all_pairs(shape: tuple[int, int]) -> None:
    data = noise(3, *shape)
    offsets = near_offsets(shape, 4.0)
    found = np.asarray(product_features(as_images(jnp.asarray(data))))[:, : len(offsets)]
    expected = [[products_along(image, offset) for offset in offsets] for image in data.astype(np.float64)]
    assert_allclose(found, expected, atol=2e-6)


def test_products_along_the_edges_are_means_over_both_of_them() -> None:
    image = noise(1, 6, 5).astype(np.float64)
    found = np.asarray(product_features(as_images(jnp.asarray(image, jnp.float32))))[
        0, len(near_offsets((6, 5), 4.0)) :
    ]
    expected = []
    for upright in (image[0], image[0].T):
        ends = (upright, upright[::-1, ::-1])
        for first, second, lags in ((0, 0, range(3)), (0, 1, range(-2, 3)), (1, 1, range(3))):
            for lag in lags:
                length = upright.shape[1]
                places = [j for j in range(length) if 0 <= j + lag < length]
                expected.append(np.mean([end[first, j] * end[second, j + lag] for end in ends for j in places]))
    assert_allclose(found, expected, atol=2e-6)


def test_products_of_channels_are_of_each_and_between_them() -> None:
    data = noise(2, 5, 5, 2)
    both = np.asarray(product_features(as_images(jnp.asarray(data))))
    for k in range(2):
        alone = np.asarray(product_features(as_images(jnp.asarray(data[..., k]))))
        near = len(near_offsets((5, 5), 3.0))
        narrow = [near_offsets((5, 5), 4.0).index(offset) for offset in near_offsets((5, 5), 3.0)]
        assert_allclose(both[:, k * near : (k + 1) * near], alone[:, narrow], atol=2e-6)
    crossed = np.mean(data[..., 0] * data[..., 1], axis=(1, 2))
    assert np.abs(both - crossed[:, None]).min(axis=1).max() < 1e-6


def test_a_turn_by_half_a_circle_changes_no_product() -> None:
    images = as_images(jnp.asarray(noise(4, 8, 6)))
    assert_allclose(product_features(images[:, :, ::-1, ::-1]), product_features(images), atol=1e-5)


def test_coarser_grains_are_means_of_four() -> None:
    image = np.arange(35.0).reshape(1, 1, 5, 7)
    expected = [[4.0, 6.0, 8.0], [18.0, 20.0, 22.0]]
    assert_allclose(coarsened(jnp.asarray(image))[0, 0], expected)


@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (9, 12), (2, 2)])
def test_bins_of_the_spectrum_average_disjoint_frequencies(rows: int, columns: int) -> None:
    bins = spectrum_bins(rows, columns)
    assert_allclose(bins.sum(axis=0), 1.0, rtol=1e-5)
    assert ((bins > 0).sum(axis=1) <= 1).all()
    # All but the mean are in some bin.
    assert (bins > 0).any(axis=1).sum() == rows * (columns // 2 + 1) - 1


def test_a_wave_is_in_the_bin_of_its_direction() -> None:
    place = np.arange(16)
    across = np.sqrt(2) * np.cos(2 * np.pi * 4 * place / 16) * np.ones((16, 1))
    power = np.exp(np.asarray(log_power(jnp.asarray(np.stack([across, across.T])[:, None], jnp.float32))))
    assert ((power > 1).sum(axis=1) == 1).all()
    assert power[0].argmax() != power[1].argmax()


# Predictions


def row_by_row(size: int, side: int, *, slope: float, seed: int = 2) -> Floats:
    """Images whose pixels are predicted by the one to the left alone, of any scale."""
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((size, side, side))
    for j in range(1, side):
        images[:, :, j] = slope * images[:, :, j - 1] + np.sqrt(1 - slope**2) * images[:, :, j]
    return np.exp(rng.standard_normal((size, 1, 1))) * images


def test_the_left_neighbour_alone_predicts_where_models_say_so() -> None:
    pilot = [row_by_row(2000, 8, slope=slope).astype(np.float32) for slope in (0.8, -0.5)]
    predictions = Predictions.fit(pilot)
    neighbours = neighbours_before(predictions.radius)
    left = neighbours.index((0, -1))
    # Pixels without an edge near them, in the mean of a model's kinds.
    inside = np.asarray(predictions.weights)[0, :, -1, predictions.radius].reshape(2, -1, len(neighbours)).mean(axis=1)
    assert_allclose(inside[:, left], [0.8, -0.5], atol=0.05)
    assert np.abs(np.delete(inside, left, axis=1)).max() < 0.05


def test_predictions_make_the_exact_bayes_factor_of_fields_in_one_direction() -> None:
    slopes = (0.7, 0.4)
    pilot = [row_by_row(4000, 8, slope=slope).astype(np.float32) for slope in slopes]
    images = np.concatenate([row_by_row(500, 8, slope=slope, seed=3) for slope in slopes])

    def log_density(slope: float) -> Floats:
        # At a flat prior of the log scale: the scales of both models have the same distribution.
        errors = (images[:, :, 1:] - slope * images[:, :, :-1]) ** 2 / (1 - slope**2)
        squares = errors.sum(axis=(1, 2)) + (images[:, :, 0] ** 2).sum(axis=1)
        return -0.5 * 64 * np.log(squares) - 0.5 * 56 * np.log(1 - slope**2)

    exact = log_density(slopes[0]) - log_density(slopes[1])
    found = read(Predictions.fit(pilot), as_images(jnp.asarray(images, jnp.float32)))
    difference = found[:, 0] - found[:, 1] - exact
    assert exact.std() > 2
    assert difference.std() < 0.5
    assert abs(difference.mean()) < 0.3


def test_predictions_of_gaussian_fields_are_near_the_exact_answer_without_training() -> None:
    study = problems.load("field", num_obs=8)
    pilot = [model.simulate(4096, seed=1).data.astype(np.float32) for model in study.models]
    images = np.concatenate([model.simulate(500, seed=2).data for model in study.models])
    found = read(Predictions.fit(pilot), as_images(jnp.asarray(images, jnp.float32)))
    exact = study.exact_log_bf(images)
    # A quarter of the spread of the exact answers.
    assert np.sqrt(np.mean((found[:, 0] - found[:, 1] - exact) ** 2)) < 0.25 * exact.std()


def test_errors_of_predictions_do_not_depend_on_the_units() -> None:
    pilot = [row_by_row(500, 6, slope=slope).astype(np.float32) for slope in (0.8, 0.0)]
    predictions = Predictions.fit(pilot)
    images = as_images(jnp.asarray(pilot[0][:20]))
    errors = [predictions.log_densities(scale * images)[0] for scale in (1.0, 1e-5, 1e8)]
    for other in errors[1:]:
        assert_allclose(other, errors[0], atol=1e-4)


def test_large_images_are_predicted_without_their_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    pilot = [row_by_row(300, 24, slope=slope).astype(np.float32) for slope in (0.8, 0.2)]
    predictions = Predictions.fit(pilot)
    images = as_images(jnp.asarray(pilot[0][:50]))
    whole, _ = predictions.log_densities(images)
    monkeypatch.setattr(image_predictions, "MOST_WITH_EDGES", 100)
    inside, _ = predictions.log_densities(images)
    # Of 576 pixels, 304 have no edge near them: the mean square differs by its chance, about sqrt(2 / 304).
    assert_allclose(inside, whole, atol=0.3)
    assert not np.allclose(inside, whole, atol=1e-4)


# Preparations and networks


SLOW_SHAPES = [pytest.param(shape, marks=pytest.mark.slow) for shape in [(3, 8), (6, 5, 2), (5, 4, 5)]]


@pytest.mark.parametrize("shape", [(2, 2), *SLOW_SHAPES])
def test_summaries_are_finite_whatever_the_shape_and_as_wide_as_they_say(shape: tuple[int, ...]) -> None:
    pilot = [(1 + k) * noise(300, *shape, seed=k) for k in range(2)]
    extremes = np.array([0.0, 1e-30, 1e15, -1e15, 1.0], np.float32)
    data = np.concatenate([np.random.default_rng(1).choice(extremes, (50, *shape)), np.zeros((1, *shape), np.float32)])
    preparation = ImageSummary.fit_with_values(pilot)
    rows = read(preparation, data)
    assert np.isfinite(rows).all()
    assert rows.shape[1] == preparation.layout(shape).width


def test_images_that_never_vary_make_a_summary_all_the_same() -> None:
    pilot = [np.full((100, 4, 4), float(k), np.float32) for k in range(2)]
    for fit in (ImageSummary.fit, plain_image):
        assert np.isfinite(read(fit(pilot), pilot[0][:5])).all()


def test_channels_are_counted_one_by_one() -> None:
    """A second channel that copies the first shows the same histograms and errors twice."""
    one = noise(400, 5, 5)
    statistics = ImageStatistics.fit([np.stack([one, one], axis=3)] * 2)
    errors = np.asarray(statistics.predictions.log_densities(as_images(jnp.stack([one[:9]] * 2, axis=3)))[0])
    assert_allclose(errors[:, 0], errors[:, 1], atol=1e-5)


@pytest.mark.parametrize("shape", [(40, 30), (64, 64), (20, 20, 3), (12, 12, 8)])
def test_the_plain_view_of_large_images_stays_narrow(shape: tuple[int, ...]) -> None:
    pilot = [noise(64, *shape, seed=k) for k in range(2)]
    assert plain_image(pilot).layout(shape).width < 900


def test_cells_of_the_plain_view_are_means_over_their_pixels() -> None:
    # 32 x 32 pixels make 16 x 16 cells.
    coarse = noise(3, 16, 16)
    view = plain_image([noise(64, 32, 32, seed=k) for k in range(2)])
    columns = view.columns
    assert isinstance(columns, image_features.ImageColumns)
    fine = np.kron(coarse, np.ones((1, 2, 2), np.float32))
    cells = image_features.in_cells(as_images(jnp.asarray(fine)), columns.down, columns.right)
    assert_allclose(cells[:, 0], coarse, atol=1e-6)


def test_a_blob_at_an_unknown_place_shows_in_one_column() -> None:
    """The exact evidence of a square of known size: a log mean over its places, its height integrated out."""
    rng = np.random.default_rng(7)
    side, window, variance = 12, 3, 1.0
    data = rng.standard_normal((1000, side, side)).astype(np.float32)
    for image in data[:500]:
        i, j = rng.integers(0, side - window + 1, 2)
        image[i : i + window, j : j + window] += rng.standard_normal()
    sums = np.lib.stride_tricks.sliding_window_view(data, (window, window), axis=(1, 2)).sum(axis=(3, 4))
    exact = np.asarray(logsumexp(0.5 * variance * sums**2 / (1 + variance * window**2), axis=(1, 2)))
    rows = read(plain_image([data, data]), data)
    correlations = [abs(np.corrcoef(column, exact)[0, 1]) for column in rows.T if column.std() > 0]
    # The variance of the noise is known to the exact answer, and not to the scan.
    assert max(correlations) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("shape", [pytest.param((8, 6), marks=pytest.mark.slow), (7, 5, 2)])
def test_the_first_layer_is_a_convolution(shape: tuple[int, ...]) -> None:
    pilot = [(1 + k) * noise(200, *shape, seed=k) for k in range(2)]
    preparation = ImageSummary.fit_with_values(pilot)
    layout = preparation.layout(shape)
    network = ConvImage(layout, 2, key=jax.random.key(1))
    rows = jnp.asarray(read(preparation, pilot[0][:4]))
    values = np.asarray(rows)[:, layout.num_summary :].reshape(4, shape[0], shape[1], -1)
    pooled = np.asarray(network._pooled(jnp.asarray(values)))
    kernels = np.asarray(network.layers[0].weight).reshape(CHANNELS[0], WINDOW, WINDOW, -1)
    for k, image in enumerate(values):
        maps = [
            np.sum([correlate2d(image[:, :, c], kernel[:, :, c], mode="same") for c in range(image.shape[2])], axis=0)
            for kernel in kernels
        ]
        expected = [np.sqrt(shape[0] * shape[1]) * np.tanh(one[::2, ::2]).mean() for one in maps]
        assert_allclose(pooled[k, : CHANNELS[0]], expected, atol=1e-4)
    assert pooled.shape == (4, sum(CHANNELS))
    assert network(rows).shape == (4, 1)
