"""The data sets that every estimator of a comparison is asked about: simulations of either model, and one data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from deepbf_studies import problems
from deepbf_studies.problems import Study

# Far from the seeds of training, which are small numbers.
_SEEDS_OF_MODELS = (8_100_001, 8_100_002)
_SEED_OF_OBSERVED = 8_200_001


@dataclass(frozen=True)
class Questions:
    """Data sets in a row: so many of the first model, as many of the second, then the observed one, repeated.

    Parameters
    ----------
    study, num_obs
        The study and its number of observations.
    num_datasets
        Simulated data sets a model, of which `num_asked` are asked about: slow estimators see the first few of what the
        others see.
    num_asked
        None for all.
    num_repeats
        How often the observed data set comes at the end, for estimators that answer differently every time.
    """

    study: str
    num_obs: int
    num_datasets: int
    num_asked: int | None = None
    num_repeats: int = 1

    @property
    def asked(self) -> int:
        """Data sets a model that are asked about."""
        return self.num_datasets if self.num_asked is None else min(self.num_asked, self.num_datasets)

    def __len__(self) -> int:
        return 2 * self.asked + self.num_repeats

    def load(self) -> Study:
        """Return the study."""
        return problems.load(self.study, num_obs=self.num_obs)

    def data(self) -> NDArray[Any]:
        """Return all data sets, shape (questions, num_obs)."""
        models = self.load().models
        simulated = [
            model.simulate(self.num_datasets, seed).data[: self.asked]
            for model, seed in zip(models, _SEEDS_OF_MODELS, strict=True)
        ]
        observed = models[1].simulate(1, _SEED_OF_OBSERVED).data
        return np.concatenate([*simulated, np.repeat(observed, self.num_repeats, axis=0)])


@dataclass(frozen=True)
class Answers:
    """What one estimator says: at data of either model, nan where it was not asked, and at the observed data set."""

    by_model: tuple[NDArray[np.float64], NDArray[np.float64]]
    observed: NDArray[np.float64]
    seconds: float

    @classmethod
    def of(cls, parts: xr.Dataset | list[xr.Dataset], num_datasets: int) -> Answers:
        """Return the answers kept by one step, or by several that shared the questions among them."""
        listed = parts if isinstance(parts, list) else [parts]
        log_bf = np.concatenate([np.asarray(part["log_bf"], dtype=np.float64) for part in listed])
        num_repeats = int(listed[0].attrs["num_repeats"])
        asked = (len(log_bf) - num_repeats) // 2
        rest = np.full(num_datasets - asked, np.nan)
        return cls(
            by_model=(np.append(log_bf[:asked], rest), np.append(log_bf[asked : 2 * asked], rest)),
            observed=log_bf[2 * asked :],
            seconds=sum(float(part.attrs["seconds"]) for part in listed),
        )


def answered(log_bf: NDArray[np.float64], questions: Questions, **attributes: Any) -> xr.Dataset:
    """Return answers as a step keeps them."""
    return xr.Dataset(
        {"log_bf": ("question", log_bf)},
        attrs={"num_obs": questions.num_obs, "num_repeats": questions.num_repeats, **attributes},
    )
