"""The estimators that are compared, by the names that figures give them, and how each is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepbf import losses
from deepbf.estimator import BayesFactor
from deepbf.estimator.fitting import fit
from deepbf.models import Model

FNN, BNN, DEEPSET2, OURS = "DeepBF-FNN", "DeepBF-BNN", "DeepBF-DeepSet", "deepbf"
ABC, BRIDGE, WARP = "ABC", "bridge", "warp bridge"


@dataclass(frozen=True)
class Training:
    """How one kind of network is trained: the paper's by the paper's schedule, ours by our own."""

    network: str
    schedule: str
    ensemble: int


TRAININGS = {
    FNN: Training("fnn", "paper", 1),
    BNN: Training("bnn", "paper", 1),
    DEEPSET2: Training("deepset2", "paper", 1),
    OURS: Training("auto", "auto", 4),
}


def train(
    models: Sequence[Model],
    structure: str,
    method: str,
    num_steps: int | None,
    seed: int,
    *,
    num_simulations: int | None = None,
    num_obs: tuple[int, int] | None = None,
    loss: str = losses.DEFAULT,
    schedule: str | None = None,
    batch_size: int | None = None,
) -> BayesFactor:
    """Return the estimator that `method` trains in so many steps, each with fresh simulations.

    With `num_simulations`, and no number of steps, on a table of so many simulations, which is used again and again.
    With `num_obs`, for every number of observations in that range. With `schedule`, by that and not the method's own.
    """
    how = TRAININGS[method]
    return fit(
        models,
        structure=structure,
        network=how.network,
        schedule=schedule or how.schedule,
        ensemble=how.ensemble,
        steps=num_steps,
        num_simulations=num_simulations,
        num_obs=num_obs,
        loss=loss,
        batch_size=batch_size,
        seed=seed,
        progress=False,
    )
