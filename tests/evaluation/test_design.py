"""Sample-size design on arrays: rates by count, the number needed by interpolation."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from deepbf.evaluation import design_from
from deepbf.evaluation.design import reached

NAMES = ("raised", "zero")


def growing(num_datasets: int = 20_000) -> dict[int, Any]:
    """Return log Bayes factors of N(0.5, 1) over N(0, 1): normal with mean +-n / 8 and variance n / 4."""
    rng = np.random.default_rng(1)
    return {
        n: [rng.normal(sign * n / 8, math.sqrt(n / 4), num_datasets) for sign in (1, -1)] for n in (5, 10, 20, 40, 80)
    }


def test_rates_and_numbers_are_the_closed_form() -> None:
    found = design_from(growing(), names=NAMES, threshold=10, power=0.8)
    for n in (5, 10, 20, 40, 80):
        right = norm.sf(math.log(10), n / 8, math.sqrt(n / 4))
        misleading = norm.cdf(-math.log(10), n / 8, math.sqrt(n / 4))
        for name in NAMES:
            rate = found.results["rate"].sel(num_obs=n, model=name)
            assert float(rate.sel(decision="right")) == pytest.approx(right, abs=0.015)
            assert float(rate.sel(decision="misleading")) == pytest.approx(misleading, abs=0.01)
    # P(BF > 10) = 0.8 where n / 8 - 0.8416 sqrt(n) / 2 = log 10: n = 35.6 by the quadratic formula.
    root = (0.8416 / 2 + math.sqrt(0.8416**2 / 4 + math.log(10) / 2)) * 4
    for name in NAMES:
        number = found.needed(name)
        assert number is not None
        # A straight line in log n between 20 and 40 is not quite the curve.
        assert number == pytest.approx(root**2, rel=0.06)
        low, high = (float(found.results[f"needed_{end}"].sel(model=name)) for end in ("low", "high"))
        assert low <= number <= high


def test_reached_by_hand() -> None:
    assert reached([2, 8], np.array([0.5, 0.9]), 0.7) == 4.0  # half way in log n
    assert reached([2, 8], np.array([0.9, 0.9]), 0.7) == 2.0
    assert math.isnan(reached([2, 8], np.array([0.5, 0.6]), 0.7))
    # From here on: a rate that falls back does not count.
    assert reached([2, 4, 8, 16], np.array([0.8, 0.6, 0.8, 0.9]), 0.8) == 8.0


def test_what_is_not_reached_is_said() -> None:
    found = design_from({5: growing()[5]}, names=NAMES)
    assert found.needed("raised") is None
    assert "more than 5 observations, the most that were tried" in str(found)


def test_it_is_printed_and_saved(tmp_path: Path) -> None:
    found = design_from(growing(500), names=NAMES, threshold=3, power=0.9)
    assert "Evidence of 3 to 1 or more, with a probability of 0.9" in str(found)
    found.save(tmp_path / "design.json")
    plain = json.loads((tmp_path / "design.json").read_text())
    assert plain["num_obs"] == [5, 10, 20, 40, 80]
    assert len(plain["rates"]["zero"]["misleading"]) == 5
    found.save(tmp_path / "design.nc")
    assert (tmp_path / "design.nc").stat().st_size > 100


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"threshold": 0.5}, "at least 1"),
        ({"power": 1.0}, "between 0 and 1"),
        ({"log_bf": {}}, "at least one number"),
        ({"log_bf": {5: [[1.0, 2.0], []]}}, "0 data sets of zero"),
        ({"log_bf": {0: [[1.0, 2.0], [1.0, 2.0]]}}, "at least 1"),
        ({"names": ("a", "a")}, "distinct"),
    ],
)
def test_bad_input(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        design_from(**{"log_bf": growing(10), "names": NAMES, **arguments})
