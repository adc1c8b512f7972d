"""A blob in noise: the exact answer against the densities of normal vectors, and the blob where it was put."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from deepbf_studies import problems
from deepbf_studies.problems import blob
from deepbf_studies.problems.blob import blob_log_bf
from studies.tests.problems import joint_normal


def test_the_blob_by_the_covariance_of_each_place() -> None:
    side = 4
    images = 1.5 * np.random.default_rng(1).standard_normal((6, side, side))
    places = np.stack(np.divmod(np.arange(side * side), side), axis=1)
    distances = np.linalg.norm(places[:, None] - places, axis=-1)
    shapes = np.exp(-(distances**2) / (2 * 1.5**2))
    origin, noise = np.zeros(side * side), np.eye(side * side)
    flat = images.reshape(6, -1)
    densities = [
        np.exp(joint_normal.log_density(flat, origin, noise + 2.5**2 * np.outer(shape, shape))) for shape in shapes
    ]
    expected = np.log(np.mean(densities, axis=0)) - joint_normal.log_density(flat, origin, noise)
    assert_allclose(blob_log_bf(images), expected, rtol=1e-9)


def test_a_blob_is_where_it_was_put_and_as_high() -> None:
    model = problems.load("image-blob", num_obs=9).models[0]
    params = {"height": np.array([1e6, -1e6]), "row": np.array([0.0, 0.999]), "column": np.array([0.5, 0.999])}
    images = model.simulator(np.random.default_rng(2), params) / 1e6
    assert np.unravel_index(images[0].argmax(), (9, 9)) == (0, 4)
    assert np.unravel_index(images[1].argmin(), (9, 9)) == (8, 8)
    assert_allclose([images[0].max(), images[1].min()], [1.0, -1.0], atol=1e-4)
    assert_allclose(images[0, 0, 4:7], np.exp(-0.5 * (np.arange(3) / 1.5) ** 2), atol=1e-4)


def test_turned_and_mirrored_images_have_the_same_answer() -> None:
    images = problems.load("image-blob").models[0].simulate(5, seed=4).data
    for turned in (-images, images[:, ::-1], images[:, :, ::-1], images.transpose(0, 2, 1)):
        assert_allclose(blob_log_bf(turned), blob_log_bf(images), rtol=1e-9, atol=1e-9)


def test_images_must_be_square() -> None:
    with pytest.raises(ValueError, match=r"square images; received shape \(2, 3, 4\)"):
        blob_log_bf(np.zeros((2, 3, 4)))
    assert problems.load("image-blob").num_obs == blob.SIDE
