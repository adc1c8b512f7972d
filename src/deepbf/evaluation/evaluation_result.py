"""Evaluation: what the toolkit found, labelled, printable, and on disk."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from deepbf import _checks
from deepbf._files import write_whole
from deepbf.evaluation.log_bf_arrays import EXACT
from deepbf.evaluation.self_consistency import Check, run_checks
from deepbf.evaluation.table import written_evaluation


@dataclass(frozen=True)
class Evaluation:
    """Everything measured about one estimator or several, side by side.

    Parameters
    ----------
    results
        An `xarray.Dataset`. Metrics have the dimensions `estimator` and `group` (each model, and "weighted" by their
        prior probabilities) and a companion `..._error`. Where exact log Bayes factors were given, the last estimator
        is "exact": what is measured without the truth is measured for it too, as the best that can be had.
    """

    results: xr.Dataset

    @property
    def names(self) -> tuple[str, str]:
        """The two models, in the order that gives log Bayes factors their direction."""
        return self.results.attrs["first"], self.results.attrs["second"]

    @property
    def estimators(self) -> tuple[str, ...]:
        """The estimators by name, without the exact one."""
        return tuple(str(name) for name in self.results["estimator"].values if name != EXACT)

    @property
    def has_exact(self) -> bool:
        """Whether exact log Bayes factors were known."""
        return EXACT in self.results["estimator"].values

    @property
    def checks(self) -> tuple[Check, ...]:
        """What any right Bayes factor satisfies, and whether each estimator does."""
        return tuple(check for name in self.estimators for check in run_checks(self.results.sel(estimator=name)))

    def value(self, metric: str, estimator: str | None = None, group: str = "weighted") -> float:
        """Return one metric as a number; of the only estimator, if there is just one."""
        single = [
            str(name) for name, found in self.results.items() if found.dims in (("estimator",), ("estimator", "group"))
        ]
        chosen = self.results[_checks.check_choice("metric", metric, single)].sel(
            estimator=self._only_estimator()
            if estimator is None
            else _checks.check_choice("estimator", estimator, self.results["estimator"].values.tolist())
        )
        if "group" not in chosen.dims:
            return float(chosen)
        return float(chosen.sel(group=_checks.check_choice("group", group, self.results["group"].values.tolist())))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file: netCDF, or JSON if the name ends in .json."""
        target = Path(path)
        if target.suffix == ".json":
            content = json.dumps(self.to_dict(), indent=1, allow_nan=False).encode()
        else:
            # Version 3 of netCDF needs nothing but SciPy, and every reader of netCDF knows it.
            content = bytes(self.results.to_netcdf(engine="scipy"))
        write_whole(target, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Evaluation:
        """Return the evaluation saved at `path` as netCDF."""
        if not Path(path).is_file():
            raise FileNotFoundError(f"there is no file {path}. Pass the path given to Evaluation.save.")
        try:
            with xr.open_dataset(path, engine="scipy") as opened:
                results = opened.load()
        except (ValueError, TypeError, OSError) as error:
            raise ValueError(
                f"{path} cannot be read as netCDF ({error}). Pass a file that Evaluation.save wrote, not its JSON form."
            ) from error
        if "deepbf_version" not in results.attrs:
            raise ValueError(f"{path} is netCDF, but no evaluation. Pass a file that Evaluation.save wrote.")
        return cls(results)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: nan becomes None, infinities become "inf" and "-inf"."""

        def plain(array: xr.DataArray) -> dict[str, Any]:
            return {"dims": list(array.dims), "values": _plain_values(array.values.tolist())}

        return {
            "attributes": {
                name: value.item() if isinstance(value, np.generic) else value
                for name, value in self.results.attrs.items()
            },
            "coordinates": {str(name): plain(array) for name, array in self.results.coords.items()},
            "variables": {str(name): plain(array) for name, array in self.results.data_vars.items()},
            "checks": [check._asdict() for check in self.checks],
        }

    def __str__(self) -> str:
        return written_evaluation(self.results, self.checks)

    def _only_estimator(self) -> str:
        if len(self.estimators) > 1:
            raise ValueError(f"estimator must be one of {', '.join(self.estimators)}; there are several. Name one.")
        return next(iter(self.estimators))


def _plain_values(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain_values(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
