"""Dicts of arrays become rows and come back unchanged."""

import numpy as np
import pytest

from deepbf.layout import ArrayLayout, DataLayout, Vector, shapes_of

DATA = {
    "trials": np.arange(24.0).reshape(2, 4, 3),
    "age": np.array([30, 40]),
    "scores": np.array([[1.5, 2.5], [3.5, np.nan]]),
}


def layout_of(data: dict[str, np.ndarray], growing: tuple[str, ...] = ()) -> DataLayout:
    shapes = shapes_of(data)
    return DataLayout(tuple(ArrayLayout(name, Vector(), shapes[name], grows=name in growing) for name in shapes))


LAYOUT = layout_of(DATA)


def test_names_are_in_order_of_the_alphabet() -> None:
    assert LAYOUT.user_shape == {"age": (), "scores": (2,), "trials": (4, 3)}
    assert list(LAYOUT.columns) == ["age", "scores", "trials"]
    assert LAYOUT.width == 1 + 2 + 12
    assert LAYOUT.columns == {"age": slice(0, 1), "scores": slice(1, 3), "trials": slice(3, 15)}


def test_packing_and_unpacking_are_inverse() -> None:
    packed = LAYOUT.pack(DATA)
    assert packed.shape == (2, 15)
    assert packed.dtype == np.float64
    for name, array in LAYOUT.unpack(packed).items():
        np.testing.assert_array_equal(array, DATA[name])


def test_the_order_of_the_dict_does_not_matter() -> None:
    turned = dict(reversed(DATA.items()))
    assert layout_of(turned) == LAYOUT
    np.testing.assert_array_equal(LAYOUT.pack(turned), LAYOUT.pack(DATA))


def test_what_grows_ends_in_nan() -> None:
    layout = layout_of({"age": np.ones(2), "trials": np.ones((2, 4, 3))}, growing=("trials",))
    packed = layout.pack({"age": np.ones(2), "trials": np.ones((2, 3, 3))}, num_obs=3)
    trials = layout.unpack(packed)["trials"]
    assert np.isnan(trials[:, 3]).all()
    assert (trials[:, :3] == 1).all()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"age": DATA["age"], "scores": DATA["scores"]}, "instead of 'age' of shape"),
        (
            {**DATA, "trials": np.zeros((2, 3, 4))},
            r"'trials' of shape \(3, 4\) instead of .*'trials' of shape \(4, 3\)",
        ),
        ({**DATA, "more": DATA["age"]}, "'more' of shape"),
    ],
    ids=["missing", "shape", "extra"],
)
def test_other_arrays_do_not_fit(data: dict[str, np.ndarray], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        LAYOUT.pack(data)
