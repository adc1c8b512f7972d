"""Every plot of these tests is drawn without a screen or a warning, closed again, and leaves matplotlib as it was."""

import warnings
from collections.abc import Iterator

import matplotlib
import pytest
from matplotlib import pyplot

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    before = dict(matplotlib.rcParams)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        pyplot.close("all")
    assert dict(matplotlib.rcParams) == before
    assert matplotlib.get_backend().lower() == "agg"
