"""The built-in example: 128 counts, negative binomial or Poisson, with an observed data set on file."""

from __future__ import annotations

from importlib import resources

import numpy as np
from numpy.typing import NDArray

from deepbf.studies.catalogue import load
from deepbf.studies.study import Study

# The file holds models[0].simulate(1, seed=OBSERVED_SEED): simulated from the negative binomial, not real data.
OBSERVED_SEED = 2
OBSERVED_FILE = "data-1-i-observed.csv"


def example_study() -> Study:
    """Return the study of the built-in example: Data 1 (i) with 128 observations."""
    return load("data-1-i", num_obs=128)


def example_observed() -> NDArray[np.float64]:
    """Return the observed counts of the built-in example, shape (128,)."""
    file = resources.files("deepbf.studies") / "data" / OBSERVED_FILE
    return np.loadtxt(file.read_text().splitlines(), skiprows=1)
