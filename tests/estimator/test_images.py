"""Images from models to the exact Bayes factor, and to a file and back."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import deepbf
from deepbf_studies import problems

STUDY = problems.load("field", num_obs=8)


@pytest.fixture(scope="module")
def fields() -> deepbf.BayesFactor:
    return deepbf.fit(STUDY.models, structure="image", network="summary", steps=250, ensemble=2, seed=1, progress=False)


@pytest.mark.slow
def test_answers_are_near_the_exact_ones(fields: deepbf.BayesFactor) -> None:
    data = np.concatenate([model.simulate(500, seed=5).data for model in STUDY.models])
    exact = STUDY.exact_log_bf(data)
    # A constant answer would be off by the spread of the exact ones.
    assert np.sqrt(np.mean((fields.log_bf(data) - exact) ** 2)) < 0.35 * np.std(exact)


@pytest.mark.slow
def test_a_reload_answers_bit_for_bit_the_same(fields: deepbf.BayesFactor, tmp_path: Path) -> None:
    data = STUDY.models[0].simulate(20, seed=6).data
    fields.save(tmp_path / "fields.deepbf")
    loaded = deepbf.load(tmp_path / "fields.deepbf")
    assert (loaded.structure, loaded.network) == ("image", "summary")
    assert_array_equal(loaded.log_bf_members(data), fields.log_bf_members(data))


@pytest.mark.slow
def test_a_constant_image_has_an_answer(fields: deepbf.BayesFactor) -> None:
    constant = np.stack([np.full((8, 8), value) for value in (0.0, 1.0, -1e300, 1e-300)])
    assert np.isfinite(fields.log_bf_members(constant)).all()
    assert np.isfinite(fields.compare(constant[1]).log_bf)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["auto", "conv"])
def test_every_network_learns_fields(network: str, tmp_path: Path) -> None:
    bf = deepbf.fit(STUDY.models, structure="image", network=network, steps=400, ensemble=2, seed=1, progress=False)
    data = np.concatenate([model.simulate(500, seed=5).data for model in STUDY.models])
    exact = STUDY.exact_log_bf(data)
    assert np.sqrt(np.mean((bf.log_bf(data) - exact) ** 2)) < 0.35 * np.std(exact)
    bf.save(tmp_path / "fields.deepbf")
    assert_array_equal(deepbf.load(tmp_path / "fields.deepbf").log_bf_members(data[:20]), bf.log_bf_members(data[:20]))


@pytest.mark.slow
def test_images_beside_a_number() -> None:
    def drawn(scale: float, rng: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        return {"scan": scale * rng.standard_normal((size, 5, 6, 2)), "age": rng.standard_normal((size, 1))}

    models = [
        deepbf.Model("narrow", simulator=lambda rng, size: drawn(1.0, rng, size)),
        deepbf.Model("wide", simulator=lambda rng, size: drawn(1.5, rng, size)),
    ]
    structure = {"scan": "image", "age": "vector"}
    bf = deepbf.fit(models, structure=structure, steps=150, ensemble=2, seed=1, progress=False)
    # The log Bayes factor of 60 normals of known variance, far from 0 for both models.
    assert bf.compare(drawn(1.0, np.random.default_rng(1), 1)).favours == "narrow"
    assert bf.compare(drawn(1.5, np.random.default_rng(1), 1)).favours == "wide"
