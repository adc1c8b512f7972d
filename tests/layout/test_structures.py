"""Structures know their own rules, and a new one needs nothing but itself and a network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

import deepbf
from deepbf.layout import STRUCTURES, ArrayLayout, DataLayout, NumObsRange, Structure, find_structure
from deepbf.layout.structure import Shape
from deepbf.networks import NETWORKS, AbstractPreparation, InputLayout, NetworkKind, register_network
from deepbf.networks.base import Pilot
from deepbf.networks.vector import GatedMLP


class Spectrum(AbstractPreparation):
    """The sizes of the Fourier coefficients, which no rotation changes."""

    @classmethod
    def fit(cls, pilot: Pilot) -> "Spectrum":
        return cls()

    def __call__(self, data: Any) -> Any:
        return jnp.abs(jnp.fft.rfft(data, axis=1))

    def layout(self, data_shape: Shape) -> InputLayout:
        return InputLayout(data_shape[0] // 2 + 1, data_shape[0] // 2 + 1)


@pytest.fixture(autouse=True)
def ring() -> Iterator[type[Structure]]:
    """A structure with a network of its own, known for the time of one test."""

    class Ring(Structure):
        """Values around a ring: where it starts means nothing."""

        name = "ring"
        num_axes = 1
        simulated_shape = "(size, places)"

        def default_network(self, shape: Shape) -> str:
            return "spectrum"

    register_network("ring", "spectrum", NetworkKind(Spectrum.fit, GatedMLP, peak_rate=2e-3))
    yield Ring
    del STRUCTURES["ring"], NETWORKS["ring"]


def smooth(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    noise = rng.normal(size=(size, 12))
    return (noise + np.roll(noise, 1, axis=1)) / np.sqrt(2)


def rough(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return rng.normal(size=(size, 12))


def test_a_structure_and_a_network_from_outside_are_fitted_saved_loaded_and_compared(tmp_path: Path) -> None:
    models = [deepbf.Model("smooth", simulator=smooth), deepbf.Model("rough", simulator=rough)]
    bf = deepbf.fit(models, structure="ring", steps=300, ensemble=2, seed=1, progress=False)
    assert (bf.structure, bf.network) == ("ring", "spectrum")
    data = models[0].simulate(50, seed=2).data
    np.testing.assert_allclose(bf.log_bf(np.roll(data, 5, axis=1)), bf.log_bf(data), rtol=1e-3, atol=1e-3)
    # 12 correlated neighbours tell the two apart well.
    assert bf.log_bf(data).mean() > 1 > -1 > bf.log_bf(models[1].simulate(50, seed=2).data).mean()
    bf.save(tmp_path / "ring.deepbf")
    again = deepbf.load(tmp_path / "ring.deepbf")
    np.testing.assert_array_equal(again.log_bf(data), bf.log_bf(data))
    assert again.compare(data[0]).favours == bf.compare(data[0]).favours
    with pytest.raises(ValueError, match=r"trained on data sets of shape \(12,\)"):
        again.compare(np.zeros(11))


def test_a_structure_is_the_same_whoever_made_it(ring: type[Structure]) -> None:
    assert ring() == STRUCTURES["ring"]
    assert hash(ring()) == hash(STRUCTURES["ring"])
    assert ring() != STRUCTURES["vector"]
    assert find_structure({"b": "ring", "a": "vector"}) == {"a": STRUCTURES["vector"], "b": ring()}


def test_what_grows_may_have_any_number_that_was_asked_for() -> None:
    # Sixteen data sets of one size show neither end of the range.
    layout = DataLayout((ArrayLayout("", STRUCTURES["exchangeable"], grows=True),), NumObsRange(2, 9))
    shown = np.full((16, 9), np.nan)
    shown[:, :4] = 1.0
    assert layout.seen([shown]).num_obs == (2, 9)


def test_the_first_array_that_varies_counts() -> None:
    trials, age = np.ones((3, 4)), np.ones((3, 1))
    trials[0, 2:] = np.nan
    arrays = (ArrayLayout("age", STRUCTURES["vector"], (1,)), ArrayLayout("trials", STRUCTURES["exchangeable"], (4,)))
    layout = DataLayout(arrays)
    seen = layout.seen([layout.pack({"age": age, "trials": trials})])
    assert seen.sized.name == "trials"
    assert seen.num_obs == (2, 4)
    assert seen.count(layout.pack({"age": age, "trials": trials})).tolist() == [2, 4, 4]
    assert seen.without("age", alone=False).structure == {"trials": "exchangeable"}
    assert seen.without("age", alone=True).structure == "exchangeable"
