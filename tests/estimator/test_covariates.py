"""Regressions on a fixed table: from the covariates to the exact Bayes factor, its file, and the command line."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

import deepbf
from deepbf.cli import app
from deepbf_studies import problems

STUDY = problems.load("correlated-covariates", num_obs=20)
TABLE: dict[str, Any] = dict(STUDY.covariates or {})


@pytest.fixture(scope="module")
def regression() -> deepbf.BayesFactor:
    return deepbf.fit(STUDY.models, covariates=TABLE, steps=800, ensemble=2, seed=1, progress=False)


def test_answers_are_near_the_exact_ones(regression: deepbf.BayesFactor) -> None:
    assert STUDY.exact_log_bf is not None
    data = np.concatenate([model.simulate(500, seed=5).data for model in STUDY.models])
    exact = STUDY.exact_log_bf(data)
    inside = np.abs(exact) < np.log(1000)
    assert np.sqrt(np.mean((regression.log_bf(data) - exact)[inside] ** 2)) < 0.4
    # A constant answer would be off by the spread of the exact ones.
    assert np.std(exact[inside]) > 1.5


def test_responses_alone_or_with_their_table_are_one_question(regression: deepbf.BayesFactor, tmp_path: Path) -> None:
    responses = STUDY.models[0].simulate(1, seed=3).data[0]
    regression.save(tmp_path / "regression.deepbf")
    loaded = deepbf.load(tmp_path / "regression.deepbf")
    assert loaded.covariates is not None
    assert list(loaded.covariates.columns) == list(TABLE)
    expected = regression.compare(responses)
    for bf in (regression, loaded):
        for observed in (responses, {**TABLE, "y": responses}, pd.DataFrame({**TABLE, "y": responses})):
            answer = bf.compare(observed)
            assert (answer.log_bf, answer.error) == (expected.log_bf, expected.error)
    with pytest.raises(ValueError, match="'x' differs, first in row 1"):
        loaded.compare({**TABLE, "x": TABLE["x"] + 1, "y": responses})


@pytest.mark.slow
def test_fresh_simulations_are_given_the_table() -> None:
    def simulator(rng: np.random.Generator, slope: Any, covariates: Any) -> Any:
        return slope[:, None] * covariates["x"] + rng.standard_normal((len(slope), len(covariates["x"])))

    models = [
        deepbf.Model("line", prior=lambda rng, size: 3 * rng.standard_normal(size), simulator=simulator),
        deepbf.Model("flat", prior=lambda rng, size: np.zeros(size), simulator=simulator),
    ]
    bf = deepbf.fit(models, covariates={"x": [-1.0, 0.0, 1.0, 2.0]}, steps=60, ensemble=2, seed=1, progress=False)
    # The models as the user has them, which know no table.
    assert (
        bf.evaluate(50, models=models, seed=2, progress=False).results
        == bf.evaluate(50, seed=2, progress=False).results
    )


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"covariates": TABLE, "structure": "exchangeable"}, "responses in fixed places"),
        ({"covariates": TABLE, "num_obs": (2, 20)}, "fix the number of responses"),
        ({"covariates": {"x": [1.0, 2.0, 3.0]}, "steps": 5}, "covariates have 3 rows; the simulators return 20"),
        ({"structure": "responses"}, "needs the covariates"),
    ],
)
def test_what_cannot_go_together_is_refused(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        deepbf.fit(STUDY.models, progress=False, **options)


STUDY_FILE = """
import deepbf
import numpy as np

def simulator(rng, slope, covariates):
    return slope[:, None] * np.array(covariates["dose"]) + rng.standard_normal((len(slope), 4))

models = [
    deepbf.Model("line", prior=lambda rng, size: 3 * rng.standard_normal(size), simulator=simulator),
    deepbf.Model("flat", prior=lambda rng, size: np.zeros(size), simulator=simulator),
]
"""


def test_from_a_table_in_a_file_to_an_answer(tmp_path: Path) -> None:
    study, table, saved = tmp_path / "study.py", tmp_path / "table.csv", tmp_path / "study.deepbf"
    study.write_text(STUDY_FILE)
    table.write_text("dose,y,sex\n-1,-2.5,f\n0,0.3,m\n1,2.1,f\n2,4.4,m\n")
    run = CliRunner().invoke
    fit = ["fit", str(study), "--out", str(saved), "--covariates", str(table), "--response", "y", "--json"]
    found = run(app, [*fit, "--steps", "300", "--ensemble", "2", "--seed", "1"])
    assert found.exit_code == 0, found.output
    assert "In favour of line over flat" in run(app, ["compare", str(saved), str(table)]).output
    alone = tmp_path / "alone.csv"
    alone.write_text("y\n-2.5\n0.3\n2.1\n4.4\n")
    assert run(app, ["compare", str(saved), str(alone)]).output == run(app, ["compare", str(saved), str(table)]).output
    bf = deepbf.load(saved)
    assert bf.covariates is not None
    assert_array_equal(bf.covariates.groups["sex"], [0, 1, 0, 1])
