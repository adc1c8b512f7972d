"""The list of ready-made studies, and the one way to load any of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from deepbf import _checks
from deepbf_studies.problems import (
    blob,
    change_points,
    covariate,
    field,
    five_counts,
    fixed_design,
    gamma_waits,
    grouped_counts,
    heavy_counts,
    hidden_states,
    influenza,
    lagged_pair,
    linear_regression,
    linear_series,
    local_level,
    logistic_fixed,
    mixture,
    normal_mean,
    pairs,
    probit_groups,
    random_effects,
    series_signals,
    t_test,
    toy,
    weapon,
)
from deepbf_studies.problems.study import Study

# The largest sample of the paper's figures.
_TOY_NUM_OBS = 128
_SERIES_LENGTH = 100


class _Entry(NamedTuple):
    """How to build a study, from its name and its number of observations, and how many it has by default."""

    build: Callable[[str, int], Study]
    num_obs: int


_ENTRIES: dict[str, _Entry] = {
    "data-1-i": _Entry(partial(toy.counts_study, label="Data 1 (i)", beta=(2.0, 2.0), gamma=(4.0, 4.0)), _TOY_NUM_OBS),
    "data-1-ii": _Entry(
        partial(toy.counts_study, label="Data 1 (ii)", beta=(1.0, 1.0), gamma=(1.0, 1.0)), _TOY_NUM_OBS
    ),
    "data-2": _Entry(mixture.mixture_study, _TOY_NUM_OBS),
    "data-3": _Entry(toy.waiting_times_study, _TOY_NUM_OBS),
    "weapon-sum": _Entry(weapon.weapon_sum_study, weapon.NUM_PEOPLE),
    "weapon-full": _Entry(weapon.weapon_full_study, weapon.NUM_PEOPLE),
    "random-effects": _Entry(random_effects.random_effects_study, random_effects.NUM_GROUPS),
    "ar-ma": _Entry(linear_series.ar_ma_study, _SERIES_LENGTH),
    "covariate": _Entry(covariate.covariate_study, covariate.NUM_TRIALS),
    "five-counts": _Entry(five_counts.five_counts_study, five_counts.NUM_OBS),
    "influenza": _Entry(influenza.influenza_study, influenza.NUM_DAYS),
    "series-event": _Entry(series_signals.event_study, series_signals.EVENT_SERIES_LENGTH),
    "series-season": _Entry(series_signals.season_study, series_signals.SEASON_SERIES_LENGTH),
    "series-variance-change": _Entry(change_points.variance_change_study, change_points.VARIANCE_SERIES_LENGTH),
    "series-hidden-states": _Entry(hidden_states.hidden_states_study, hidden_states.LENGTH),
    "series-local-level": _Entry(local_level.local_level_study, local_level.LENGTH),
    "series-pair": _Entry(lagged_pair.lagged_pair_study, lagged_pair.LENGTH),
    "field": _Entry(field.field_study, field.SIDE),
    "change-counts": _Entry(change_points.change_counts_study, change_points.NUM_COUNTS),
    "vector-fixed-design": _Entry(fixed_design.fixed_design_study, fixed_design.NUM_RESPONSES),
    "t-test": _Entry(t_test.t_test_study, t_test.NUM_OBS),
    "pairs": _Entry(pairs.pairs_study, pairs.NUM_PAIRS),
    "correlated-covariates": _Entry(linear_regression.correlated_covariates_study, linear_regression.NUM_OBS),
    "regression-rows": _Entry(linear_regression.regression_rows_study, linear_regression.NUM_OBS),
    "probit-groups": _Entry(probit_groups.probit_groups_study, probit_groups.NUM_RESPONSES),
    "heavy-counts": _Entry(heavy_counts.heavy_counts_study, heavy_counts.NUM_OBS),
    "gamma-waits": _Entry(gamma_waits.gamma_waits_study, gamma_waits.NUM_OBS),
    "logistic-fixed": _Entry(logistic_fixed.logistic_fixed_study, logistic_fixed.NUM_RESPONSES),
    "three-counts": _Entry(five_counts.three_counts_study, five_counts.NUM_OBS_OF_THREE),
    "normal-mean": _Entry(normal_mean.normal_mean_study, normal_mean.NUM_OBS),
    "grouped-counts": _Entry(grouped_counts.grouped_counts_study, grouped_counts.NUM_RESPONSES),
    "image-blob": _Entry(blob.blob_study, blob.SIDE),
}

KEPT_OUT = (
    "series-local-level",
    "series-pair",
    "vector-fixed-design",
    "gamma-waits",
    "regression-rows",
    "probit-groups",
    "image-blob",
)
"""Problems kept out of development: no default, network or schedule is chosen by results on them.

They are for measuring, after all choices are made, how well these carry over to problems that had no part in them.
"""


def names() -> tuple[str, ...]:
    """Return the names that `load` knows: those of the paper first.

    Examples
    --------
    >>> names()[:4]
    ('data-1-i', 'data-1-ii', 'data-2', 'data-3')
    """
    return tuple(_ENTRIES)


def load(name: str, *, num_obs: int | None = None) -> Study:
    """Return the study called `name`, with data sets of `num_obs` observations.

    By default the paper's number: 128 for the toy studies, 42 for the weapon studies, whose observations are people. A
    data set of "weapon-sum" has twelve numbers however many people they sum over. All others are not in the paper: of
    "random-effects", `num_obs` is the number of groups, 20 by default; of "ar-ma", points in time, 100 by default; of
    "covariate", whose data are dicts of arrays, trials, 40 by default; of "five-counts", which has five models, counts,
    50 by default; of "influenza", which has real data, `observed`, but no exact answer, days, 14 by default. Those
    that follow are there to judge networks by: time series of 60 to 100 points, of which "series-pair" has two columns;
    "field", whose data sets are squares of `num_obs` rows, 16 by default; and the vectors "change-counts" and
    "vector-fixed-design", of 20 values each by default. Some of them are `KEPT_OUT` of development.

    The last twelve are sets, regressions and images with exact answers, described in the module of each. Of
    "image-blob", too, `num_obs` is the number of rows of a square.

    Everything in a study pickles, so its models can be simulated by a pool of processes.

    Examples
    --------
    >>> study = load("data-3", num_obs=4)
    >>> [model.name for model in study.models]
    ['exponential, unknown rate', 'exponential, rate 3']
    >>> study.exact_log_bf(study.models[0].simulate(5, seed=1).data).shape
    (5,)
    """
    name = _checks.check_choice("name", name, names())
    entry = _ENTRIES[name]
    return entry.build(name, entry.num_obs if num_obs is None else _checks.check_count("num_obs", num_obs))
