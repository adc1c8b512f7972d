"""Influenza: the outbreak, epidemics that obey their limits, and an evidence that is right where one knows it."""

import pickle

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import solve_ivp
from scipy.special import logit

from deepbf.cli.evaluate import directed_exact
from deepbf.cli.files import named_or_file
from deepbf_studies import problems
from deepbf_studies.problems import influenza, influenza_evidence
from deepbf_studies.problems.influenza import (
    IN_BED,
    LATENT,
    NO_LATENT,
    NUM_BED_STAGES,
    NUM_BOYS,
    PRIORS,
    VARYING,
    Epidemic,
)

NAMES = (NO_LATENT, LATENT, VARYING)
TYPICAL = {
    "reproduction": 3.0,
    "infectious_days": 1.2,
    "bed_days": 2.5,
    "share_to_bed": 0.9,
    "first_cases": 3.0,
    "latent_days": 1.0,
    "daily_variation": 0.3,
}


def params_of(name: str, size: int, **changed: float) -> dict[str, NDArray[np.float64]]:
    return {param: np.full(size, (TYPICAL | changed)[param]) for param in influenza.param_names(name)}


def simulate(name: str, size: int, *, days: int = 14, seed: int = 1, **changed: float) -> NDArray[np.int64]:
    epidemic = influenza.epidemic_of(name)
    return epidemic(np.random.default_rng(seed), params_of(name, size, **changed), num_obs=days)


# The study


def test_the_study_has_the_outbreak_and_no_exact_answer() -> None:
    study = problems.load("influenza")
    assert (study.num_obs, study.structure, study.exact_log_bf) == (14, "series", None)
    assert study.observed is not None
    assert (study.observed.sum(), study.observed.max(), study.observed.argmax()) == (1559, 298, 5)
    assert [model.name for model in study.models] == [NO_LATENT, LATENT]


def test_the_number_of_days_can_be_chosen() -> None:
    assert problems.load("influenza", num_obs=5).observed.tolist() == list(IN_BED[:5])  # pyright: ignore
    longer = problems.load("influenza", num_obs=20)
    assert longer.observed is None
    assert longer.models[1].simulate(3, seed=1).data.shape == (3, 20)


def test_the_study_survives_pickling() -> None:
    for model in problems.load("influenza").models:
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.simulate(5, seed=2).data, model.simulate(5, seed=2).data)


def test_the_command_line_finds_it_without_an_exact_answer() -> None:
    found = named_or_file("influenza")
    assert (found.exact_log_bf, found.settings) == (None, {"structure": "series"})
    assert directed_exact(found.exact_log_bf, (1, 0)) is None


