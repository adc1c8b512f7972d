"""Maps of variants: made of exact Bayes factors they are exact, and those of the library agree with them."""

from pathlib import Path

import numpy as np
import pytest

from deepbf_studies.paper import variant_maps
from deepbf_studies.paper.methods import FNN, OURS
from deepbf_studies.paper.step import Cache
from deepbf_studies.paper.toy_answers import NARROW, STUDIES, WIDE, exact_step
from deepbf_studies.paper.variant_maps import VARIANTS, odds_of_variants, variants_of
from studies.tests.paper.exact_estimators import OFFSET, TINY, drawn, replace_training

TARGETS = {target.name: target for target in variant_maps.TARGETS}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    replace_training(monkeypatch)
    return Cache(tmp_path)


def test_variants_of_waiting_times_are_ratios_of_predictive_densities() -> None:
    step = exact_step("data-3", TINY)
    exact = step.compute(**step.settings)
    found = variants_of(exact[[NARROW]])[NARROW].sel(narrow_first=1.5, narrow_second=3.0)

    def predictive(new: float, shape: float, rate: float) -> float:
        """The density of a waiting time whose rate is Gamma(shape, rate), over that of rate 3."""
        return shape * rate**shape / (rate + new) ** (shape + 1) / (3 * np.exp(-3 * new))

    # Gamma(2, 2) after one waiting time is Gamma(3, 2 + it); after both Gamma(4, 6.5).
    second_given_first, first_given_second = predictive(3.0, 3, 3.5), predictive(1.5, 3, 5.0)
    both_given_both = predictive(1.5, 4, 6.5) * predictive(3.0, 5, 8.0)
    expected = {
        "partial": np.log(second_given_first),
        "posterior": np.log(both_given_both),
        "geometric": np.log(second_given_first * first_given_second) / 2,
        "arithmetic": np.log((second_given_first + first_given_second) / 2),
    }
    assert {name: float(found.sel(part=name)) for name in VARIANTS} == pytest.approx(expected, abs=1e-12)


def test_intrinsic_variants_ignore_order_and_the_arithmetic_is_the_larger() -> None:
    step = exact_step("data-2", TINY)
    exact = step.compute(**step.settings)
    plane = {name: np.asarray(variants_of(exact[[WIDE]])[WIDE].sel(part=name)) for name in VARIANTS}
    for name in ("posterior", "geometric", "arithmetic"):
        np.testing.assert_allclose(plane[name], plane[name].T, atol=1e-9)
    assert np.abs(plane["partial"] - plane["partial"].T).max() > 1
    assert (plane["arithmetic"] >= plane["geometric"] - 1e-12).all()


def test_maps_have_the_errors_of_the_estimators(cache: Cache) -> None:
    drawing = drawn(TARGETS["figure-2"], cache)
    assert set(drawing.figures) == {"data-1", "data-2", "data-3"}
    # Ours is off by the constant itself; of the paper's way it cancels between networks.
    for study in STUDIES:
        for variant in VARIANTS:
            found = drawing.numbers[study][variant]
            assert found[OURS][WIDE]["rmse"] == pytest.approx(OFFSET)
            assert found[FNN][WIDE]["rmse"] == pytest.approx(0.0, abs=1e-9)
            assert all(found[method][WIDE]["num_not_finite"] == 0 for method in (FNN, OURS))


def test_scatter_plots_show_every_variant_and_count_what_is_not_finite(cache: Cache) -> None:
    drawing = drawn(TARGETS["figure-s21"], cache)
    for figure in drawing.figures.values():
        assert len(figure.axes) == 2 * len(VARIANTS)
        assert len(figure.legends) == 1
    for study in STUDIES:
        for variant in VARIANTS:
            shares = drawing.numbers["share not finite"][study][variant]
            assert shares[FNN] == 0
            assert shares[OURS] == 0 <= shares["as probabilities"]
    assert "0.35% of partial" in drawing.text


def test_all_three_figures_need_the_same_steps() -> None:
    keys = [{step.key for step in target.plan("quick").values()} for target in variant_maps.TARGETS]
    assert keys[0] == keys[1] == keys[2]
    assert len(keys[0]) == 15


def test_products_of_odds_overflow_and_differences_of_logs_do_not() -> None:
    step = exact_step("data-3", TINY)
    exact = step.compute(**step.settings)
    far = exact.assign(samples=exact["samples"] * 0 + 100.0)
    assert not any(np.isfinite(odds).any() for odds in odds_of_variants(far).values())
    np.testing.assert_allclose(np.asarray(variants_of(far[["samples"]])["samples"]), 0.0, atol=1e-12)


@pytest.mark.slow
def test_our_one_fit_answers_every_variant_with_finite_numbers() -> None:
    step = variant_maps.variants_step("data-3", TINY)
    answers = step.compute(**step.settings)
    assert list(answers["part"].values) == list(VARIANTS)
    for place in (NARROW, WIDE, "samples"):
        assert np.isfinite(np.asarray(answers[place])).all()
