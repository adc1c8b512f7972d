"""Trained estimators that many tests ask, each trained once a session and by steps, so always the same."""

import os
from collections.abc import Iterator

import jax
import pytest

import deepbf
from deepbf.cli.workers import keep_to, shares_of, usable_cores
from tests import simulators


def pytest_configure() -> None:
    """Let workers that share the tests among them share the cores, too, before JAX counts them."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker:
        shares = shares_of(usable_cores(), int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
        keep_to(shares[int(worker.removeprefix("gw"))])


@pytest.fixture(scope="session", autouse=True)
def compile_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep compiled programs for the session: most fits here share theirs, and compiling is most of their time."""
    # Workers that share the tests among them share what they compiled, too.
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    settings = {
        "jax_compilation_cache_dir": str(shared / "compiled"),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.fixture(scope="session")
def normal_mean() -> deepbf.BayesFactor:
    """Exchangeable scalars, trained well: the mean of a normal, unknown against 0."""
    return deepbf.fit(simulators.NORMAL_MEAN, structure="exchangeable", steps=2500, seed=1, progress=False)


@pytest.fixture(scope="session")
def any_number() -> deepbf.BayesFactor:
    """The mean of a normal, unknown against 0, for every number of observations from 1 to 24."""
    return deepbf.fit(
        simulators.ANY_NUMBER, structure="exchangeable", num_obs=(1, 24), steps=1500, seed=1, progress=False
    )


@pytest.fixture(scope="session")
def walk_or_noise() -> deepbf.BayesFactor:
    """Vectors: a random walk against white noise."""
    return deepbf.fit(simulators.WALK_OR_NOISE, structure="vector", steps=600, seed=2, progress=False)


@pytest.fixture(scope="session")
def three_means() -> deepbf.BayesFactor:
    """Three models, with prior probabilities of their own."""
    return deepbf.fit(
        simulators.THREE_MEANS,
        structure="exchangeable",
        prior_probs=[0.5, 0.3, 0.2],
        steps=400,
        seed=3,
        progress=False,
    )


@pytest.fixture(scope="session")
def pairs() -> deepbf.BayesFactor:
    """Exchangeable vectors: correlated against independent pairs."""
    return deepbf.fit(simulators.PAIRS, structure="exchangeable", steps=300, seed=4, progress=False)


@pytest.fixture(scope="session")
def mixed() -> deepbf.BayesFactor:
    """Mixed data: a set of 2 to 20 trials, a vector and a covariate."""
    study = deepbf.studies.load("covariate", num_obs=20)
    return deepbf.fit(
        study.models, structure=study.structure, num_obs=(2, 20), steps=2500, ensemble=2, seed=5, progress=False
    )
