"""Bridge sampling of whole models: draw the posteriors by blackjax's NUTS, bridge each, and compare."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.baselines.baseline_result import BaselineResult, check_observed
from deepbf.baselines.bridge_sampling import Evidence, check_log_density, evidence_from_draws, import_blackjax
from deepbf.baselines.log_joint import check_densities, log_likelihood_without_params
from deepbf.models.model import Model, ModelSet
from deepbf.models.transform import Unconstrained

_FEWEST_DRAWS_PER_CHAIN = 50
# Gelman and others' bound for chains that have forgotten their starts.
_LARGEST_SCALE_REDUCTION = 1.05
# Prior draws that a model's functions are tried on before any work starts.
_NUM_TRIED = 16
_NUM_WARM_UP = 500
# Prior draws among which each chain picks its start, in proportion to their posterior density.
_NUM_STARTS = 256
# Data sets sampled together: enough to keep the processor busy, few enough for memory.
_DATASETS_AT_ONCE = 100


def bridge(
    models: Sequence[Model],
    observed: ArrayLike,
    *,
    num_draws: int = 2000,
    num_chains: int = 4,
    seed: int = 0,
) -> BaselineResult:
    """Return log Bayes factors by bridge sampling, with a normal proposal, for models with a likelihood.

    Posteriors are drawn with blackjax's NUTS on the unconstrained scale that `Model.transform` names. All data sets
    are sampled together in one compiled program.

    Parameters
    ----------
    models
        Two or more models with `log_prior` and `log_likelihood`, written with jax.numpy (a model without parameters
        needs only `log_likelihood`).
    observed
        One data set, or many along a leading axis.
    num_draws, num_chains
        Posterior draws of each chain after warm-up, at least 50, and chains for each data set. Half of the draws fit
        the proposal.
    seed
        The same seed gives the same draws and the same evidence. Each model's draws depend on its name and not on its
        position, so that swapping models flips the sign exactly.

    Returns
    -------
    BaselineResult
        `log_bf_error` is the standard error of the log Bayes factor. Diagnostics, each of shape (data sets, K): the
        fields of `Evidence`, among them `converged`, `effective_draws`, `scale_reduction` and `num_divergent`.

    Notes
    -----
    Each chain starts at one of 256 prior draws, picked in proportion to their posterior density. Use `warp_bridge` for
    skewed posteriors, `integrate` for up to three parameters, and ABC where there is no likelihood.
    """
    return _compare("bridge sampling", models, observed, num_draws, num_chains, seed, warp=False)


def warp_bridge(
    models: Sequence[Model],
    observed: ArrayLike,
    *,
    num_draws: int = 2000,
    num_chains: int = 4,
    seed: int = 0,
) -> BaselineResult:
    """Return log Bayes factors by warp bridge sampling: as `bridge`, with posteriors made symmetric first.

    The symmetric posterior is closer to the normal proposal, so that the error is smaller where posteriors are skewed;
    every point costs two evaluations of the density instead of one. Arguments and results are those of `bridge`.
    """
    return _compare("warp bridge sampling", models, observed, num_draws, num_chains, seed, warp=True)


def _compare(
    method: str,
    models: Sequence[Model],
    observed: ArrayLike,
    num_draws: int,
    num_chains: int,
    seed: int,
    *,
    warp: bool,
) -> BaselineResult:
    model_set = ModelSet.of(models)
    _checks.check_count("num_draws", num_draws, least=_FEWEST_DRAWS_PER_CHAIN)
    _checks.check_count("num_chains", num_chains)
    seed = _checks.check_seed("seed", seed)
    check_densities(model_set)
    data = check_observed(model_set, observed, seed=seed)
    # Log densities of a hundred observations in single precision would be off by as much as the error aimed at.
    with jax.enable_x64(True):
        densities = [
            None if model.prior is None else _ModelDensity.of(model, data, seed=seed) for model in model_set.models
        ]
        evidences = []
        for model, density in zip(model_set.models, densities, strict=True):
            if density is not None:
                # The model's name, not its position, marks its random numbers.
                own = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(model.name.encode()),))
                model_seed = int(own.generate_state(1)[0])
                evidences.append(_bridged_evidence(density, data, num_draws, num_chains, model_seed, warp=warp))
                continue
            # The evidence of a model without parameters is its likelihood, without error.
            values, zeros = log_likelihood_without_params(model, data), np.zeros(len(data))
            none = zeros.astype(np.int64)
            evidences.append(
                Evidence(values, zeros, np.ones(len(data), bool), none, zeros + np.inf, zeros + 1.0, none, none)
            )
    return BaselineResult(
        method=method,
        names=model_set.names,
        log_evidence=np.stack([evidence.log_evidence for evidence in evidences], axis=1),
        log_bf_error=np.hypot(evidences[0].error, evidences[1].error),
        diagnostics={
            name: np.stack([getattr(evidence, name) for evidence in evidences], axis=1)
            for name in Evidence.__dataclass_fields__
            if name != "log_evidence"
        },
        warnings=tuple(_warnings(model_set.names, evidences)),
    )


def _warnings(names: Sequence[str], evidences: Sequence[Evidence]) -> list[str]:
    said = []
    for name, evidence in zip(names, evidences, strict=True):
        num_datasets = len(evidence.converged)
        num_open = int((~evidence.converged).sum())
        if num_open:
            said.append(f"the bridge of {name} did not converge for {num_open} of {num_datasets} data sets; draw more")
        num_divergent = int((evidence.num_divergent > 0).sum())
        if num_divergent:
            said.append(
                f"the sampler of {name} diverged for {num_divergent} of {num_datasets} data sets; the posterior may "
                "have corners that it cannot reach"
            )
        num_apart = int((evidence.scale_reduction > _LARGEST_SCALE_REDUCTION).sum())
        if num_apart:
            said.append(
                f"the chains of {name} disagree for {num_apart} of {num_datasets} data sets (scale reduction above "
                f"{_LARGEST_SCALE_REDUCTION}); draw more, or look for several modes"
            )
    return said


@dataclass(frozen=True)
class _ModelDensity:
    """Log prior plus log likelihood of one model on the unconstrained scale, which JAX can differentiate."""

    model: Model
    space: Unconstrained

    @classmethod
    def of(cls, model: Model, observed: NDArray[np.generic], *, seed: int) -> _ModelDensity:
        """Return the density, after trying the model's functions on prior draws and one observed data set."""
        params = model.simulate(_NUM_TRIED, seed).params
        density = cls(model, Unconstrained.fit(params, model.transform))
        density._check(params, observed[0])
        return density

    def __call__(self, real: Any, data: Any) -> Any:
        """Return log prior plus log likelihood plus log Jacobian at one unconstrained vector, given one data set."""
        flat, log_jacobian = self.space.to_params(real)
        params = self.space.unflatten(flat[None])
        # One data set for one parameter: the model's functions see the leading axes that they promise to take.
        log_joint = self._call("log_prior", params) + self._call("log_likelihood", params, data[None])
        return log_joint.reshape(()) + log_jacobian

    def _call(self, name: str, *args: Any) -> Any:
        value = jnp.asarray(getattr(self.model, name)(*args))
        if value.shape not in ((1,), ()):
            raise ValueError(
                f"{name} of model {self.model.name!r} must return one number per parameter, shape (size,); received "
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
                f"the first observed data set has likelihood 0 at {_NUM_TRIED} draws from the prior of model "
                f"{self.model.name!r}. Check that log_likelihood takes data of the shape that the simulator returns."
            )


