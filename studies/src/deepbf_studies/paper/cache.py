"""Cache: results of steps on disk, one netCDF file each, named by what it was computed from."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import xarray as xr

from deepbf._files import write_whole
from deepbf._version import __version__
from deepbf_studies.paper.step import Step


class Cache:
    """A folder of results. What is in it is never computed again; deleting any file of it is safe.

    Parameters
    ----------
    folder
        Where results are kept; made when the first one is.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, step: Step) -> Path:
        """Return the file that holds, or would hold, the result of a step."""
        return self.folder / f"{step.key}.nc"

    def __contains__(self, step: Step) -> bool:
        return self.path(step).is_file()

    def read(self, step: Step) -> xr.Dataset:
        """Return the kept result of a step."""
        try:
            with xr.open_dataset(self.path(step), engine="scipy") as opened:
                return opened.load()
        except (ValueError, TypeError, OSError) as error:
            raise ValueError(
                f"{self.path(step)} cannot be read ({error}). Delete it, and its step is computed again."
            ) from error

    def compute(self, step: Step) -> None:
        """Compute a step from the kept results of its inputs, and keep its result, with how long it took."""
        self.folder.mkdir(parents=True, exist_ok=True)
        inputs = [self.read(source) for source in step.inputs]
        started = time.perf_counter()
        result = step.compute(*inputs, **step.settings)
        result.attrs.update(
            step=step.identity, seconds=np.round(time.perf_counter() - started, 3), deepbf_version=__version__
        )
        # Version 3 of netCDF needs nothing but SciPy, and every reader of netCDF knows it.
        write_whole(self.path(step), bytes(result.to_netcdf(engine="scipy")))
