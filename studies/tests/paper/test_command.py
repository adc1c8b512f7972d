"""`deepbf reproduce`: names, errors, drawings."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from deepbf.cli.app import app
from deepbf_studies import paper
from deepbf_studies.paper import running
from studies.tests.paper.test_running import sum_target

RUNNER = CliRunner()


def test_lists_every_figure_and_table_in_the_papers_order() -> None:
    shown = RUNNER.invoke(app, ["reproduce", "--list"])
    assert shown.exit_code == 0
    listed = [line.split()[0] for line in shown.stdout.splitlines()]
    assert listed == list(paper.names())
    assert listed.index("figure-4") < listed.index("figure-s12") < listed.index("scorecard")


def test_without_a_name_it_lists_them() -> None:
    assert RUNNER.invoke(app, ["reproduce"]).stdout == RUNNER.invoke(app, ["reproduce", "--list"]).stdout


def test_prints_the_answer_and_says_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_TARGETS", (sum_target(tmp_path / "log"),))
    shown = RUNNER.invoke(app, ["reproduce", "all", "--out", str(tmp_path / "drawn")])
    assert shown.exit_code == 0, shown.output
    assert "sum: a sum" in shown.output
    assert "Wrote sum.txt, sum.json, sum.png" in shown.output
    assert (tmp_path / "drawn" / "quick" / "sum.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["figure-99"], "figure-99"),
        (["figure-4", "--scale", "huge"], "'quick', 'standard', 'paper'"),
        (["figure-4", "--data", "observed.csv"], "takes none"),
    ],
)
def test_says_what_is_wrong(arguments: list[str], words: str, tmp_path: Path) -> None:
    shown = RUNNER.invoke(app, ["reproduce", *arguments, "--out", str(tmp_path)])
    assert shown.exit_code == 2
    assert words in shown.output


def test_every_target_has_a_plan_at_every_scale() -> None:
    for target in paper.targets():
        for scale in paper.SCALES:
            plan = target.plan(scale)
            assert plan
            assert all(step.key for step in plan.values())
