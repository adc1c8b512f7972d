"""deepbf evaluate, run as a user runs it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from deepbf import Evaluation
from tests.cli.test_commands import STUDY, run

EXACT = """
import numpy as np

def exact_log_bf(data):
    heads = np.sum(data, axis=1)
    return heads * np.log(0.5 / 0.8) + (20 - heads) * np.log(0.5 / 0.2)
"""
QUICK = ("--num-datasets", 150)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study file with an exact answer, and two estimators trained on it."""
    folder = tmp_path_factory.mktemp("evaluated")
    (folder / "study.py").write_text(STUDY + EXACT)
    for name, steps in (("study", 300), ("shorter", 50)):
        code, _, error = run("fit", folder / "study.py", "--out", folder / f"{name}.deepbf", "--steps", steps)
        assert code == 0, error
    return folder


def test_the_study_beside_the_estimator_is_found_and_everything_is_written(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    code, output, error = run("evaluate", folder / "study.deepbf", *QUICK, "--out", out)
    assert code == 0, error
    assert f"from {folder / 'study.py'}" in error
    for words in ("of fair over loaded", "Against the exact log BF", "Spearman's rho", "Checks", "prior recovery"):
        assert words in output
    assert sorted(path.name for path in out.iterdir()) == [
        "densities.png", "evaluation.json", "evaluation.nc", "reliability.png", "roc.png", "scatter.png",
    ]  # fmt: skip
    assert all(path.stat().st_size > 1000 for path in out.iterdir())
    assert str(Evaluation.load(out / "evaluation.nc")) in output


def test_several_estimators_and_a_baseline_side_by_side_in_json(folder: Path, tmp_path: Path) -> None:
    observed = tmp_path / "observed.csv"
    observed.write_text("1\n" * 18 + "0\n" * 2)
    code, output, error = run(
        "evaluate", folder / "study.deepbf", folder / "shorter.deepbf", "--study", folder / "study.py",
        "--baseline", "abc_ranked", "--observed", observed, "--seed", 5, "--json", *QUICK,
    )  # fmt: skip
    assert code == 0, error
    found = json.loads(output)
    assert found["coordinates"]["estimator"]["values"] == ["study", "shorter", "abc_ranked", "exact"]
    auc = dict(zip(found["coordinates"]["estimator"]["values"], found["variables"]["auc"]["values"], strict=True))
    # The number of heads decides, and every estimator finds it.
    assert min(auc.values()) > 0.95
    assert found["attributes"]["simulation_seed"] == 5
    surprise = found["variables"]["surprise"]["values"][0]
    # 18 of 20: P(at least 18) is 2.0e-4 if fair, P(at most 18) is 0.93 if loaded.
    assert surprise[0] < 0.05
    assert surprise[1] > 0.7


def test_the_other_way_round_keeps_the_exact_answer(folder: Path) -> None:
    code, output, error = run("evaluate", folder / "study.deepbf", *QUICK, "--model", "loaded", "--json")
    assert code == 0, error
    found = json.loads(output)
    assert (found["attributes"]["first"], found["attributes"]["second"]) == ("loaded", "fair")
    assert found["variables"]["spearman"]["values"][0][2] > 0.9


def test_estimators_of_one_name_keep_their_plots_apart(folder: Path, tmp_path: Path) -> None:
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "study.deepbf").write_bytes((folder / "study.deepbf").read_bytes())
    files = [tmp_path / place / "study.deepbf" for place in ("one", "two")]
    code, _, error = run("evaluate", *files, "--study", folder / "study.py", *QUICK, "--out", tmp_path / "out")
    assert code == 0, error
    assert len(list((tmp_path / "out").glob("densities-*.png"))) == 2
    (tmp_path / "abc_ranked.deepbf").write_bytes((folder / "study.deepbf").read_bytes())
    code, _, error = run(
        "evaluate", tmp_path / "abc_ranked.deepbf", "--study", folder / "study.py", "--baseline", "abc_ranked"
    )
    assert code == 2
    assert "an estimator is called abc_ranked, like a baseline" in error


def test_other_prior_probabilities(folder: Path) -> None:
    code, output, error = run("evaluate", folder / "study.deepbf", *QUICK, "--prior-probs", "0.1,0.9", "--json")
    assert code == 0, error
    assert json.loads(output)["variables"]["prior_prob"]["values"] == pytest.approx([0.1, 0.9])


