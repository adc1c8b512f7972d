"""A model's log prior plus log likelihood on the unconstrained scale, as a function that JAX can differentiate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.models import Model
from deepbf.models.transform import Unconstrained

# Prior draws that a model's functions are tried on before any work starts.
NUM_TRIED = 16


@dataclass(frozen=True)
class ModelDensity:
    """The unnormalised posterior of one model with parameters, for any data set."""

    model: Model
    space: Unconstrained

    @classmethod
    def of(cls, model: Model, observed: NDArray[np.generic], *, seed: int) -> ModelDensity:
        """Return the density, after trying the model's functions on prior draws and one observed data set."""
        params = model.simulate(NUM_TRIED, seed).params
        density = cls(model, Unconstrained.fit(params, model.transform))
        density._check(params, observed[0])
        return density

    def __call__(self, real: Any, data: Any) -> Any:
        """Return log prior plus log likelihood plus log Jacobian at one unconstrained vector, given one data set."""
        flat, log_jacobian = self.space.to_params(real)
        params = self.space.unflatten(flat[None])
        # One data set a parameter: the model's functions see the leading axes that they promise to take.
        log_joint = self._call("log_prior", params) + self._call("log_likelihood", params, data[None])
        return log_joint.reshape(()) + log_jacobian

    def _call(self, name: str, *args: Any) -> Any:
        value = jnp.asarray(getattr(self.model, name)(*args))
        if value.shape not in ((1,), ()):
            raise ValueError(
                f"{name} of model {self.model.name!r} must return one number a parameter, shape (size,); received "
                f"shape {value.shape} for size 1."
            )
        return value.reshape(())

    def _check(self, params: Any, data: NDArray[np.generic]) -> None:
        real = self.space.to_real(self.space.flatten(params))
        if not np.isfinite(real).all():
            raise ValueError(
                f"prior of model {self.model.name!r} draws parameters outside transform={self.model.transform!r}, such "
                f"as {self.space.flatten(params)[~np.isfinite(real).all(axis=1)][0].tolist()}. Change transform."
            )
        try:
            values, gradients = jax.vmap(jax.value_and_grad(self), (0, None))(jnp.asarray(real), jnp.asarray(data))
        except (jax.errors.JAXTypeError, jax.errors.TracerArrayConversionError) as error:
            raise TypeError(
                f"log_prior and log_likelihood of model {self.model.name!r} must be written with jax.numpy, for the "
                f"sampler differentiates them ({type(error).__name__}). Replace np by jnp in them, or draw from the "
                "posterior yourself and pass the draws to bridge_evidence."
            ) from error
        check_log_density(np.asarray(values), f"log_prior + log_likelihood of model {self.model.name!r}")
        if not np.isfinite(np.asarray(gradients)).all():
            raise ValueError(
                f"the gradient of log_prior + log_likelihood of model {self.model.name!r} is not finite at draws from "
                "its prior, so no gradient-based sampler can run. Check for logarithms of zero inside jnp.where."
            )
        if not np.isfinite(np.asarray(values)).any():
            raise ValueError(
                f"the first observed data set has likelihood 0 at {NUM_TRIED} draws from the prior of model "
                f"{self.model.name!r}. Check that log_likelihood takes data of the shape that the simulator returns."
            )


def check_log_density(values: NDArray[np.float64], what: str) -> None:
    """Raise if a log density is nan or +inf anywhere; -inf is a place outside the support."""
    bad = np.isnan(values) | (values == np.inf)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{what} returned {values[first]} for {int(bad.sum())} of {bad.size} points; it must be finite, or -inf "
            "outside the support. Check it for logarithms of negative numbers and divisions by zero."
        )
