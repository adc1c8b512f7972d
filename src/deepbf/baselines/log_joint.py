"""A model's log prior plus log likelihood at rows of parameters, with everything it returns checked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepbf.models.model import Model, ModelSet
from deepbf.models.transform import Unconstrained

Points = NDArray[np.float64]
"""Parameters as rows, shape (num_points, num_params)."""
Values = NDArray[np.float64]


def check_densities(model_set: ModelSet) -> None:
    """Raise if a model lacks the densities which a likelihood baseline needs.

    Those are `log_prior` and `log_likelihood`; a model without parameters needs its `log_likelihood` alone.
    """
    for model in model_set.models:
        needed = ("log_likelihood",) if model.prior is None else ("log_prior", "log_likelihood")
        for argument in needed:
            if getattr(model, argument) is None:
                raise ValueError(
                    f"model {model.name!r} has no {argument}, which is needed here. Pass {argument}= to deepbf.Model, "
                    "or use a method that only simulates, such as ABC or deepbf.fit."
                )


def layout_of(model: Model, *, seed: int) -> Unconstrained | None:
    """Return how the model's parameters become rows of numbers and back, or None for a model without any.

    Two draws from the prior, with `seed`, show the shape of the parameters.
    """
    params = model.simulate(2, seed).params
    return None if params is None else Unconstrained.fit(params, model.transform)


class LogJoint:
    """Maps rows of parameters to log prior plus log likelihood of one data set, checked.

    Where the log prior is -inf so is the sum, whatever the likelihood makes of such parameters.
    """

    def __init__(self, model: Model, layout: Unconstrained, dataset: NDArray[np.generic], *, repeat: bool) -> None:
        self.model, self.layout, self.dataset, self.repeat = model, layout, dataset, repeat
        self.num_evaluations = 0

    def __call__(self, points: Points) -> Values:
        """Return the log density at each row."""
        return self.parts(points)[0]

    def parts(self, points: Points) -> tuple[Values, Values]:
        """Return the log density and the log prior at each row."""
        params = self.layout.unflatten(points)
        assert self.model.log_prior is not None
        assert self.model.log_likelihood is not None
        self.num_evaluations += len(points)
        data = self.dataset[None]
        if self.repeat:
            data = np.broadcast_to(data, (len(points), *self.dataset.shape))
        # Densities outside the support often pass through log of a negative number on their way to -inf.
        with np.errstate(all="ignore"):
            log_prior = _check_values(self.model, "log_prior", self.model.log_prior(params), points)
            supported = log_prior > -np.inf
            log_likelihood = _check_values(
                self.model, "log_likelihood", self.model.log_likelihood(params, data), points, supported
            )
        return np.where(supported, log_prior + log_likelihood, -np.inf), log_prior


def needs_repeated_data(model: Model, layout: Unconstrained, data: NDArray[np.generic], *, seed: int) -> bool:
    """Return whether the log likelihood wants a copy of the data set for each parameter, not one that broadcasts.

    A leading axis of 1 is all that most need, and saves them from doing the same sums for each parameter; those that
    pair parameters and data one by one fail with it, or answer differently.
    """
    points = layout.flatten(model.simulate(3, seed).params)
    once, repeated = (LogJoint(model, layout, data[0], repeat=repeat) for repeat in (False, True))
    expected = repeated(points)
    try:
        return not np.allclose(once(points), expected, rtol=1e-5)
    except Exception:  # whatever the user's function makes of a shape that it was not promised
        return True


def log_likelihood_without_params(model: Model, data: NDArray[np.generic]) -> Values:
    """Return the log likelihood of each data set under a model without parameters, which is its log evidence.

    One number per data set along the leading axis of `data`; -inf where the data are impossible.
    """
    assert model.log_likelihood is not None
    values = np.empty(len(data))
    for i, dataset in enumerate(data):
        value = np.asarray(model.log_likelihood(None, dataset[None]), dtype=np.float64)
        if value.size != 1:
            raise ValueError(
                f"log_likelihood of model {model.name!r} returned shape {value.shape} for one data set of shape "
                f"{dataset.shape}; return one number per data set. Sum over the observations."
            )
        values[i] = value.item()
        if np.isnan(values[i]) or values[i] == np.inf:
            raise ValueError(
                f"log_likelihood of model {model.name!r} returned {values[i]} at data set {i}; return a finite number, "
                "or -inf where the data are impossible."
            )
    return values


def _check_values(
    model: Model, argument: str, returned: object, points: Points, among: NDArray[np.bool_] | None = None
) -> Values:
    """Return a density's values as float64 after checking their shape, and that none is nan or +inf."""
    values = np.asarray(returned, dtype=np.float64)
    if values.shape != (len(points),):
        raise ValueError(
            f"{argument} of model {model.name!r} returned shape {values.shape} for {len(points)} parameter values; "
            f"it must be ({len(points)},), one number per leading index. Sum over the parameters of a draw"
            f"{'' if argument == 'log_prior' else ' and over the observations'}."
        )
    bad = np.isnan(values) | (values == np.inf)
    if among is not None:
        bad &= among
    if bad.any():
        first = int(np.argmax(bad))
        raise ValueError(
            f"{argument} of model {model.name!r} returned {values[first]} at parameters "
            f"{np.array2string(points[first], precision=17, separator=', ')} ({int(bad.sum())} of {len(points)}); "
            "return a finite number, or -inf outside the support."
        )
    return values
