"""Variants of the Bayes factor from trained estimators: partial, posterior, fractional and intrinsic ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepbf._lazy import lazy_names

if TYPE_CHECKING:
    from deepbf.variants.fitting import fit_variants
    from deepbf.variants.result import VariantBayesFactor
    from deepbf.variants.splitting import Variants

__all__ = ["VariantBayesFactor", "Variants", "fit_variants"]

_HOMES = {
    "VariantBayesFactor": "result",
    "Variants": "splitting",
    "fit_variants": "fitting",
}

__getattr__ = lazy_names(__name__, _HOMES)
