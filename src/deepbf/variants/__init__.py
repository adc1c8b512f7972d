"""Variants of the Bayes factor: partial, posterior, fractional and intrinsic ones, and one tailored to the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepbf._lazy import lazy_names

if TYPE_CHECKING:
    from deepbf.variants.splitting import VariantBayesFactor, Variants, fit_variants
    from deepbf.variants.tailored import TailoredAnswer, fit_tailored

__all__ = ["TailoredAnswer", "VariantBayesFactor", "Variants", "fit_tailored", "fit_variants"]

_HOMES = {
    "TailoredAnswer": "tailored",
    "VariantBayesFactor": "splitting",
    "Variants": "splitting",
    "fit_tailored": "tailored",
    "fit_variants": "splitting",
}

__getattr__ = lazy_names(__name__, _HOMES)
