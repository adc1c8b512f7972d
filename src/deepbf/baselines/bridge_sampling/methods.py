"""Bridge sampling of whole models: draw the posteriors, bridge each, and compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.baselines.bridge_sampling.evidence import Evidence, evidence_from_draws
from deepbf.baselines.bridge_sampling.log_density import ModelDensity
from deepbf.baselines.bridge_sampling.posterior import draw_posterior
from deepbf.baselines.log_joint import check_densities, log_likelihood_without_params
from deepbf.baselines.observed import check_observed
from deepbf.baselines.result import BaselineResult
from deepbf.models import Model, ModelSet

FEWEST_DRAWS_A_CHAIN = 50
# Gelman and others' bound for chains that have forgotten their starts.
LARGEST_SCALE_REDUCTION = 1.05


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
        Posterior draws a chain, after warm-up, and chains a data set. Half of the draws fit the proposal.
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
    """Return log Bayes factors by warp bridge sampling: as `bridge`, with posteriors made symmetric first."""
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
    _checks.check_count("num_draws", num_draws, least=FEWEST_DRAWS_A_CHAIN)
    _checks.check_count("num_chains", num_chains)
    seeds = np.random.SeedSequence(_checks.check_seed("seed", seed)).generate_state(len(model_set))
    check_densities(model_set)
    data = check_observed(model_set, observed, seed=seed)
    # Log densities of a hundred observations in single precision would be off by as much as the error aimed at.
    with jax.enable_x64(True):
        densities = [
            None if model.prior is None else ModelDensity.of(model, data, seed=seed) for model in model_set.models
        ]
        evidences = [
            _known_evidence(model, data)
            if density is None
            else _bridged_evidence(density, data, num_draws, num_chains, int(model_seed), warp=warp)
            for model, density, model_seed in zip(model_set.models, densities, seeds, strict=True)
        ]
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


def _bridged_evidence(
    density: ModelDensity, data: NDArray[np.generic], num_draws: int, num_chains: int, seed: int, *, warp: bool
) -> Evidence:
    posterior = draw_posterior(density, data, num_draws=num_draws, num_chains=num_chains, seed=seed)
    observed = jnp.asarray(data)
    # Data sets one after the other, their points together: all at once would need the memory of the product.
    at_points = jax.jit(
        lambda points: jax.lax.map(lambda args: jax.vmap(density, (0, None))(*args), (points, observed))
    )
    evidence = evidence_from_draws(
        posterior.draws, lambda points: np.asarray(at_points(jnp.asarray(points))), warp=warp, seed=seed
    )
    return replace(evidence, num_divergent=posterior.num_divergent)


def _known_evidence(model: Model, data: NDArray[np.generic]) -> Evidence:
    """Return the evidence of a model without parameters: its likelihood, without error."""
    values = log_likelihood_without_params(model, data)
    zeros = np.zeros(len(data))
    return Evidence(
        values, zeros, np.ones(len(data), bool), zeros.astype(np.int64), zeros + np.inf, zeros + 1.0,
        zeros.astype(np.int64), zeros.astype(np.int64),
    )  # fmt: skip


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
        num_apart = int((evidence.scale_reduction > LARGEST_SCALE_REDUCTION).sum())
        if num_apart:
            said.append(
                f"the chains of {name} disagree for {num_apart} of {num_datasets} data sets (scale reduction above "
                f"{LARGEST_SCALE_REDUCTION}); draw more, or look for several modes"
            )
    return said
