"""fit_variants: one call from models to partial, posterior, fractional and intrinsic Bayes factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepbf import _checks
from deepbf.estimator.fitting import fit
from deepbf.models import Model
from deepbf.variants.splitting import Variants, check_training


def fit_variants(
    models: Sequence[Model],
    num_obs: int,
    num_training: int | Sequence[int],
    *,
    posterior: bool = True,
    structure: str = "exchangeable",
    model: int | str = 0,
    over: int | str = 1,
    **options: Any,
) -> Variants:
    """Return partial, posterior, fractional and intrinsic Bayes factors of data sets of `num_obs` observations.

    One network is trained for every number of observations from the smallest training sample to `num_obs`, or to
    twice as many for the posterior Bayes factor. Simulators take the number: ``simulator(rng, params, num_obs)``.

    Parameters
    ----------
    models
        Two or more models, in the order that gives Bayes factors their direction.
    num_obs
        Observations of the data sets to be compared by.
    num_training
        Observations of a training sample, or several such numbers.
    posterior
        Whether the posterior Bayes factor is wanted, which takes every observation twice.
    structure
        "exchangeable": other data cannot be split.
    model, over
        The direction, by name or number.
    options
        Everything else that `deepbf.fit` takes: `seconds`, `ensemble`, `seed`, ...

    Examples
    --------
    >>> import deepbf
    >>> from deepbf.example import counts_example
    >>> models = counts_example(num_obs=8).models
    >>> variants = deepbf.fit_variants(models, 8, 2, steps=50, ensemble=2, progress=False)
    >>> variants.geometric(models[0].simulate(1, seed=1).data, num_training=2).num_possible
    28
    """
    num_obs = _checks.check_count("num_obs", num_obs, least=2)
    sizes = [num_training] if isinstance(num_training, int) else list(num_training)
    if not sizes:
        raise ValueError("num_training must be at least one number of observations; received none.")
    smallest = min(check_training("num_training", size, num_obs) for size in sizes)
    if structure != "exchangeable":
        raise ValueError(
            f"structure must be 'exchangeable': variants split data into training and test samples; received "
            f"{structure!r}."
        )
    largest = 2 * num_obs if posterior else num_obs
    return Variants(fit(models, structure=structure, num_obs=(smallest, largest), **options), model, over)
