"""Criticism: whether a model fits at all. Posterior samplers, and what they predict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepbf._lazy import lazy_names

if TYPE_CHECKING:
    from deepbf.criticism.posterior_fitting import PartialPosteriorError, fit_posterior
    from deepbf.criticism.posterior_sampler import PosteriorSampler

__all__ = ["PartialPosteriorError", "PosteriorSampler", "fit_posterior"]

_HOMES = {
    "PartialPosteriorError": "posterior_fitting",
    "PosteriorSampler": "posterior_sampler",
    "fit_posterior": "posterior_fitting",
}

__getattr__ = lazy_names(__name__, _HOMES)
