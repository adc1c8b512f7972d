"""Images: which shapes are images, what is refused, and what the messages say."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import deepbf
from deepbf.layout import STRUCTURES, WHOLE, ArrayLayout, DataLayout, Image
from tests.untrained import untrained


def models_of(*shape: int) -> list[deepbf.Model]:
    """Return two models of noise whose data sets have this shape."""

    def drawn(scale: float) -> Any:
        return lambda rng, size: scale * rng.standard_normal((size, *shape))

    return [deepbf.Model("narrow", simulator=drawn(1.0)), deepbf.Model("wide", simulator=drawn(2.0))]


@pytest.mark.parametrize("shape", [(2, 2), (5, 3), (4, 6, 1), (4, 6, 3)])
def test_rows_and_columns_with_or_without_channels_are_an_image(shape: tuple[int, ...]) -> None:
    data = np.zeros((3, *shape))
    Image().check_simulated("structure='image'", [data, data])
    layout = DataLayout((ArrayLayout(WHOLE, STRUCTURES["image"]),)).seen([data, data])
    assert layout.shape == shape
    assert layout.num_obs is None


@pytest.mark.parametrize("shape", [(), (9,), (3, 4, 5, 6)])
def test_data_without_rows_and_columns_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="an axis of rows and one of columns") as raised:
        deepbf.fit(models_of(*shape), structure="image", steps=5, progress=False)
    message = str(raised.value)
    assert message.startswith("structure='image' needs")
    assert f"return data sets of shape {shape}" in message
    assert (
        "Return shape (size, rows, columns) or (size, rows, columns, channels), or pass structure='vector'" in message
    )


@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (1, 1, 3)])
def test_a_single_line_of_pixels_is_refused_as_a_series(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="at least 2 rows and 2 columns") as raised:
        deepbf.fit(models_of(*shape), structure="image", steps=5, progress=False)
    assert f"images of shape {shape}" in str(raised.value)
    assert "structure='series'" in str(raised.value)


def test_pixels_that_are_not_there_are_refused() -> None:
    def masked(rng: np.random.Generator, size: int) -> NDArray[Any]:
        data = rng.standard_normal((size, 3, 3))
        return np.ma.masked_array(data, data > 1.0)

    models = [deepbf.Model(name, simulator=masked) for name in "ab"]
    with pytest.raises(ValueError, match="structure='image' needs every value"):
        deepbf.fit(models, structure="image", steps=5, progress=False)


def test_images_have_no_number_of_observations() -> None:
    with pytest.raises(ValueError, match="num_obs needs data with one axis of observations"):
        deepbf.fit(models_of(4, 4), structure="image", num_obs=(2, 4), progress=False)


@pytest.mark.parametrize(
    ("observed", "rule"),
    [
        (np.zeros((6, 7)), r"has shape \(6, 7\); this estimator was trained on data sets of shape \(7, 6\)"),
        (np.zeros(42), r"has shape \(42,\)"),
        (np.full((7, 6), np.nan), "has 42 of 42 values not finite"),
        (np.ma.masked_array(np.zeros((7, 6)), np.eye(7, 6) > 0), "masks 6 of its values"),
    ],
)
def test_observed_images_are_of_the_size_of_training_and_whole(observed: Any, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        untrained("image", "summary").compare(observed)


def test_one_image_or_many() -> None:
    bf = untrained("image", "summary")
    images = np.random.default_rng(1).normal(size=(3, 7, 6))
    many = bf.log_bf(images)
    assert many.shape == (3,)
    assert bf.log_bf(images[0]) == pytest.approx(many[0], abs=1e-4)
    assert bf.log_bf(images.tolist()) == pytest.approx(many, abs=1e-6)
