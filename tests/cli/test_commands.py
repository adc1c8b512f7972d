"""The command line, run as a user runs it."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from deepbf.cli import app
from deepbf.example import counts_example, observed_counts
from deepbf_studies import problems

STUDY = """
import deepbf

structure = "exchangeable"
steps = 50
seed = 3

models = [
    deepbf.Model("fair", simulator=lambda rng, size: rng.binomial(1, 0.5, (size, 20))),
    deepbf.Model("loaded", simulator=lambda rng, size: rng.binomial(1, 0.8, (size, 20))),
]
"""


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.py").write_text(STUDY)
    code, output, error = run("fit", folder / "study.py", "--out", folder / "study.deepbf", "--steps", 300)
    assert code == 0, error
    assert "fair against loaded" in output
    assert f"deepbf compare {folder / 'study.deepbf'}" in output
    return folder / "study.deepbf"


@pytest.mark.parametrize(
    "command", [[], ["demo"], ["fit"], ["compare"], ["evaluate"], ["design"], ["sensitivity"], ["criticise"]]
)
def test_help_names_every_option_a_newcomer_needs(command: list[str]) -> None:
    code, output, _ = run(*command, "--help")
    assert code == 0
    assert "Usage: " in output
    for word in {"fit": ["models = [", "--out", "--seconds"], "compare": ["CSV", "--json"]}.get("".join(command), []):
        assert word in output


def test_fit_then_compare_in_words_and_in_json(trained: Path, tmp_path: Path) -> None:
    observed = tmp_path / "observed.csv"
    observed.write_text("toss\n" + "1\n" * 18 + "0\n" * 2)
    code, output, error = run("compare", trained, observed)
    assert code == 0, error
    assert output.startswith("In favour of loaded over fair")

    code, output, _ = run("compare", trained, observed, "--json", "--prior-probs", "0.9,0.1")
    answer = json.loads(output)
    assert code == 0
    assert answer["favours"] == "loaded"
    assert answer["over"] == "fair"
    # 18 of 20: log BF of fair over loaded is exactly 18 log(0.5 / 0.8) + 2 log(0.5 / 0.2).
    exact = 18 * np.log(0.5 / 0.8) + 2 * np.log(0.5 / 0.2)
    assert abs(answer["log_bf"] - exact) < 4 * answer["error"]
    assert answer["error"] < 1.0
    posterior_log_odds = np.log(answer["posterior_probs"][0] / answer["posterior_probs"][1])
    assert posterior_log_odds == pytest.approx(answer["log_bf"] + np.log(9), abs=1e-9)


ZOOMED_STUDY = """
import deepbf

structure = "exchangeable"
steps = 5000
models = [
    deepbf.Model("fair", simulator=lambda rng, size: rng.binomial(1, 0.5, (size, 40))),
    deepbf.Model(
        "bent",
        prior=lambda rng, size: rng.beta(1, 1, size),
        simulator=lambda rng, p: rng.binomial(1, p[:, None], (len(p), 40)),
    ),
]
"""


def test_compare_does_the_whole_job_from_a_study_file(tmp_path: Path) -> None:
    study, observed, out = tmp_path / "study.py", tmp_path / "observed.csv", tmp_path / "other.deepbf"
    study.write_text(ZOOMED_STUDY)
    observed.write_text("1\n" * 28 + "0\n" * 12)
    # 28 of 40: a binomial integrated over a uniform chance is 1 / 41, whatever the number.
    exact = np.log(41 * math.comb(40, 28)) - 40 * np.log(2)
    code, output, error = run("compare", study, observed, "--steps", 900, "--seed", 2, "--json")
    assert code == 0, error
    answer = json.loads(output)
    assert answer["zoomed"]
    assert abs(answer["log_bf"] - exact) < 4 * answer["error"]
    assert answer["error"] < 0.5
    assert [region["found"] for region in answer["regions"]] == [False, True]

    code, output, error = run("fit", study, "--out", out, "--steps", 200)
    assert code == 0, error
    code, output, error = run("compare", out, observed, "--steps", 100, "--study", study)
    assert code == 0, error
    assert "2 of 3" in output
    assert "zoomed in" in output
    code, output, error = run("compare", out, observed, "--steps", 100)
    assert code == 2
    assert "--study must say which models" in error


def test_options_win_over_the_study_file(tmp_path: Path) -> None:
    (tmp_path / "study.py").write_text(STUDY)
    code, output, error = run(
        "fit", tmp_path / "study.py", "--out", tmp_path / "a.deepbf", "--num-simulations", 600, "--json"
    )
    assert code == 0, error
    assert json.loads(output)["simulations"] == 600


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("1\n0\n", "shape (20,)"),
        ("", "empty"),
        ("toss\n", "no numbers"),
        ("1\nmany\n", "data row 2"),
        ("1,2\n3\n", "data row 2"),
        ("1\n" * 19 + "nan\n", "not finite"),
    ],
)
def test_bad_observed_files_are_explained(trained: Path, tmp_path: Path, text: str, rule: str) -> None:
    observed = tmp_path / "observed.csv"
    observed.write_text(text)
    code, output, error = run("compare", trained, observed)
    assert code == 2
    assert output == ""
    assert error.startswith("error: ")
    assert rule in error
    assert "Traceback" not in error


def test_bad_study_files_are_explained_before_training(tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("")
    study, broken = tmp_path / "study.py", tmp_path / "broken.deepbf"
    study.write_text(STUDY)
    broken.write_text(STUDY)
    for arguments, rule in [
        (["fit", tmp_path / "missing.py", "--out", tmp_path / "x"], "no study file"),
        (["fit", empty, "--out", tmp_path / "x"], "defines no `models`"),
        (["fit", study, "--out", tmp_path], "is a folder"),
        (["fit", study, "--out", tmp_path / "nowhere" / "x"], "does not exist"),
        (["fit", study, "--out", tmp_path / "x", "--seconds", 3, "--steps", 3], "exactly one budget"),
        (["fit", study, "--out", tmp_path / "x", "--schedule", "hasty"], "schedule must be one of"),
        (["fit", study, "--out", tmp_path / "x", "--structure", "exchangable"], "Did you mean 'exchangeable'"),
        (["compare", broken, study], "not a saved estimator"),
        (["compare", study, tmp_path / "missing.csv"], "there is no file"),
        (["compare", tmp_path / "missing", study], "there is no file"),
    ]:
        code, _, error = run(*arguments)
        assert code == 2
        assert rule in error


def test_prior_probs_must_be_numbers(trained: Path, tmp_path: Path) -> None:
    observed = tmp_path / "observed.csv"
    observed.write_text("1\n" * 20)
    code, _, error = run("compare", trained, observed, "--prior-probs", "half,half")
    assert code == 2
    assert "--prior-probs must be numbers" in error


def test_the_shipped_observed_counts_are_what_they_say() -> None:
    simulated = problems.load("data-1-i").models[0].simulate(1, seed=2).data[0]
    np.testing.assert_array_equal(observed_counts(), simulated)


def test_demo_prints_the_answer_next_to_the_exact_one(tmp_path: Path) -> None:
    code, output, error = run("demo", "--steps", 800, "--json", "--out", tmp_path / "demo.deepbf")
    assert code == 0, error
    answer = json.loads(output)
    exact = float(counts_example().exact_log_bf(observed_counts()[None])[0])
    assert answer["exact_log_bf"] == pytest.approx(exact)
    assert answer["favours"] == "negative binomial"
    assert abs(answer["log_bf"] - exact) < 4 * answer["error"] + 0.3
    assert answer["error"] < 1.0
    assert (tmp_path / "demo.deepbf").exists()


SCALED_STUDY = """
import deepbf
import numpy as np