def _bridged_evidence(
    density: _ModelDensity, observed: NDArray[np.generic], num_draws: int, num_chains: int, seed: int, *, warp: bool
) -> Evidence:
    """Return the evidence of one model for each observed data set, from posterior draws on the unconstrained scale."""
    params = density.model.simulate(_NUM_STARTS, seed).params
    real = density.space.to_real(density.space.flatten(params))
    # A prior may reach so close to a bound that its draws are rounded onto it.
    starts = jnp.asarray(real[np.isfinite(real).all(axis=1)])
    at_starts = jax.jit(jax.vmap(density, (0, None)))
    for index, data in enumerate(observed):
        # No chain could begin.
        if not np.isfinite(np.asarray(at_starts(starts, jnp.asarray(data)))).any():
            raise ValueError(
                f"observed data set {index} has likelihood 0 at {len(starts)} draws from the prior of model "
                f"{density.model.name!r}: it may be impossible under that model, and a Bayes factor infinite. Leave it "
                "out, or check log_likelihood."
            )
    run = jax.jit(jax.vmap(_make_sampler(density, starts, num_draws, num_chains)))
    parts = []
    for begin in range(0, len(observed), _DATASETS_AT_ONCE):
        batch = observed[begin : begin + _DATASETS_AT_ONCE]
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed % 2**32), begin), len(batch))
        parts.append([np.asarray(array) for array in run(keys, jnp.asarray(batch))])
    draws, num_divergent = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    every_dataset = jnp.asarray(observed)
    # Data sets one after the other, their points together: all at once would need the memory of the product.
    at_points = jax.jit(
        lambda points: jax.lax.map(lambda args: jax.vmap(density, (0, None))(*args), (points, every_dataset))
    )
    evidence = evidence_from_draws(
        draws, lambda points: np.asarray(at_points(jnp.asarray(points))), warp=warp, seed=seed
    )
    return replace(evidence, num_divergent=num_divergent)


def _make_sampler(density: _ModelDensity, starts: jax.Array, num_draws: int, num_chains: int) -> Any:
    """Return a NUTS sampler: from a key and a data set to draws, shape (chains, draws, d), and their divergences."""
    blackjax = import_blackjax()

    def one_chain(key: jax.Array, data: jax.Array) -> tuple[jax.Array, jax.Array]:
        def log_density(real: jax.Array) -> jax.Array:
            return density(real, data)

        start_key, warm_up_key, draw_key = jax.random.split(key, 3)
        log_densities = jax.vmap(log_density)(starts)
        usable = jnp.where(jnp.isfinite(log_densities), log_densities, -jnp.inf)
        start = starts[jax.random.categorical(start_key, usable)]
        # Its own record of every warm-up step would fill the memory.
        warm_up = blackjax.window_adaptation(blackjax.nuts, log_density, adaptation_info_fn=lambda *_: None)
        (state, tuned), _ = warm_up.run(warm_up_key, start, num_steps=_NUM_WARM_UP)
        step = blackjax.nuts(log_density, **tuned).step

        def advance(state: Any, step_key: jax.Array) -> tuple[Any, tuple[jax.Array, jax.Array]]:
            state, info = step(step_key, state)
            return state, (state.position, info.is_divergent)

        _, (draws, divergent) = jax.lax.scan(advance, state, jax.random.split(draw_key, num_draws))
        return draws, divergent.sum()

    def one_dataset(key: jax.Array, data: jax.Array) -> tuple[jax.Array, jax.Array]:
        draws, num_divergent = jax.vmap(one_chain, (0, None))(jax.random.split(key, num_chains), data)
        return draws, num_divergent.sum()

    return one_dataset
