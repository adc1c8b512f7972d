"""What the commands read and write: studies, observed data in the shape that an estimator expects, and figures."""

from __future__ import annotations

import json
import runpy
import zipfile
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from deepbf._rows import is_number, numbers_in, read_table, read_text

if TYPE_CHECKING:
    from deepbf.estimator.bayes_factor import BayesFactor

# What a study file may define besides `models`; options given on the command line win.
SETTINGS = (
    "structure",
    "covariates",
    "num_obs",
    "prior_probs",
    "training_probs",
    "network",
    "loss",
    "seconds",
    "steps",
    "num_simulations",
    "ensemble",
    "schedule",
    "batch_size",
    "executor",
    "seed",
)
# Of these, how long to train.
BUDGETS = ("seconds", "steps", "num_simulations")
# Packages with ready-made studies, such as deepbf-studies, enter `names` and `load` of theirs under this group.
STUDIES = "deepbf.studies"


class StudyFile(NamedTuple):
    """What a study brings to the command line."""

    models: Sequence[Any]
    settings: dict[str, Any]
    exact_log_bf: Callable[..., Any] | None


def read_study(path: Path) -> StudyFile:
    """Return the models, the settings, and the exact log Bayes factor if there is one, that a study file defines.

    The file is run; what goes wrong in it is not explained here, so that its own traceback is shown.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no study file {path}. Pass a Python file that defines models = [...].")
    defined = runpy.run_path(str(path))
    if "models" not in defined:
        raise ValueError(f"{path} defines no `models`. Add: models = [deepbf.Model(...), deepbf.Model(...)].")
    settings = {name: defined[name] for name in SETTINGS if name in defined}
    return StudyFile(defined["models"], settings, defined.get("exact_log_bf"))


def _ready_made() -> dict[str, Callable[..., Any]]:
    """Return, by name, how to load every study that an installed package brings: ``load(name, num_obs=...)``."""
    catalogues = [entry.load() for entry in entry_points(group=STUDIES)]
    return {name: catalogue.load for catalogue in catalogues for name in catalogue.names()}


def named_or_file(wanted: str, data_shape: Any = None) -> StudyFile:
    """Return the ready-made study of this name, or what the Python file of this name defines; a file wins.

    A ready-made study of single arrays is loaded with as many observations as `data_shape`, the shape of a data set,
    has, if that is given.
    """
    if Path(wanted).is_file() or wanted not in _ready_made():
        return read_study(Path(wanted))
    load = _ready_made()[wanted]
    study = load(wanted)
    is_array = isinstance(study.structure, str) and isinstance(data_shape, tuple)
    if is_array and data_shape and study.models[0].simulate(1, seed=0).data.shape[1:] != data_shape:
        study = load(wanted, num_obs=data_shape[0])
    return StudyFile(study.models, {"structure": study.structure}, study.exact_log_bf)


def find_study(wanted: str | None, estimator: Path, data_shape: Any) -> tuple[StudyFile, str]:
    """Return the study to simulate from, and where it was found: a file, a name, or the file beside the estimator.

    A ready-made study is loaded with as many observations as the estimator was trained on, by its `data_shape`.
    """
    if wanted is None:
        beside = estimator.with_suffix(".py")
        if not beside.is_file():
            named = ", ".join(_ready_made()) or "a study of the package deepbf-studies"
            raise FileNotFoundError(
                f"--study must say which models to simulate from, there is no {beside.name} beside {estimator.name}. "
                f"Pass the Python file of the fit, or one of {named}."
            )
        return read_study(beside), str(beside)
    found = named_or_file(wanted, data_shape)
    return found, wanted if Path(wanted).is_file() else f"the ready-made study {wanted}"


class Wanted(NamedTuple):
    """What a data set should look like: its shape, how it is laid out, and a range of observations if they vary."""

    data_shape: Any
    structure: Any
    num_obs: tuple[int, int] | None
    covariates: Any = None


def read_for(bf: BayesFactor | Wanted, path: Path) -> Any:
    """Return one data set for this estimator, from a file of a kind that can hold it.

    JSON and .npz hold data of any structure; CSV and .npy hold one array. For nested data, the first column of a CSV
    says which group an observation is of. For responses to covariates it may hold both, in columns with names.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}. Pass the observed data as CSV, JSON, .npy or .npz.")
    if path.suffix == ".json":
        try:
            return json.loads(read_text(path))
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{path} is not JSON ({error}). Pass a list of numbers, of lists, or an object of those."
            ) from error
    if path.suffix == ".npz":
        return _load_numpy(path)
    if isinstance(bf.data_shape, dict):
        raise ValueError(
            f"{path} holds one array; the estimator was trained on several: {', '.join(bf.data_shape)}. Pass them by "
            'name, as .npz or JSON, such as {"trials": [1.5, 0.2], "age": 34}.'
        )
    if bf.covariates is not None and path.suffix != ".npy" and read_table(path).header is not None:
        table = read_columns(path)
        # Without the covariates, a column of responses with its name above it.
        return table if len(table) > 1 else next(iter(table.values()))
    if bf.structure == "nested" and path.suffix != ".npy":
        return read_groups(path)
    return read_observed(path, bf.data_shape, any_num_obs=bf.num_obs is not None)


