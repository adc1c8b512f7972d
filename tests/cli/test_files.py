"""Files that people have: every number is read as it stands, and nothing is left out in silence."""

from pathlib import Path

import numpy as np
import pytest

from deepbf._rows import read_table
from deepbf.cli.files import Wanted, check_drawable, read_csv, read_for, read_groups, read_observed


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "x.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3,4\n",
        "1,2\r\n3,4",
        "a;b\n1;2\n3;4\n",
        "1\t2\n3\t4\n",
        "1 2\n3  4\n\n",
        "   1   2\n  3   4 \n",
        "a, b\n1, 2\n\n3, 4\n",
        "a,b,\n1,2,\n3,4\n",
        "1,,2\n3,,4\n",
        '"a","b"\n"1","2.0"\n"3e0","4"\n',
        "first column,second column\n1,2\n3,4\n",
        "\ufeff1,2\n3,4\n",
        "\ufeffa,b\n1,2\n3,4\n",
        "a b c\n1,2\n3,4\n",
    ],
)
def test_csv_dialects(tmp_path: Path, text: str) -> None:
    np.testing.assert_array_equal(read_csv(written(tmp_path, text)), [[1, 2], [3, 4]])


@pytest.mark.parametrize("text", ["1.5\n2\n", "reaction time\n1.5\n2\n", "time (s, corrected)\n1.5\n2\n", "x\n1.5\n2"])
def test_one_number_per_line(tmp_path: Path, text: str) -> None:
    np.testing.assert_array_equal(read_csv(written(tmp_path, text)), [[1.5], [2]])


def test_numbers_keep_their_last_digit(tmp_path: Path) -> None:
    numbers = [*np.random.default_rng(1).normal(size=2000), 0.1 + 0.2, 5e-324, 1.7976931348623157e308, np.inf, np.nan]
    path = written(tmp_path, "\n".join(repr(float(number)) for number in numbers))
    np.testing.assert_array_equal(read_csv(path)[:, 0], numbers)


def test_an_index_without_a_name_is_a_column_as_any_other(tmp_path: Path) -> None:
    path = written(tmp_path, ",x\n0,1.5\n1,2.5\n")
    np.testing.assert_array_equal(read_csv(path), [[0, 1.5], [1, 2.5]])
    assert read_table(path).header == ["", "x"]


def test_what_is_taken_for_a_header_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "time,errors\n1,2\n")
    read_csv(path)
    assert capsys.readouterr().err == f"Skipped the first row of {path}, taken for a header: time, errors\n"
    read_csv(written(tmp_path, "1,2\n"))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,x\n2,3\n", r"data row 1, column 2: 'x' is not a number\. Remove or replace it"),
        ("id,2020\n1,2\n", "data row 1, column 1: 'id' is not a number"),
        ("NA\n1\n2\n", r"data row 1, column 1: 'NA' is a missing value\. Missing values are not supported yet"),
        ("x,y\n1,2\n3,N/A\n", "data row 2, column 2: 'N/A' is a missing value"),
        ("a,b,c\n1,,2\n3,,4\n", "data row 1, column 2: an empty cell is a missing value"),
        ("1,2\n3,\n", r"data row 2 has 1 values, the first 2; column 2 is empty\. Make rows equally long"),
        ("a,b,c\n1,2,\n3,4,\n", "data row 1, column 3: an empty cell"),
        ("1,2\n3\n", "data row 2 has 1 values, the first 2; column 2 is empty"),
        ("1,2\n,,\n", "data row 2 has 0 values, the first 2; column 1 is empty"),
        (",,\n1,2\n", "data row 2 has 2 values, the rows before 1"),
        ("1,2\n3,4,5\n", "data row 2 has 3 values, the rows before 2"),
        ("1,5;2,5\n3,5;4,5\n", r"'5;2' is not a number\. Write decimals with a point"),
        ("x;y\n1,5;2\n", r"data row 1, column 1: '1,5' is not a number\. Write decimals with a point"),
        ('"1\n2\n', "cannot be split into cells"),
        ("größe\n1\n".encode("latin-1"), "is not text in UTF-8"),
        ("1\n2\n".encode("utf-16"), "is not text in UTF-8"),
    ],
)
def test_nothing_is_lost_in_silence(tmp_path: Path, text: str | bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_csv(written(tmp_path, text))


def test_a_row_or_a_column_may_hold_a_vector(tmp_path: Path) -> None:
    (tmp_path / "row.csv").write_text("1,2,3\n")
    (tmp_path / "column.csv").write_text("1\n2\n3\n")
    np.save(tmp_path / "array.npy", np.array([1, 2, 3]))
    for name in ("row.csv", "column.csv", "array.npy"):
        np.testing.assert_array_equal(read_observed(tmp_path / name, (3,)), [1, 2, 3])


def test_groups_from_a_table_with_one_observation_per_row(tmp_path: Path) -> None:
    path = tmp_path / "groups.csv"
    path.write_text("person,time\nanna,1.5\nben,2\nanna,2.5\n7,3\n")
    found = [group.tolist() for group in read_groups(path)]
    assert found == [[1.5, 2.5], [2.0], [3.0]]
    path.write_text("anna 1 2\nben 3 4\nanna 5 6\n")
    assert [group.tolist() for group in read_groups(path)] == [[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0]]]
    path.write_text("time\n1\n2\n")
    with pytest.raises(ValueError, match="one column; for groups of observations, write the group in the first column"):
        read_groups(path)
    path.write_text("a,1\nb,x\n")
    with pytest.raises(ValueError, match="data row 2, column 2: 'x' is not a number"):
        read_groups(path)


def test_json_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[1, 2")
    with pytest.raises(ValueError, match="is not JSON"):
        read_for(Wanted((2,), "nested", None), tmp_path / "x.json")
    (tmp_path / "x.json").write_text("[[1, 2], [3]]")
    assert read_for(Wanted((2,), "nested", None), tmp_path / "x.json") == [[1, 2], [3]]


def test_numpy_files_that_are_none(tmp_path: Path) -> None:
    np.savez(tmp_path / "good.npz", x=np.arange(3))
    np.save(tmp_path / "good.npy", np.arange(3))
    wanted = Wanted({"x": (3,)}, "vector", None)
    assert read_for(wanted, tmp_path / "good.npz")["x"].tolist() == [0, 1, 2]
    (tmp_path / "text.npz").write_text("1\n2\n")
    (tmp_path / "array.npz").write_bytes((tmp_path / "good.npy").read_bytes())
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "good.npz").read_bytes()[:50])
    for name in ("text", "array", "empty", "cut"):
        with pytest.raises(ValueError, match=rf"{name}\.npz is not a \.npz file"):
            read_for(wanted, tmp_path / f"{name}.npz")
    (tmp_path / "text.npy").write_text("1\n2\n")
    (tmp_path / "several.npy").write_bytes((tmp_path / "good.npz").read_bytes())
    np.save(tmp_path / "objects.npy", np.array([None, "a"]), allow_pickle=True)
    for name in ("text", "several", "objects"):
        with pytest.raises(ValueError, match=rf"{name}\.npy is not a \.npy file"):
            read_observed(tmp_path / f"{name}.npy", (3,))


def test_a_figure_of_an_unknown_format_is_refused_before_the_work(tmp_path: Path) -> None:
    for name in ("curve.png", "curve.PDF", "curve.svg", "curve"):
        check_drawable(tmp_path / name)
    with pytest.raises(ValueError, match=r"--out must end in one of .*png.*; received curve\.docx"):
        check_drawable(tmp_path / "curve.docx")
