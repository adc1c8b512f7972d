"""The list of ready-made studies, and the one way to load any of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from deepbf import _checks
from deepbf.studies import toy
from deepbf.studies.study import Study

_BUILDERS: dict[str, Callable[[str, int], Study]] = {
    "data-1-i": partial(toy.counts_study, label="Data 1 (i)", beta=(2.0, 2.0), gamma=(4.0, 4.0)),
    "data-1-ii": partial(toy.counts_study, label="Data 1 (ii)", beta=(1.0, 1.0), gamma=(1.0, 1.0)),
    "data-2": toy.mixture_study,
    "data-3": toy.waiting_times_study,
}


def names() -> tuple[str, ...]:
    """Return the names that `load` knows."""
    return tuple(_BUILDERS)


def load(name: str, *, num_obs: int = 128) -> Study:
    """Return the study called `name`, with data sets of `num_obs` observations.

    Everything in a study pickles, so its models can be simulated by a pool of processes.

    Examples
    --------
    >>> study = load("data-3", num_obs=4)
    >>> [model.name for model in study.models]
    ['exponential, unknown rate', 'exponential, rate 3']
    >>> study.exact_log_bf(study.models[0].simulate(5, seed=1).data).shape
    (5,)
    """
    name = _checks.check_choice("name", name, names())
    return _BUILDERS[name](name, _checks.check_count("num_obs", num_obs))