def _load_numpy(path: Path) -> Any:
    """Return the array in a .npy file, or the arrays by name in a .npz file."""
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray) == (path.suffix == ".npy"):
            return found if isinstance(found, np.ndarray) else dict(found)
        problem = "it holds " + ("one array, without a name" if path.suffix == ".npz" else "arrays by name")
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        problem = str(error)
        raise ValueError(f"{path} is not a {path.suffix} file of numbers ({problem}). Write it anew.") from error
    raise ValueError(f"{path} is not a {path.suffix} file ({problem}). Write it anew.")


def read_columns(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a table by the names above them: of numbers, or of words where any cell is no number."""
    header, rows = read_table(path)
    if header is None or len(header) != len(rows[0]):
        raise ValueError(
            f"{path} has no names above its columns, one for each. Write them in the first row, such as y,dose,group."
        )
    repeated = [name for name in header if header.count(name) > 1]
    if repeated:
        raise ValueError(f"{path} has the name {repeated[0]!r} above several columns. Give each a name of its own.")
    columns = {name: [row[k] for row in rows] for k, name in enumerate(header)}
    return {
        name: [float(cell) for cell in cells] if all(map(is_number, cells)) else cells
        for name, cells in columns.items()
    }


def read_covariates(path: Path, response: str | None) -> dict[str, list[Any]]:
    """Return the covariates in a table: all of its columns but the one that `response` names."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}. Pass the covariates as CSV, with names above the columns.")
    columns = read_columns(path)
    if response is not None and response not in columns:
        raise ValueError(
            f"--response must be one of the columns of {path}, {', '.join(columns)}; received {response!r}."
        )
    return {name: column for name, column in columns.items() if name != response}


def read_groups(path: Path) -> list[NDArray[np.float64]]:
    """Return the groups in a text file with one observation per row, whose first column says which group it is of.

    Groups come in the order in which the file first names them. Each is an array with one entry per observation, or
    one row where the other columns are several.
    """
    rows = _rows_below_header(path)
    if len(rows[0]) < 2:
        raise ValueError(
            f"{path} has one column; for groups of observations, write the group in the first column and the "
            "observation in the others, one row per observation. Or pass JSON, a list of groups."
        )
    groups: dict[str, list[list[float]]] = {}
    for number, row in enumerate(rows, start=1):
        groups.setdefault(row[0], []).append(numbers_in(path, number, row[1:], first_column=2))
    arrays = [np.array(group) for group in groups.values()]
    return [array[:, 0] if array.shape[1] == 1 else array for array in arrays]