def test_without_an_exact_answer_there_is_no_scatter_plot(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(STUDY)
    code, output, error = run(
        "evaluate", folder / "study.deepbf", "--study", tmp_path / "plain.py", *QUICK, "--out", tmp_path / "out"
    )
    assert code == 0, error
    assert "Against the exact" not in output
    assert not (tmp_path / "out" / "scatter.png").exists()


@pytest.mark.slow
def test_a_ready_made_study_by_name(tmp_path: Path) -> None:
    (tmp_path / "three.py").write_text(
        "from deepbf_studies import problems\nstudy = problems.load('data-3', num_obs=6)\nmodels = list(study.models)\n"
        "structure = 'exchangeable'\nsteps = 50\n"
    )
    run("fit", tmp_path / "three.py", "--out", tmp_path / "other.deepbf")
    code, output, error = run("evaluate", tmp_path / "other.deepbf", "--study", "data-3", *QUICK)
    assert code == 0, error
    assert "the ready-made study data-3" in error
    assert "Against the exact log BF" in output
    assert re.search(r"Spearman's rho +0\.9", output)


@pytest.mark.slow
def test_a_pair_of_three_models(tmp_path: Path) -> None:
    (tmp_path / "coins.py").write_text(
        "import deepbf\nstructure = 'exchangeable'\nsteps = 50\nmodels = [deepbf.Model(name, simulator=lambda rng, "
        "size, p=p: rng.binomial(1, p, (size, 9))) for name, p in (('low', 0.2), ('even', 0.5), ('high', 0.8))]\n"
    )
    run("fit", tmp_path / "coins.py", "--out", tmp_path / "coins.deepbf")
    code, _, error = run("evaluate", tmp_path / "coins.deepbf", *QUICK)
    assert code == 2
    assert "--model and --over must name two of the 3 models" in error
    code, output, error = run("evaluate", tmp_path / "coins.deepbf", "--model", "high", "--over", "low", *QUICK)
    assert code == 0, error
    assert "of high over low" in output


def test_bad_input_is_explained(folder: Path, tmp_path: Path) -> None:
    estimator = folder / "study.deepbf"
    (tmp_path / "file").write_text("")
    (tmp_path / "others.py").write_text(STUDY.replace('"fair"', '"honest"'))
    (tmp_path / "longer.py").write_text(STUDY.replace("(size, 20)", "(size, 21)"))
    np.save(tmp_path / "short.npy", np.zeros(3))
    for arguments, rule in [
        ([folder / "shorter.deepbf"], "there is no shorter.py beside shorter.deepbf"),
        ([estimator, estimator], "each estimator may be named once"),
        ([estimator, "--study", "data-9"], "no study file data-9"),
        ([estimator, "--study", tmp_path / "others.py"], "models must be those of the fit"),
        ([estimator, "--study", tmp_path / "longer.py"], "fair simulates shape (21,)"),
        ([estimator, "--baseline", "abc_rank"], "Did you mean 'abc_ranked'"),
        ([estimator, "--baseline", "abc_epsilon"], "needs epsilon, which has no default"),
        ([estimator, "--out", tmp_path / "file"], "--out must be a folder"),
        ([estimator, "--model", "unfair"], "--model must be one of"),
        ([estimator, "--model", "loaded", "--over", "loaded"], "must differ"),
        ([estimator, "--prior-probs", "0.5,0.6"], "must sum to 1"),
        ([estimator, "--observed", tmp_path / "short.npy"], "shape (20,)"),
        ([estimator, "--num-datasets", 1], "num_datasets must be at least 2"),
    ]:
        code, output, error = run("evaluate", *arguments)
        assert code == 2, arguments
        assert rule in error
        assert output == ""


ANY_NUMBER = """
import deepbf

structure = "exchangeable"
num_obs = (2, 20)
steps = 150
models = [
    deepbf.Model("fair", simulator=lambda rng, size, num_obs: rng.binomial(1, 0.5, (size, num_obs))),
    deepbf.Model("loaded", simulator=lambda rng, size, num_obs: rng.binomial(1, 0.8, (size, num_obs))),
]
"""


@pytest.mark.slow
def test_a_range_of_sample_sizes_from_fit_to_design(tmp_path: Path) -> None:
    (tmp_path / "any.py").write_text(ANY_NUMBER)
    estimator, observed = tmp_path / "any.deepbf", tmp_path / "observed.csv"
    observed.write_text("1\n1\n0\n1\n1\n1\n1\n")
    code, output, error = run("fit", tmp_path / "any.py", "--out", estimator)
    assert code == 0, error
    assert "of 2 to 20 observations" in output
    code, output, error = run("compare", estimator, observed)
    assert code == 0, error
    assert "over" in output
    code, output, error = run("evaluate", estimator, "--num-obs", 12, *QUICK)
    assert code == 0, error
    code, _, error = run("evaluate", estimator, *QUICK)
    assert code == 2
    assert "from 2 to 20" in error
    code, _, error = run("evaluate", estimator, "--observed", observed, *QUICK)
    assert code == 0, error
    code, output, error = run("design", estimator, "--threshold", 3, "--num-datasets", 50, "--out", tmp_path / "d.png")
    assert code == 0, error
    assert "Evidence of 3 to 1 or more" in output
    assert (tmp_path / "d.png").stat().st_size > 1000
    code, output, error = run("design", estimator, "--num-datasets", 50, "--json")
    assert code == 0, error
    assert set(json.loads(output)["needed"]) == {"fair", "loaded"}
    observed.write_text("1\n" * 30)
    code, _, error = run("compare", estimator, observed)
    assert code == 2
    assert "outside the trained range, 2 to 20" in error
    code, _, error = run("compare", estimator, observed, "--extrapolate")
    assert code == 0, error
    code, _, error = run("fit", tmp_path / "any.py", "--out", estimator, "--num-obs", "two")
    assert code == 2
    assert "--num-obs must be two whole numbers" in error


def test_a_design_needs_a_range(folder: Path) -> None:
    code, _, error = run("design", folder / "study.deepbf")
    assert code == 2
    assert "design needs an estimator for a range of sample sizes" in error
