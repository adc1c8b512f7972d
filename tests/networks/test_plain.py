"""Plain views: what they read, that order and absent observations mean what they should, and that all is finite."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from deepbf.networks.image_features import plain_image
from deepbf.networks.nested import plain_groups
from deepbf.networks.series_features import plain_series
from deepbf.networks.sets import MOST_ORDERED, MOST_PLACES, PLACES_COUNT_AS, SortedColumns, plain_set
from deepbf.networks.vector import fit_vector_columns, plain_vector, tyler_scatter
from tests.reading import read

SHAPES = {plain_vector: (6,), plain_set: (9,), plain_series: (20,), plain_groups: (4, 5), plain_image: (6, 5)}
EXTREMES = np.array([0.0, 1e-30, 1e15, -1e15, 1.0], np.float32)


def pilot_of(shape: tuple[int, ...], size: int = 400) -> list[np.ndarray]:
    return [np.random.default_rng(k).normal(k, 1 + k, (size, *shape)).astype(np.float32) for k in range(2)]


@pytest.mark.parametrize("shape", [(9,), (200,), (9, 3), (40, 2)])
def test_the_order_of_a_set_means_nothing(shape: tuple[int, ...]) -> None:
    pilot = pilot_of(shape)
    view = plain_set(pilot)
    turned = pilot[0][:, np.random.default_rng(1).permutation(shape[0])]
    assert_allclose(read(view, turned), read(view, pilot[0]), atol=2e-4)


@pytest.mark.parametrize(("num_obs", "num_places"), [(9, 9), (100, MOST_PLACES), (MOST_ORDERED + 1, 2)])
@pytest.mark.parametrize("positive", [False, True])
def test_values_at_places_count_as_a_few_columns_however_many_they_are(
    num_obs: int, num_places: int, positive: bool
) -> None:
    rng = np.random.default_rng(1)
    drawn = [rng.standard_exponential((300, num_obs)), rng.standard_normal((300, num_obs))]
    pilot = [scale * drawn[0 if positive else 1].astype(np.float32) for scale in (1.0, 2.0)]
    view = plain_set(pilot)
    columns = view.columns
    assert isinstance(columns, SortedColumns)
    # Waiting times crowd at 0, and are seen by the logarithms of their distances from it, too.
    assert (columns.num_places, columns.num_distances) == (num_places, int(positive))
    found = np.concatenate([read(columns, data) for data in pilot])
    assert found.shape[1] == len(columns.at_places)
    variances = (found.std(axis=0) / np.asarray(view.spread)) ** 2
    assert_allclose(variances[~columns.at_places], 1.0, rtol=1e-3)
    by_kind = variances[columns.at_places].reshape(-1, num_places).sum(axis=1)
    assert_allclose(by_kind, min(num_places, PLACES_COUNT_AS), rtol=1e-3)


@pytest.mark.parametrize("fit", SHAPES)
def test_views_are_finite_for_all_finite_data_and_as_wide_as_they_say(fit) -> None:
    shape = SHAPES[fit]
    view = fit(pilot_of(shape))
    rng = np.random.default_rng(3)
    rows = read(view, rng.choice(EXTREMES, (500, *shape)))
    assert np.isfinite(rows).all()
    assert rows.shape == (500, view.layout(shape).width)


@pytest.mark.parametrize("fit", [plain_set, plain_series])
@pytest.mark.parametrize("columns", [(), (2,)])
def test_padding_with_absent_observations_changes_nothing(fit, columns: tuple[int, ...]) -> None:
    pilot = pilot_of((12, *columns))
    for data in pilot:
        data[:200, 8:] = np.nan
    view = fit(pilot)
    short = pilot[0][:200]
    padded = np.concatenate([short, np.full((200, 5, *columns), np.nan, np.float32)], axis=1)
    assert_allclose(read(view, padded), read(view, short), atol=1e-4)
    assert np.isfinite(read(view, short)).all()


def test_columns_that_never_vary_are_zero() -> None:
    pilot = pilot_of((3,))
    for data in pilot:
        data[:, 1] = 7.0
    rows = read(plain_vector(pilot), pilot[0])
    assert np.isfinite(rows).all()
    assert_allclose(rows[:, 1], 0.0, atol=1e-6)


def test_tylers_scatter_is_that_of_the_shape_whatever_the_scale_of_each_vector() -> None:
    rng = np.random.default_rng(5)
    shape = np.array([[2.0, 0.8, 0.0], [0.8, 1.0, -0.3], [0.0, -0.3, 0.5]])
    shape *= 3 / np.trace(shape)
    errors = []
    for size in (1_000, 64_000):
        vectors = rng.multivariate_normal(np.zeros(3), shape, size) * np.exp(3 * rng.standard_normal((size, 1)))
        errors.append(np.abs(tyler_scatter(vectors) - shape).max())
    assert errors[1] < 0.03
    # 64 times as many vectors, about an eighth of the error.
    assert errors[1] < 0.4 * errors[0]


def test_tylers_scatter_of_few_or_degenerate_vectors_can_be_inverted() -> None:
    for vectors in (np.ones((1, 4)), np.zeros((10, 4)), np.eye(4)[:2]):
        assert np.linalg.eigvalsh(tyler_scatter(vectors)).min() > 0


def test_a_regression_of_unknown_scale_shows_in_the_distances() -> None:
    """The log evidence of a linear model with unknown variance is linear in the log of a squared distance."""
    rng = np.random.default_rng(6)
    design = np.stack([np.ones(10), np.linspace(-1, 1, 10)])
    pilot = []
    for num_slopes in (2, 1):
        slopes = 2 * rng.standard_normal((4096, num_slopes))
        scale = np.exp(rng.standard_normal((4096, 1)))
        pilot.append((scale * (slopes @ design[:num_slopes] + rng.standard_normal((4096, 10)))).astype(np.float32))
    view = plain_vector(pilot)
    # Ten values, no logarithms of counts, then a log distance from either model, scaled.
    found = read(view, pilot[0])[:, 10:12]
    exact = []
    for num_slopes in (2, 1):
        covariance = np.eye(10) + 4 * design[:num_slopes].T @ design[:num_slopes]
        exact.append(np.log(np.einsum("ni,ij,nj->n", pilot[0], np.linalg.inv(covariance), pilot[0])))
    assert np.corrcoef(np.sinh(found[:, 0]) - np.sinh(found[:, 1]), exact[0] - exact[1])[0, 1] > 0.95


@pytest.mark.parametrize(("num_columns", "num_vectors"), [(4, 64), (16, 256), (40, 1024)])
def test_vectors_that_scatters_were_fitted_to_look_like_new_ones(num_columns: int, num_vectors: int) -> None:
    rng = np.random.default_rng(8)
    own, new = rng.standard_normal((2, 2, num_vectors, num_columns)).astype(np.float32)
    columns = fit_vector_columns(list(own))
    assert columns.ellipses is not None
    # The log distance from the first model, of vectors that its scatter was fitted to and of others.
    near, far = (read(columns.ellipses, vectors[0])[:, 0] for vectors in (own, new))
    error = np.hypot(near.std(), far.std()) / np.sqrt(num_vectors)
    assert far.mean() - near.mean() < 0.5 * far.std() + 3 * error


def test_few_wide_vectors_have_no_scatters_that_would_know_them_again() -> None:
    rng = np.random.default_rng(9)
    few, many = (list(rng.standard_normal((2, number, 40)).astype(np.float32)) for number in (256, 4096))
    assert fit_vector_columns(few).ellipses is None
    assert fit_vector_columns(many).ellipses is not None


def test_an_event_at_an_unknown_time_shows_in_one_column() -> None:
    """The exact evidence of an event of known length: a log mean over its times, its size integrated out."""
    rng = np.random.default_rng(7)
    length, window, variance = 60, 7, 1.5**2
    data = rng.standard_normal((1000, length)).astype(np.float32)
    during = (np.arange(length) - rng.integers(0, length - window, (500, 1))) % length < window
    data[:500] += 1.5 * rng.standard_normal((500, 1)) * during
    sums = np.lib.stride_tricks.sliding_window_view(data, window, axis=1).sum(axis=2)
    exact = np.asarray(logsumexp(0.5 * variance * sums**2 / (1 + variance * window), axis=1))
    rows = read(plain_series([data, data]), data)
    correlations = [abs(np.corrcoef(column, exact)[0, 1]) for column in rows.T if column.std() > 0]
    # The variance of the noise is known to the exact answer, and not to the scan.
    assert max(correlations) > 0.85
