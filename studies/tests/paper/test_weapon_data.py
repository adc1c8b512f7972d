"""Users' files of the weapon study: both layouts, and what is said of wrong ones."""

from pathlib import Path

import numpy as np
import pytest

from deepbf_studies.paper import weapon_data as data
from deepbf_studies.problems import load, weapon

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
PEOPLE = [[33, 30, 29, 34, 31, 32], [30, 27, 26, 31, 28, 30], [35, 33, 32, 35, 34, 33]]
SUMS = [98, 90, 87, 100, 93, 95, 10, 18, 21, 8, 15, 13]


def write(folder: Path, text: str) -> Path:
    path = folder / "answers.csv"
    path.write_text(text)
    return path


def rows(counts: list[list[int]]) -> str:
    return "\n".join(",".join(map(str, row)) for row in counts)


def test_one_row_a_person(tmp_path: Path) -> None:
    observed = data.read_observed(write(tmp_path, rows(PEOPLE)))
    assert observed == {"source": "answers.csv", "sums": SUMS, "people": PEOPLE}
    assert data.Counts.of(observed["sums"], observed["people"]).num_people == 3


@pytest.mark.parametrize("text", [rows([SUMS]), "\n".join(map(str, SUMS)), rows([SUMS]).replace(",", "\t")])
def test_twelve_counts(tmp_path: Path, text: str) -> None:
    observed = data.read_observed(write(tmp_path, text))
    assert observed == {"source": "answers.csv", "sums": SUMS, "people": None}
    assert data.Counts.of(observed["sums"], observed["people"]).num_people == 3


def test_examples_in_the_documentation_hold_the_same_people() -> None:
    people = data.read_observed(EXAMPLES / "made-up-weapon-people.csv")
    sums = data.read_observed(EXAMPLES / "made-up-weapon-sums.csv")
    assert people["people"] == PEOPLE
    assert people["sums"] == sums["sums"] == SUMS


def test_a_header_decides_which_column_is_which(tmp_path: Path) -> None:
    turned = [row[::-1] for row in PEOPLE]
    header = ",".join(name.replace(" ", "_").upper() for name in weapon.CELLS[::-1])
    assert data.read_observed(write(tmp_path, f"{header}\n{rows(turned)}"))["people"] == PEOPLE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (",".join(weapon.CELLS), "a header and no numbers"),
        ("1,2,3,4,5\n1,2,3,4,5", r"holds 2 x 5 numbers .*one row per person.*twelve counts"),
        (rows([SUMS, SUMS]), "holds 2 x 12 numbers"),
        ("1,2,3,4,5,6\n1,2,3", "data row 2 has 3 values"),
        ("1,2,3,4,5,6\n1,2,37,4,5,6", r"data row 2 has 37 correct answers in the cell 'black tool'.*36 trials"),
        ("1,2,3,4,5,6\n1,2,0.5,4,5,6", r"holds 0\.5; counts must be whole"),
        ("1,2,3,4,5,6\n1,2,-3,4,5,6", "holds -3; counts must be whole"),
        ("1,2,3,4,5,6\n1,2,nan,4,5,6", "holds nan; counts must be whole"),
        ("1,2,3,4,5,6\n1,2,x,4,5,6", "'x' is not a number"),
        ("1,2,3,4,5,6", "has 1 person; at least 2"),
        (rows([[*SUMS[:-1], 12]]), r"108 answers.*'white tool' and 107 in 'neutral gun'"),
        (rows([[10] * 12]), "has 20 answers per cell.*multiple of 36"),
        (rows([[18] * 12]), "has 36 answers per cell.*2 people"),
        ("a,b,c,d,e,f\n" + rows(PEOPLE), "the names must be white tool, white gun"),
    ],
)
def test_wrong_files_are_told_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"(?s){message}"):
        data.read_observed(write(tmp_path, text))


def test_a_missing_file_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file .*answers\.csv.*one row per person"):
        data.read_observed(tmp_path / "answers.csv")


def test_the_simulated_data_set_is_near_the_papers_bayes_factor_and_says_what_it_is() -> None:
    observed = data.simulated_observed()
    counts = data.Counts.of(observed["sums"], observed["people"])
    assert counts.people is not None
    assert counts.people.shape == (42, 6)
    log_bf = load("weapon-sum").exact_log_bf(counts.sums[None])[0]
    assert abs(np.exp(log_bf) / 8.10 - 1) < 0.02
    assert observed["source"].startswith("SIMULATED")
