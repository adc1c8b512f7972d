"""A loss from outside the package is fitted, saved, loaded and compared; nothing else needs touching."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import deepbf
from deepbf import losses
from deepbf_studies.problems import normal_mean_log_bf
from tests.simulators import NORMAL_MEAN


def brier(log_odds: jax.Array, label: jax.Array) -> jax.Array:
    """The squared distance of model probabilities from the label, a proper score."""
    probs = jax.nn.softmax(losses.log_evidence(log_odds), axis=-1)
    return jnp.sum((probs - jax.nn.one_hot(label, probs.shape[-1])) ** 2, axis=-1)


def test_a_loss_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "LOSSES", dict(losses.LOSSES))
    losses.register_loss("brier", losses.LossKind(brier))
    bf = deepbf.fit(NORMAL_MEAN, structure="exchangeable", loss="brier", steps=800, seed=1, progress=False)
    assert bf.loss == "brier"
    data = np.concatenate([model.simulate(500, seed=2).data for model in NORMAL_MEAN])
    exact = normal_mean_log_bf(data, prior_scale=1.0)
    near = np.abs(exact) < 2
    # The Brier score sees little of strong evidence; in the middle it is as good as any.
    assert np.sqrt(np.mean((bf.log_bf(data) - exact)[near] ** 2)) < 0.3
    bf.save(tmp_path / "brier.deepbf")
    np.testing.assert_array_equal(deepbf.load(tmp_path / "brier.deepbf").log_bf(data), bf.log_bf(data))