def read_observed(path: Path, data_shape: tuple[int, ...], *, any_num_obs: bool = False) -> NDArray[np.generic]:
    """Return one data set of shape `data_shape` from a CSV or .npy file.

    A CSV holds one observation per row, with an optional header; a single row or column may also hold a vector. With
    `any_num_obs`, there may be any number of observations.
    """
    array = _load_numpy(path) if path.suffix == ".npy" else read_csv(path)
    if any_num_obs:
        if len(data_shape) == 1 and 1 in array.shape:
            array = array.reshape(-1)
        data_shape = (*array.shape[:1], *data_shape[1:])
    if array.shape != data_shape and 1 in array.shape and array.size == int(np.prod(data_shape)):
        array = array.reshape(data_shape)
    if array.shape != data_shape:
        wanted = f"{int(np.prod(data_shape))} numbers, one per row"
        if len(data_shape) == 2:
            wanted = f"{data_shape[0]} rows of {data_shape[1]} columns"
        raise ValueError(
            f"{path} holds {' x '.join(str(size) for size in array.shape)} numbers (rows x columns); the estimator was "
            f"trained on data sets of shape {data_shape}. Pass a file with {wanted}."
        )
    return array


def read_csv(path: Path) -> NDArray[np.float64]:
    """Return the numbers in a text file, shape (rows, columns); commas, semicolons, tabs or spaces between them."""
    rows = _rows_below_header(path)
    return np.array([numbers_in(path, number, row) for number, row in enumerate(rows, start=1)])


def _rows_below_header(path: Path) -> list[list[str]]:
    """Return the cells of a table, and say on the standard error what was taken for its header."""
    header, rows = read_table(path)
    if header is not None:
        typer.echo(f"Skipped the first row of {path}, taken for a header: {', '.join(header)}", err=True)
    return rows


def parse_values(pairs: Sequence[str]) -> dict[str, float]:
    """Return numbers by name from what was given to --at, such as scale=1.

    Examples
    --------
    >>> parse_values(["scale=1", "rate = 0.5"])
    {'scale': 1.0, 'rate': 0.5}
    """
    found = {}
    for pair in pairs:
        name, _, number = pair.partition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError as error:
            raise ValueError(f"--at must be a name and a number, such as scale=1; received {pair!r}.") from error
    return found


def parse_probs(text: str) -> list[float]:
    """Return the numbers in what was given to --prior-probs.

    Examples
    --------
    >>> parse_probs("0.2,0.8")
    [0.2, 0.8]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ValueError(f"--prior-probs must be numbers separated by commas; received {text!r}.") from error


def check_writable(out: Path) -> None:
    """Raise now rather than after the work if `out` could not be saved as a file."""
    if out.is_dir():
        raise ValueError(f"--out must be a file; {out} is a folder. Pass, for example, {out / 'study.deepbf'}.")
    if not out.absolute().parent.is_dir():
        raise ValueError(f"--out is in a folder that does not exist: {out.absolute().parent}. Create it first.")


def check_drawable(out: Path) -> None:
    """Raise now rather than after the work if no figure could be saved as `out`."""
    from matplotlib.figure import Figure

    check_writable(out)
    known = Figure().canvas.get_supported_filetypes()
    ending = out.suffix.lower().removeprefix(".")
    # Without an ending, matplotlib writes a PNG and says so in its name.
    if ending and ending not in known:
        raise ValueError(f"--out must end in one of {', '.join(sorted(known))}; received {out.name}. Use, say, .png.")


def check_folder(out: Path) -> None:
    """Make the folder `out`, or raise now rather than after the work if nothing could be written there."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder; {out} is a file. Pass another name.")
    out.mkdir(parents=True, exist_ok=True)


def draw_to(out: Path, plot: Callable[..., Any], result: Any) -> None:
    """Write what `plot` draws of a result to a file, without a window."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.8), layout="constrained")
    plot(result, ax=axes)
    figure.savefig(out, dpi=150)
    pyplot.close(figure)
