"""Results such as an evaluation gives, made by hand: normal log Bayes factors, which are exact for a shifted normal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

FIRST, SECOND = "negative binomial", "Poisson"
CLIP = float(np.log(1e6))
NUM_BINS = 10
AGAINST_EXACT = ("mse", "clipped_mse", "kl", "spearman", "agreement", "excess_loss", "surprise_mse")


@dataclass(frozen=True)
class Evaluation:
    """Stands in for deepbf.evaluation's own."""

    results: xr.Dataset


def results(
    estimators: Sequence[str] = ("deep set",),
    *,
    exact: bool = True,
    names: tuple[str, str] = (FIRST, SECOND),
    num_datasets: int = 200,
    scale: float = 2.5,
    noise: float = 0.5,
    prior: float = 0.5,
    seed: int = 0,
) -> xr.Dataset:
    """Return results in which `scale` is the standard deviation of the exact log BF, and its mean +-scale^2 / 2."""
    rng = np.random.default_rng(seed)
    all_names = [*estimators, *(["exact"] if exact else [])]
    means = np.repeat([scale**2 / 2, -(scale**2) / 2], num_datasets)
    true = rng.normal(means, scale)
    noises = [noise * (1 + 0.6 * place) * (name != "exact") for place, name in enumerate(all_names)]
    log_bf = np.array([true + rng.normal(0, 1, true.size) * size for size in noises])
    dataset = xr.Dataset(
        {"log_bf": (("estimator", "dataset"), log_bf), "prior_prob": (("model",), [prior, 1 - prior])},
        coords={
            "estimator": all_names,
            "model": list(names),
            "group": [*names, "weighted"],
            "source": ("dataset", np.repeat(list(names), num_datasets)),
        },
        attrs={"first": names[0], "second": names[1], "clip": CLIP},
    )
    return dataset.assign(
        _densities(scale, noises, names)
        | _metrics(noises, rng, exact)
        | _curves(log_bf, num_datasets, rng)
        | _single_numbers(len(all_names), prior, rng)
    )


def _densities(scale: float, noises: list[float], names: tuple[str, str]) -> dict[str, xr.DataArray]:
    grid = np.linspace(-1.1 * CLIP, 1.1 * CLIP, 400)
    means = np.array([scale**2 / 2, -(scale**2) / 2])
    widths = np.hypot(scale, noises)[:, None, None]
    density = np.exp(-0.5 * ((grid - means[:, None]) / widths) ** 2) / (widths * np.sqrt(2 * np.pi))
    coords = {"model": list(names), "grid": grid}
    return {"density": xr.DataArray(density, coords, ("estimator", "model", "grid"))}


def _metrics(noises: list[float], rng: np.random.Generator, exact: bool) -> dict[str, tuple]:
    sizes = np.square(noises)[:, None] * rng.uniform(0.8, 1.25, (len(noises), 3))
    found: dict[str, tuple] = {}
    for name in (*(AGAINST_EXACT if exact else ()), "loss"):
        is_share = name in ("spearman", "agreement")
        values = 1 - sizes / (20 * (1 + sizes)) if is_share else sizes + 0.2 * (name == "loss")
        found[name] = (("estimator", "group"), values, {"long_name": name.replace("_", " ")})
        found[f"{name}_error"] = (("estimator", "group"), 0.1 * (1 - values if is_share else sizes))
    return found


def _curves(log_bf: NDArray[np.float64], num_datasets: int, rng: np.random.Generator) -> dict[str, tuple]:
    predicted = np.tile(np.linspace(0.05, 0.95, NUM_BINS), (len(log_bf), 1))
    counts = np.tile(np.geomspace(num_datasets, 8, NUM_BINS // 2).astype(int), (len(log_bf), 1))
    counts = np.concatenate([counts, counts[:, ::-1]], axis=1) + rng.integers(0, 8, predicted.shape)
    spread = np.sqrt(predicted * (1 - predicted) / counts)
    frequency = np.clip(predicted + rng.normal(0, 1, predicted.shape) * spread, 0, 1)
    rates = np.linspace(0, 1, 60)
    powers = 0.08 * (1 + 0.25 * np.arange(len(log_bf)))[:, None]
    per_bin, per_point = ("estimator", "bin"), ("estimator", "roc_point")
    return {
        "predicted": (per_bin, predicted),
        "frequency": (per_bin, frequency),
        "frequency_low": (per_bin, np.clip(frequency - 2 * spread, 0, 1)),
        "frequency_high": (per_bin, np.clip(frequency + 2 * spread, 0, 1)),
        "bin_count": (per_bin, counts),
        "false_positive_rate": (per_point, np.tile(rates, (len(log_bf), 1))),
        "true_positive_rate": (per_point, rates**powers),
    }


def _single_numbers(num_estimators: int, prior: float, rng: np.random.Generator) -> dict[str, tuple]:
    def each(low: float, high: float) -> tuple:
        return ("estimator",), rng.uniform(low, high, num_estimators)

    return {
        "estimated_prior": (("estimator",), prior + rng.normal(0, 0.01, num_estimators)),
        "estimated_prior_error": each(0.008, 0.012),
        "estimated_prior_z": each(-1, 1),
        "calibration_error": each(0.01, 0.03),
        "calibration_error_low": each(0.008, 0.01),
        "calibration_error_high": each(0.02, 0.025),
        "auc": each(0.9, 0.98),
        "auc_error": each(0.002, 0.005),
        "balanced_log_threshold": each(-0.2, 0.2),
        "balanced_error_rate": each(0.05, 0.1),
    }