structure = "exchangeable"
steps = 30
ensemble = 2

models = [
    deepbf.Model(
        "free",
        prior=lambda rng, size, scale: rng.normal(0, scale, size),
        simulator=lambda rng, mean: rng.normal(mean[:, None], 1, (len(mean), 5)),
        hyperparameters={"scale": (0.5, 2.0)},
    ),
    deepbf.Model("zero", simulator=lambda rng, size: rng.normal(0, 1, (size, 5))),
]
"""


@pytest.mark.slow
def test_from_hyperparameters_to_a_curve(tmp_path: Path) -> None:
    (tmp_path / "study.py").write_text(SCALED_STUDY)
    estimator, observed = tmp_path / "study.deepbf", tmp_path / "observed.csv"
    observed.write_text("0.1\n-0.3\n0.7\n0.2\n1.1\n")
    code, _, error = run("fit", tmp_path / "study.py", "--out", estimator)
    assert code == 0, error
    code, output, error = run("sensitivity", estimator, observed, "--out", tmp_path / "curve.png")
    assert code == 0, error
    assert output.startswith("Log Bayes factor (natural log) of free over zero, by scale")
    assert (tmp_path / "curve.png").stat().st_size > 5000
    code, output, _ = run("sensitivity", estimator, observed, "--json", "--num-values", 3)
    curve = json.loads(output)
    assert curve["values"] == pytest.approx([0.5, 1.0, 2.0])
    code, output, _ = run("compare", estimator, observed, "--at", "scale=1", "--json")
    assert json.loads(output)["log_bf"] == pytest.approx(curve["log_bf"][1], abs=1e-5)
    code, _, error = run("compare", estimator, observed)
    assert code == 2
    assert "depends on the models' hyperparameters, scale from 0.5 to 2" in error
    code, _, error = run("compare", estimator, observed, "--at", "scale")
    assert code == 2
    assert "--at must be a name and a number, such as scale=1; received 'scale'" in error


def test_criticise_in_words_in_json_and_in_pictures(tmp_path: Path) -> None:
    study, observed, folder = tmp_path / "study.py", tmp_path / "observed.csv", tmp_path / "pictures"
    study.write_text(STUDY)
    observed.write_text("toss\n" + "1\n" * 18 + "0\n" * 2)
    code, output, error = run("criticise", study, observed, "--out", folder, "--statistic", "mean")
    assert code == 0, error
    assert output.startswith("Fair does not fit the data; nothing here speaks against loaded")
    drawn = sorted(path.name for path in folder.iterdir())
    assert drawn == ["model-1-mean.png", "model-1-z-values.png", "model-2-mean.png", "model-2-z-values.png"]

    code, output, _ = run("criticise", study, observed, "--json")
    assert code == 0
    assert json.loads(output)["models"]["fair"]["fits"] is False


def test_criticise_says_what_is_wrong(tmp_path: Path) -> None:
    study, observed = tmp_path / "study.py", tmp_path / "observed.csv"
    study.write_text(STUDY)
    observed.write_text("1\n0\n")
    code, _, error = run("criticise", study, observed)
    assert code == 2
    assert "holds 2 x 1 numbers" in error
    code, _, error = run("criticise", "no-such-study", observed)
    assert code == 2
    assert "there is no study file" in error
