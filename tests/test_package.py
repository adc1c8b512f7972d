"""The package's front door: light to enter, and everything it promises is there."""

import json
import os
import subprocess
import sys

import pytest

import deepbf

EXPORTED: list[str] = vars(deepbf)["__all__"]
# What a worker process imports to simulate, and what travels to it.
WORKER_SIDE = ["deepbf", "deepbf.models", "deepbf.simulation", "deepbf.standardise"]


def modules_after(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after a statement."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    # The source that these tests have found, not another one that may be installed.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return set(json.loads(finished.stdout.splitlines()[-1]))


@pytest.mark.parametrize("module", WORKER_SIDE)
def test_simulating_never_loads_the_neural_side(module: str) -> None:
    loaded = modules_after(f"import {module}")
    assert module in loaded
    assert not loaded & {"jax", "equinox", "optax", "deepbf.networks", "deepbf.training", "matplotlib", "torch"}


def test_a_model_is_made_and_run_without_the_neural_side() -> None:
    loaded = modules_after(
        "import deepbf\n"
        "model = deepbf.Model('m', simulator=lambda rng, size: rng.normal(size=(size, 3)))\n"
        "assert model.simulate(4, seed=1).data.shape == (4, 3)"
    )
    assert not loaded & {"jax", "equinox"}


def test_a_surprise_loads_one_file_of_the_toolkit() -> None:
    loaded = modules_after("from deepbf.evaluation import surprise\nsurprise(0.5, ([-1.0, 2.0], [-2.0, 1.0]))")
    rooms = {name for name in loaded if name.startswith("deepbf.") and not name.startswith("deepbf._")}
    # A comparison asks for it, and should wait neither for xarray nor for scikit-learn.
    assert rooms == {"deepbf.evaluation", "deepbf.evaluation.tail_areas"}
    assert not loaded & {"xarray", "sklearn"}


def test_every_promised_name_is_there() -> None:
    for name in EXPORTED:
        assert getattr(deepbf, name) is not None
    assert set(EXPORTED) <= set(dir(deepbf))


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(AttributeError, match="No deepbf attribute bayes_factor"):
        _ = deepbf.bayes_factor  # pyright: ignore[reportAttributeAccessIssue]


def test_a_study_is_loaded_and_run_without_the_neural_side() -> None:
    loaded = modules_after(
        "from deepbf_studies import problems\nproblems.load('weapon-sum').models[0].simulate(4, seed=1)"
    )
    assert not loaded & {"jax", "equinox", "sklearn", "blackjax"}
