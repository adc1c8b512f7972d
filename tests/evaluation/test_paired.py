"""Paired differences: the metrics' own differences, with errors that know what both estimators share."""

import numpy as np
import pytest

from deepbf.evaluation import measure, paired_differences
from deepbf.evaluation.paired import Difference
from tests.evaluation.problems import shifted_normals

EXACT = shifted_normals(1500, seed=1)


def noisy(sd: float, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [part + rng.normal(0, sd, len(part)) for part in EXACT]


def test_differences_are_those_of_the_metrics() -> None:
    one, other = noisy(0.2, 1), noisy(0.3, 2)
    found = paired_differences(one, other, EXACT, num_replicates=20)
    both = measure({"one": one, "other": other}, exact=EXACT, num_replicates=20)
    for metric, difference in found.items():
        assert difference.value == pytest.approx(both.value(metric, "one") - both.value(metric, "other"), abs=1e-12)


def test_errors_are_those_of_fresh_data_sets() -> None:
    """The bootstrap error is the spread over repetitions of everything, to within what 60 of them can tell."""

    def once(seed: int) -> dict[str, Difference]:
        exact = shifted_normals(200, seed=seed)
        rng = np.random.default_rng(seed)
        one, other = ([part + rng.normal(0, sd, len(part)) for part in exact] for sd in (0.3, 0.4))
        return paired_differences(one, other, exact, num_replicates=40)

    repeated = [once(seed) for seed in range(100, 160)]
    for metric in ("clipped_mse", "auc", "posterior_kl"):
        spread = np.std([one[metric].value for one in repeated], ddof=1)
        assert np.mean([one[metric].error for one in repeated]) == pytest.approx(spread, rel=0.4), metric


def test_what_is_shared_is_no_error() -> None:
    one = noisy(0.2, 1)
    nearly = [part + 1e-3 for part in one]
    paired = paired_differences(one, nearly, EXACT, num_replicates=50)["auc"]
    alone = float(measure(one, exact=EXACT, num_replicates=50).results["auc_error"][0])
    assert paired.error < 0.1 * alone


def test_data_sets_that_one_left_unanswered_do_not_count() -> None:
    one, other = noisy(0.2, 1), noisy(0.3, 2)
    holes = [np.where(np.arange(len(part)) < 100, part, np.nan) for part in other]
    found = paired_differences(one, holes, EXACT, num_replicates=10)
    shortened = [[part[:100] for part in parts] for parts in (one, other, EXACT)]
    assert found == paired_differences(*shortened, num_replicates=10)
    with pytest.raises(ValueError, match="at least 2 data sets"):
        paired_differences([np.where(np.isnan(part), 0.0, np.nan) for part in holes], holes, EXACT)


@pytest.mark.parametrize(
    ("value", "error", "higher_is_better", "verdict"),
    [
        (-0.1, 0.01, False, "better"),
        (0.1, 0.01, False, "worse"),
        (0.1, 0.06, False, "tie"),
        (0.1, 0.01, True, "better"),
        (-0.1, 0.01, True, "worse"),
        (0.0, 0.0, True, "tie"),
        (np.nan, np.nan, True, "tie"),
    ],
)
def test_verdicts(value: float, error: float, higher_is_better: bool, verdict: str) -> None:
    assert Difference(value, error, higher_is_better).verdict == verdict
