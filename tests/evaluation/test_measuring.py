"""The whole toolkit at once: right estimators pass every check, wrong ones fail those they should."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepbf.evaluation import Evaluation, measure
from deepbf.evaluation.self_consistency import Verdict
from deepbf.evaluation.table import write_number
from tests.evaluation.problems import shifted_normals, stretched

NAMES = ("raised mean", "zero mean")
EXACT = shifted_normals(1500, seed=1)
NUM_CHECKS = 8


@pytest.fixture(scope="module")
def both() -> Evaluation:
    return measure(
        {"right": EXACT, "wrong": stretched(EXACT)},
        exact=EXACT,
        names=NAMES,
        observed={"right": 0.5, "wrong": 1.75},
    )


def verdicts(evaluation: Evaluation, estimator: str) -> dict[str, str]:
    return {check.name: check.verdict for check in evaluation.checks if check.estimator == estimator}


def test_a_right_estimator_passes_every_check(both: Evaluation) -> None:
    assert verdicts(both, "right") == dict.fromkeys(verdicts(both, "right"), "holds")
    assert len(verdicts(both, "right")) == NUM_CHECKS


def test_a_wrong_estimator_fails_every_check(both: Evaluation) -> None:
    found = verdicts(both, "wrong")
    assert found.keys() == verdicts(both, "right").keys()
    # Log odds times 1.5 plus 1 raise the mean of BF12 above 1; the mean of BF21, exp(-1) times that of BF21^1.5, falls.
    assert found == dict.fromkeys(found, "fails")


def test_few_replicates_are_enough_to_fail() -> None:
    found = measure(stretched(EXACT), names=NAMES, num_replicates=20)
    assert set(verdicts(found, "estimate").values()) == {"fails"}


def test_right_estimators_rarely_fail_a_check() -> None:
    fails = 0
    for seed in range(20):
        evaluation = measure(shifted_normals(300, seed=100 + seed), num_replicates=100, seed=seed)
        fails += sum(check.verdict == "fails" for check in evaluation.checks)
    # 160 checks at 3 standard errors: 0.4 expected, 4 or more with probability 1e-3.
    assert fails <= 3


def test_what_ranks_decide_does_not_fail(both: Evaluation) -> None:
    for metric, right in (("spearman", 1.0), ("surprise_mse", 0.0)):
        assert both.value(metric, "wrong") == pytest.approx(right, abs=1e-7)
    assert both.value("auc", "wrong") == pytest.approx(both.value("auc", "right"), abs=1e-5)
    np.testing.assert_array_equal(both.results["surprise"][0], both.results["surprise"][1])


def test_what_the_truth_shows_fails(both: Evaluation) -> None:
    for metric in ("mse", "clipped_mse", "kl", "excess_loss"):
        found = both.results[metric].sel(estimator="wrong", group="weighted")
        error = both.results[f"{metric}_error"].sel(estimator="wrong", group="weighted")
        assert float(found) > 4 * float(error) > 0
        assert both.value(metric, "right") == 0
    assert both.value("agreement", "wrong") < 0.9
    assert both.value("agreement", "right") == 1


def test_the_exact_one_stands_beside_the_others(both: Evaluation) -> None:
    assert both.estimators == ("right", "wrong")
    assert both.has_exact
    assert both.results["estimator"].values.tolist() == ["right", "wrong", "exact"]
    assert both.value("loss", "exact") == both.value("loss", "right")


def test_weighted_is_weighted_by_prior_probability() -> None:
    found = measure(stretched(EXACT), exact=EXACT, names=NAMES, prior_probs=[0.2, 0.8], num_replicates=20)
    for metric in ("mse", "spearman", "kl", "agreement", "excess_loss", "surprise_mse", "loss"):
        first, second, weighted = found.results[metric].sel(estimator="estimate").values
        assert weighted == pytest.approx(0.2 * first + 0.8 * second)


@pytest.mark.slow
def test_bootstrap_errors_are_the_spread_over_repetitions() -> None:
    """The errors of metrics that no formula covers, against the spread over simulations drawn anew."""
    metrics = ("kl", "spearman", "surprise_mse", "auc", "balanced_log_threshold")
    found: dict[str, list[tuple[float, float]]] = {metric: [] for metric in metrics}
    for seed in range(40):
        exact = shifted_normals(400, seed=200 + seed)
        rng = np.random.default_rng(seed)
        estimated = [part + rng.normal(0, 0.5, len(part)) for part in exact]
        results = measure(estimated, exact=exact, num_replicates=100).results.sel(estimator="estimate")
        for metric in metrics:
            pair = [results[name] for name in (metric, f"{metric}_error")]
            value, error = (float(part.sel(group="weighted") if "group" in part.dims else part) for part in pair)
            found[metric].append((value, error))
    for metric, pairs in found.items():
        values, errors = np.array(pairs).T
        # The spread of 40 is known to 11%; the bootstrap of a threshold is rough.
        assert errors.mean() == pytest.approx(values.std(ddof=1), rel=0.6 if "threshold" in metric else 0.45), metric


def test_infinite_log_bfs_are_counted_and_ranked() -> None:
    foreign = [part.copy() for part in EXACT]
    foreign[0][:3], foreign[1][:2] = np.inf, -np.inf
    foreign[1][2] = np.inf
    found = measure(foreign, exact=EXACT, names=NAMES, num_replicates=50)
    assert found.results["num_infinite"].values.tolist() == [[3, 3], [0, 0]]
    assert found.value("mse") == np.inf
    for metric in ("clipped_mse", "spearman", "kl", "auc", "surprise_mse", "estimated_prior", "calibration_error"):
        assert np.isfinite(found.value(metric)), metric
    # Sure of the wrong model once: an infinite loss, and not to be hidden.
    assert found.value("loss", group="zero mean") == np.inf
    assert np.isfinite(found.value("loss", group="raised mean"))
    failed = {check.name: check for check in found.checks if check.verdict == "fails"}
    assert "6 infinite and 0 nan of 3000" in failed["finite log Bayes factors"].detail
    assert "6 infinite and 0 nan of 3000" in str(found)


def test_missing_log_bfs_are_left_out_and_counted() -> None:
    foreign = [part.copy() for part in stretched(EXACT)]
    foreign[0][5:15] = np.nan
    found = measure(foreign, exact=EXACT, names=NAMES, num_replicates=50)
    assert found.results["num_missing"].sel(estimator="estimate").values.tolist() == [10, 0]
    kept = np.r_[0:5, 15:1500]
    again = measure(
        [stretched(EXACT)[0][kept], stretched(EXACT)[1]],
        exact=[EXACT[0][kept], EXACT[1]],
        names=NAMES,
        num_replicates=50,
    )
    for metric in ("mse", "kl", "spearman", "auc", "calibration_error", "slope"):
        assert found.value(metric) == again.value(metric)
    assert "0 infinite and 10 nan of 3000" in str(found)
    assert np.isnan(found.results["log_bf"].sel(estimator="estimate")).sum() == 10


def test_without_exact_values_there_are_no_metrics_against_them() -> None:
    found = measure(EXACT, names=NAMES, num_replicates=20)
    assert not found.has_exact
    assert not {"mse", "kl", "spearman", "category_confusion"} & set(found.results)
    assert "Against the exact" not in str(found)
    assert found.value("auc") > 0.6


def test_swapping_the_models_turns_everything_round() -> None:
    swapped = [-EXACT[1], -EXACT[0]]
    a = measure(stretched(EXACT), exact=EXACT, names=("A", "B"), num_replicates=20)
    b = measure([-part for part in reversed(stretched(EXACT))], exact=swapped, names=("B", "A"), num_replicates=20)
    for metric in ("mse", "kl", "spearman", "agreement", "excess_loss", "surprise_mse", "loss"):
        for group in ("A", "B", "weighted"):
            assert a.value(metric, group=group) == pytest.approx(b.value(metric, group=group), rel=1e-9)
    assert a.value("estimated_prior") == pytest.approx(1 - b.value("estimated_prior"))
    assert a.value("balanced_log_threshold") == pytest.approx(-b.value("balanced_log_threshold"))
    assert a.value("intercept") == pytest.approx(-b.value("intercept"), abs=1e-6)


def test_an_evaluation_survives_its_file(both: Evaluation, tmp_path: Path) -> None:
    both.save(tmp_path / "evaluation.nc")
    back = Evaluation.load(tmp_path / "evaluation.nc")
    assert back.results.identical(both.results)
    assert str(back) == str(both)


def test_json_holds_every_number(both: Evaluation, tmp_path: Path) -> None:
    both.save(tmp_path / "evaluation.json")
    plain = json.loads((tmp_path / "evaluation.json").read_text())
    assert plain["variables"]["mse"]["dims"] == ["estimator", "group"]
    np.testing.assert_allclose(plain["variables"]["mse"]["values"], both.results["mse"].values)
    assert plain["coordinates"]["estimator"]["values"] == ["right", "wrong", "exact"]
    assert set(plain["variables"]) == set(both.results.data_vars)
    assert len(plain["checks"]) == 2 * NUM_CHECKS


def test_json_writes_infinities_and_nan_as_what_they_are(tmp_path: Path) -> None:
    foreign = [part.copy() for part in EXACT]
    foreign[0][0], foreign[1][0] = -np.inf, np.nan
    measure(foreign, num_replicates=20).save(tmp_path / "e.json")
    values = json.loads((tmp_path / "e.json").read_text())["variables"]["log_bf"]["values"][0]
    assert values[0] == "-inf"
    assert values[1500] is None


def test_files_that_are_no_evaluation_are_refused(tmp_path: Path, both: Evaluation) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        Evaluation.load(tmp_path / "missing.nc")
    (tmp_path / "text.nc").write_text("no")
    with pytest.raises(ValueError, match="cannot be read as netCDF"):
        Evaluation.load(tmp_path / "text.nc")
    both.results[["mse"]].drop_attrs().to_netcdf(tmp_path / "other.nc", engine="scipy")
    with pytest.raises(ValueError, match="no evaluation"):
        Evaluation.load(tmp_path / "other.nc")


def test_the_table_names_models_direction_and_clip(both: Evaluation) -> None:
    text = str(both)
    assert text.startswith("Log Bayes factor (natural log) of raised mean over zero mean, at 1,500 data sets of raised")
    for words in ("clipped at +-13.8", "Spearman's rho", "P(BF <= observed) under raised mean", "right", "wrong"):
        assert words in text
    assert max(len(line) for line in text.splitlines()) < 160


@pytest.mark.parametrize(
    ("value", "error", "written"),
    [
        (1234.5, 343.0, "1234 +- 343"),
        (0.5, 0.0, "0.500 +- 0.000"),
        (2.5e7, 1e6, "2.5e+07 +- 1.0e+06"),
        (np.inf, np.nan, "inf"),
        (np.nan, 0.1, "undefined"),
        (1e-9, None, "1e-09"),
        (0.0, 0.0, "0.000 +- 0.000"),
    ],
)
def test_numbers_are_written_with_the_digits_that_their_error_leaves(value: float, error: Any, written: str) -> None:
    assert write_number(value, error) == written


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "different lengths": (
        {"exact": [EXACT[0][:-1], EXACT[1]]},
        r"at data of A, .* has 1500 entries and exact has 1499",
    ),
    "an empty model": ({"log_bf": [EXACT[0], []]}, "0 data sets of B; the toolkit needs at least 2"),
    "one model": ({"log_bf": [EXACT[0]]}, "must be two one-dimensional arrays.*received 1"),
    "a matrix": ({"log_bf": [np.zeros((3, 2)), EXACT[1]]}, r"the shape is \(3, 2\)"),
    "a nan truth": ({"exact": [np.full(1500, np.nan), EXACT[1]]}, "exact has 1500 nan of 1500 at data of A"),
    "nothing but nan": ({"log_bf": [np.full(1500, np.nan), EXACT[1]]}, "nothing is left to measure"),
    "no estimator": ({"log_bf": {}}, "at least one estimator"),
    "an estimator called exact": ({"log_bf": {"exact": EXACT}}, "no estimator may be called 'exact'"),
    "other data": ({"log_bf": {"a": EXACT, "b": [EXACT[0], EXACT[1][:9]]}}, "'a' has 1500 entries and 'b' has 9"),
    "equal names": ({"names": ("A", "A")}, "names must be distinct"),
    "three names": ({"names": ("A", "B", "C")}, "names of two models"),
    "a reserved name": ({"names": ("A", "weighted")}, "not 'weighted'"),
    "probabilities": ({"prior_probs": [0.5, 0.6]}, "must sum to 1"),
    "a clip": ({"clip": -1.0}, "clip must be finite and above 0"),
    "replicates": ({"num_replicates": 1}, "num_replicates must be at least 2"),
    "observed for whom": ({"log_bf": {"a": EXACT, "b": EXACT}, "observed": 1.0}, "dict by estimator"),
    "observed for nobody": ({"observed": {"abc": 1.0}}, "the estimator of observed must be one of 'estimate'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    arguments, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        measure(**{"log_bf": EXACT, "names": ("A", "B"), "num_replicates": 20, **arguments})


def test_bad_types() -> None:
    with pytest.raises(TypeError, match="received float"):
        measure(1.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="must hold real numbers"):
        measure([["large"] * 3, EXACT[1]])


def test_values_are_asked_for_by_names_that_exist(both: Evaluation) -> None:
    with pytest.raises(ValueError, match=r"metric must be one of .*Did you mean 'mse'"):
        both.value("msee", "right")
    with pytest.raises(ValueError, match="estimator must be one of 'right', 'wrong', 'exact'"):
        both.value("mse", "left")
    with pytest.raises(ValueError, match="group must be one of 'raised mean', 'zero mean', 'weighted'"):
        both.value("mse", "right", "both")


@pytest.mark.parametrize(
    "log_bf", [([-1.0, 1.0] * 20, [-1.0, 1.0] * 20), ([1.0] * 40, [1.0] * 40), ([0.0] * 40, [1e-15] * 40)]
)
def test_degenerate_estimators_are_printed_without_a_warning(log_bf: Any, recwarn: pytest.WarningsRecorder) -> None:
    found = measure(log_bf, num_replicates=20)
    assert "Checks" in str(found)
    found.to_dict()
    assert [str(warning.message) for warning in recwarn] == []


def test_a_reversed_estimator_fails() -> None:
    found = measure((np.linspace(-9, -1, 50), np.linspace(1, 9, 50)), num_replicates=20)
    assert verdicts(found, "estimate")["slope of recalibration"] == "fails"


def test_models_told_apart_too_well_for_a_slope_are_said_to_be() -> None:
    at_first, at_second = np.r_[np.full(49, 20.0), -3.0], np.r_[np.full(49, -20.0), 2.0]
    nearly = (np.r_[np.full(99, 20.0), 0.5], np.r_[np.full(99, -20.0), 1.0])
    for log_bf in ((at_first, at_second), nearly):
        found = measure(log_bf, num_replicates=20)
        holds = verdicts(found, "estimate")["slope of recalibration"] == Verdict.HOLDS
        assert not holds or found.value("slope_error") < 0.5


def test_an_estimator_that_answers_only_the_easy_data_sets_is_shown_to() -> None:
    picky = [np.where(np.abs(part) > 1, np.nan, part) for part in EXACT]
    found = measure({"picky": picky, "all": EXACT}, exact=EXACT, names=NAMES, num_replicates=20)
    line = next(line for line in str(found).splitlines() if "not answered (nan)" in line)
    assert f"{int(sum(np.isnan(part).sum() for part in picky))} of 3000" in line


def test_few_data_sets_leave_the_checks_unusable() -> None:
    found = measure([part[:10] for part in EXACT], exact=[part[:10] for part in EXACT], num_replicates=50)
    assert {check.verdict for check in found.checks} == {"unusable"}
    assert np.isfinite(found.results["spearman_error"]).all()


def test_jeffreys_categories_are_printed(both: Evaluation) -> None:
    assert "Jeffreys' categories, right, data sets" in str(both)
    assert "10 decisive for raised mean" in str(both)


def test_ties_split_by_rounding_are_ties() -> None:
    rng = np.random.default_rng(3)
    exact = [np.round(part) for part in EXACT]
    noisy = [part + rng.normal(0, 1e-7, len(part)) for part in exact]
    found = measure(
        {"rounded": exact, "noisy": noisy}, exact=exact, observed={"rounded": 0.0, "noisy": 0.0}, num_replicates=20
    )
    for metric in ("spearman", "surprise_mse", "auc", "balanced_log_threshold"):
        assert found.value(metric, "noisy") == pytest.approx(found.value(metric, "rounded"), abs=1e-6)
    np.testing.assert_array_equal(*found.results["surprise"].values[:2])


def test_a_loaded_evaluation_becomes_json_and_large_seeds_are_kept(tmp_path: Path) -> None:
    found = measure(EXACT, num_replicates=20, seed=2**70)
    found.save(tmp_path / "e.nc")
    Evaluation.load(tmp_path / "e.nc").save(tmp_path / "e.json")
    assert json.loads((tmp_path / "e.json").read_text())["attributes"]["bootstrap_seed"] == str(2**70)
    with pytest.raises(FileNotFoundError, match="folder that does not exist"):
        found.save(tmp_path / "nowhere" / "e.nc")


def test_several_estimators_need_a_name(both: Evaluation) -> None:
    with pytest.raises(ValueError, match="estimator must be one of right, wrong"):
        both.value("mse")


def test_verdicts_are_values_that_print_as_words(both: Evaluation) -> None:
    found = {check.verdict for check in both.checks}
    assert found == {Verdict.HOLDS, Verdict.FAILS}
    assert all(isinstance(check.verdict, Verdict) for check in both.checks)
    assert [f"{verdict}" for verdict in Verdict] == ["holds", "fails", "unusable"]
    assert json.loads(json.dumps(both.to_dict()["checks"]))[0]["verdict"] == "holds"


def test_the_area_under_the_curve_is_that_of_the_curve_though_rounding_splits_ties() -> None:
    rng = np.random.default_rng(5)
    tied = [np.round(part, 1) + rng.normal(0, 1e-8, len(part)) for part in EXACT]
    found = measure(tied, num_replicates=2)
    rates = (found.results[f"{kind}_positive_rate"].values[0] for kind in ("true", "false"))
    assert np.trapezoid(*rates) == pytest.approx(found.value("auc"), abs=1e-12)