def test_priors_have_their_medians_and_spreads() -> None:
    drawn = influenza.draw_params(np.random.default_rng(1), 20_000, names=PRIORS)
    for name, prior in PRIORS.items():
        normal = logit(drawn[name]) if prior.is_share else np.log(drawn[name])
        centre = logit(prior.median) if prior.is_share else np.log(prior.median)
        assert stats.kstest((normal - centre) / prior.spread, "norm").pvalue > 1e-6
        np.testing.assert_allclose(prior.at(prior.standard(drawn[name])), drawn[name], rtol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_the_outbreak_is_nothing_unusual_before_the_data(name: str) -> None:
    drawn = influenza.epidemic_model(name).simulate(4000, seed=3).data
    assert isinstance(drawn, np.ndarray)
    for statistic in (lambda data: data.max(axis=1), lambda data: data.sum(axis=1), lambda data: data[:, 4]):
        below = (statistic(drawn) <= statistic(np.array([IN_BED]))).mean()
        assert 0.05 < below < 0.98


# Epidemics


@pytest.mark.parametrize("name", NAMES)
def test_boys_neither_come_nor_go(name: str) -> None:
    epidemic, rng = influenza.epidemic_of(name), np.random.default_rng(4)
    params = influenza.draw_params(rng, 300, names=influenza.param_names(name))
    chances, school = epidemic.chances(params), epidemic.start(rng, params, (300,))
    up_again = np.zeros(300, dtype=int)
    for _ in range(80):
        contacts = epidemic.contacts_of_a_day(rng, chances, school)
        before, school = school, epidemic.step(rng, school, chances, contacts)
        ill = [school.latent, school.infectious, *school.in_bed]
        assert min(counts.min() for counts in (school.susceptible, *ill)) >= 0
        assert (school.susceptible <= before.susceptible).all()
        now_up = NUM_BOYS - school.susceptible - np.sum(ill, axis=0)
        assert (now_up >= up_again).all()
        up_again = now_up


@pytest.mark.parametrize("name", NAMES)
def test_counts_stay_within_the_school_whatever_the_parameters(name: str) -> None:
    extreme = simulate(name, 200, reproduction=1e4, infectious_days=0.01, bed_days=1e3, share_to_bed=1 - 1e-12)
    assert extreme.min() >= 0
    assert extreme.max() <= NUM_BOYS
    assert (extreme[:, -1] > 0.9 * NUM_BOYS).all()


@pytest.mark.parametrize("name", NAMES)
def test_without_infection_only_the_first_cases_are_ill(name: str) -> None:
    counts = simulate(name, 2000, reproduction=1e-9, share_to_bed=0.5, bed_days=1e6, infectious_days=0.3, days=20)
    # 1 + Poisson(3) boys, each to bed with probability a half, where all who will have gone after 20 days.
    assert counts[:, -1].mean() == pytest.approx(2.0, abs=4 * np.sqrt((0.25 * 4 + 0.25 * 3) / 2000))


def test_stays_in_bed_have_their_mean_and_their_spread() -> None:
    """Everybody starts in the first stage of bed: the share still there is the survival of an Erlang time."""
    epidemic = Epidemic(NUM_BOYS, steps_a_day=48)
    rng = np.random.default_rng(5)
    chances = epidemic.chances(params_of(NO_LATENT, 50))
    school = epidemic.start(rng, params_of(NO_LATENT, 50), (50,))
    nobody = np.zeros(50, dtype=int)
    school = school._replace(
        susceptible=nobody, infectious=nobody, in_bed=(np.full(50, NUM_BOYS),) + (nobody,) * (NUM_BED_STAGES - 1)
    )
    for day in (1, 2, 3, 4):
        for _ in range(epidemic.steps_a_day):
            school = epidemic.step(rng, school, chances, chances.contacts)
        expected = stats.gamma.sf(day, NUM_BED_STAGES, scale=TYPICAL["bed_days"] / NUM_BED_STAGES)
        # Moving on takes at least a step a stage: a shift of about one step of a 48th of a day.
        assert school.num_in_bed.mean() / NUM_BOYS == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("name", [NO_LATENT, LATENT])
def test_a_large_school_follows_the_differential_equations(name: str) -> None:
    """In a school of a million boys and short steps, chance averages out."""
    num_boys, first = 1_000_000, 5_000.0
    epidemic = Epidemic(num_boys, has_latent=name == LATENT, steps_a_day=96)
    params = params_of(name, 4, first_cases=first)
    found = epidemic(np.random.default_rng(6), params, num_obs=10).mean(axis=0)
    expected = mean_field(name, num_boys, first, days=10)
    # Explicit steps lag behind the equations in proportion to their length.
    np.testing.assert_allclose(found, expected, atol=0.02 * expected.max())


def mean_field(name: str, num_boys: int, first: float, days: int) -> NDArray[np.float64]:
    p = TYPICAL
    stage_rate = NUM_BED_STAGES / p["bed_days"]
    has_latent = name == LATENT
    latent = (first + 1) * p["latent_days"] / (p["latent_days"] + p["infectious_days"]) if has_latent else 0.0

    def slopes(_: float, y: NDArray[np.float64]) -> list[float]:
        susceptible, waiting, infectious, *bed = y
        infection = p["reproduction"] / p["infectious_days"] * susceptible * infectious / num_boys
        onset = waiting / p["latent_days"] if has_latent else infection
        arriving = [p["share_to_bed"] * infectious / p["infectious_days"], *(stage_rate * b for b in bed[:-1])]
        return [
            -infection,
            infection - onset,
            onset - infectious / p["infectious_days"],
            *(come - stage_rate * b for come, b in zip(arriving, bed, strict=True)),
        ]

    start = [num_boys - first - 1, latent, first + 1 - latent, *[0.0] * NUM_BED_STAGES]
    solved = solve_ivp(slopes, (0, days), start, t_eval=np.arange(1, days + 1), rtol=1e-8)
    return solved.y[3:].sum(axis=0)


def test_a_latent_stage_delays_the_peak() -> None:
    assert simulate(LATENT, 200).argmax(axis=1).mean() > simulate(NO_LATENT, 200).argmax(axis=1).mean() + 1


def test_contact_that_does_not_vary_is_constant_contact() -> None:
    constant = simulate(NO_LATENT, 4000, days=5)[:, 4]
    varying = simulate(VARYING, 4000, days=5, seed=2, daily_variation=1e-9)[:, 4]
    # Both means are of 4,000 courses.
    error = np.hypot(constant.std(), varying.std()) / np.sqrt(4000)
    assert abs(constant.mean() - varying.mean()) < 4 * error
    assert error < 2
    assert varying.std() == pytest.approx(constant.std(), rel=0.06)
    # What varies has the same mean contact, and spreads the course.
    assert simulate(VARYING, 4000, days=5, seed=3, daily_variation=0.6)[:, 4].std() > 1.2 * constant.std()


# The evidence by particles


@pytest.mark.parametrize("name", NAMES)
def test_the_filter_gives_the_probability_of_what_is_simulated(name: str) -> None:
    """Three days of small numbers: how often simulations show them is their probability."""
    changed = {"first_cases": 1.0, "reproduction": 1.5}
    drawn = simulate(name, 60_000, days=3, seed=7, **changed)
    for course in ([1, 1, 2], [0, 1, 1]):
        share = (drawn == course).all(axis=1).mean()
        log_likelihood = influenza_evidence.filtered_log_likelihood(
            np.random.default_rng(8), influenza.epidemic_of(name), params_of(name, 40, **changed), np.array(course), 400
        )
        estimates = np.exp(log_likelihood)
        error = np.hypot(np.sqrt(share / 60_000), estimates.std() / np.sqrt(40))
        assert abs(estimates.mean() - share) < 4 * error
        assert error < 0.1 * share


def test_the_filter_gives_0_to_what_cannot_be() -> None:
    found = influenza_evidence.filtered_log_likelihood(
        np.random.default_rng(9), influenza.epidemic_of(NO_LATENT), params_of(NO_LATENT, 2), np.array([700, 1]), 50
    )
    assert (found == -np.inf).all()


@pytest.mark.parametrize("name", [NO_LATENT, LATENT])
def test_the_evidence_is_the_share_of_simulations_from_the_prior(name: str) -> None:
    course = np.array([1, 2])
    model = influenza.epidemic_model(name, num_obs=2)
    drawn = model.simulate(60_000, seed=10).data
    assert isinstance(drawn, np.ndarray)
    share = (drawn == course).all(axis=1).mean()
    rounds = [influenza_evidence.Round(200, 50), influenza_evidence.Round(800, 100)]
    found = influenza_evidence.log_evidence(name, course, rounds, seed=11)
    assert found.error < 0.1
    assert abs(found.log_evidence - np.log(share)) < 4 * np.hypot(found.error, 1 / np.sqrt(60_000 * share))


def test_the_evidence_depends_on_its_seed_alone() -> None:
    rounds = [influenza_evidence.Round(30, 20)]
    first, second = (
        influenza_evidence.log_evidence(NO_LATENT, np.array([1, 3]), rounds, seed=12).log_evidence for _ in range(2)
    )
    assert first == second
    with pytest.raises(ValueError, match="rounds must hold at least one round"):
        influenza_evidence.log_evidence(NO_LATENT, np.array([1, 3]), [], seed=12)


def test_weights_are_flattened_only_where_few_draws_carry_them() -> None:
    even = np.zeros(100)
    np.testing.assert_allclose(influenza_evidence.flattened(even), 0.01)
    steep = influenza_evidence.flattened(np.linspace(-200.0, 0.0, 100))
    assert 1 / (steep**2).sum() >= influenza_evidence.FEWEST_EFFECTIVE
    assert steep.sum() == pytest.approx(1.0)
