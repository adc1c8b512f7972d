"""Variants of the Bayes factor: partial, posterior, fractional and intrinsic ones, and one tailored to the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepbf._lazy import lazy_names

if TYPE_CHECKING:
    from deepbf.variants.fitting import fit_variants
    from deepbf.variants.result import VariantBayesFactor
    from deepbf.variants.splitting import Variants
    from deepbf.variants.tailored import fit_tailored
    from deepbf.variants.tailored_answer import TailoredAnswer

__all__ = ["TailoredAnswer", "VariantBayesFactor", "Variants", "fit_tailored", "fit_variants"]

_HOMES = {
    "TailoredAnswer": "tailored_answer",
    "VariantBayesFactor": "result",
    "Variants": "splitting",
    "fit_tailored": "tailored",
    "fit_variants": "fitting",
}

__getattr__ = lazy_names(__name__, _HOMES)
