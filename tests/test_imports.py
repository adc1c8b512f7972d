"""Imports inside deepbf point one way: the order of docs/design.md, read from the source and enforced."""

import ast
from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "deepbf"

# A room is a module or a folder directly inside src/deepbf; beside it stand the rooms it may import.
# A room may always import itself.  "__init__" is the package's own front door, `import deepbf`.
FLOOR = {"_checks", "_files", "_jeffreys", "_numerics", "_rows", "_version"}
DATA = FLOOR | {"models", "layout"}
LEARNING = {"_compilation", "networks", "losses", "standardise"}
RESULTS = {"evaluation", "evaluating", "plots"}
ESTIMATION = DATA | LEARNING | {"simulation", "support", "training", "answer", "evaluation", "evaluating"}
EVERYTHING = ESTIMATION | RESULTS | {"estimator", "baselines", "variants", "criticism"}

MAY_IMPORT: dict[str, set[str]] = {
    "_checks": set(),
    "_version": set(),
    "_numerics": {"_checks"},
    "_files": set(),
    "_jeffreys": set(),
    "_rows": set(),
    "models": FLOOR,
    # What data look like; no JAX, for workers that only simulate need it.
    "layout": FLOOR | {"models"},
    "simulation": DATA,
    # Programs of XLA; no room that only simulates needs it.
    "_compilation": set(),
    "networks": DATA | {"_compilation"},
    "losses": FLOOR,
    "standardise": FLOOR,
    # Takes arrays.
    "evaluation": FLOOR,
    # Simulates, asks estimators of any kind, and hands the arrays to evaluation.
    "evaluating": DATA | {"simulation", "evaluation"},
    # How typical data are: fitted in training, asked by the estimator.
    "support": FLOOR | {"layout", "networks", "evaluation"},
    "training": DATA | LEARNING | {"simulation", "support"},
    # Plain data, below the estimator that builds it.
    "answer": FLOOR | {"plots"},
    # The trained map, and the one call that trains it.
    "estimator": ESTIMATION,
    "variants": ESTIMATION | RESULTS | {"estimator"},
    "criticism": ESTIMATION | RESULTS | {"estimator"},
    # The independent judge: shares neither networks nor training with what it judges.
    "baselines": DATA | {"simulation"},
    # Computes nothing.
    "plots": FLOOR,
    # One comparison of known answer, for the demo and the documentation.
    "example": FLOOR | {"models"},
    "report": EVERYTHING,
    "__init__": EVERYTHING | {"report"},
    "cli": EVERYTHING | {"example", "report", "__init__"},
    "service": EVERYTHING | {"example", "report", "__init__"},
    "__main__": {"cli"},
}


def room_of(path: Path) -> str:
    """The room that a source file, relative to the package, belongs to."""
    return path.parts[0].removesuffix(".py")


def imported_rooms(source: str, path: Path) -> Iterator[tuple[int, str]]:
    """Line and room of every import of deepbf in a file, wherever in the file it stands."""
    package = ("deepbf", *path.parts[:-1])
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=aliases):
                targets = [tuple(alias.name.split(".")) for alias in aliases]
            case ast.ImportFrom(module=module, names=aliases, level=level):
                # Level 1 is the file's own package, each further level one package up.
                start = package[: len(package) - level + 1] if level else ()
                base = start + tuple(module.split(".") if module else ())
                targets = [(*base, alias.name) for alias in aliases]
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                targets = [tuple(name.split("."))]
            case _:
                continue
        for target in targets:
            if target[0] == "deepbf_studies":
                yield node.lineno, "deepbf_studies"
            if target[0] == "deepbf":
                yield node.lineno, _room_in_package(target[1:])


def _room_in_package(inside: Sequence[str]) -> str:
    if not inside:
        return "__init__"
    # `from deepbf import Model` goes through the front door, `from deepbf import models` into a room.
    is_room = len(inside) > 1 or inside[0] in MAY_IMPORT or inside[0] in rooms_on_disk()
    return inside[0] if is_room else "__init__"


def rooms_on_disk() -> set[str]:
    return {room_of(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}


def violations(source: str, path: Path) -> list[str]:
    """One sentence for each import in a file that the order forbids."""
    room = room_of(path)
    if room not in MAY_IMPORT:
        return [_unknown(room, f"src/deepbf/{path}")]
    found = []
    for line, imported in imported_rooms(source, path):
        where = f"src/deepbf/{path}:{line}"
        if imported == "deepbf_studies":
            found.append(f"{where}: the library imports deepbf_studies; what it needs of it belongs into the library.")
        elif imported not in MAY_IMPORT:
            found.append(_unknown(imported, where))
        elif imported != room and imported not in MAY_IMPORT[room]:
            name = "deepbf itself" if imported == "__init__" else imported
            allowed = ", ".join(sorted(MAY_IMPORT[room])) or "nothing of deepbf"
            found.append(f"{where}: {room} imports {name}; it may import {allowed}. See the order in docs/design.md.")
    return found


def _unknown(room: str, where: str) -> str:
    return (
        f"{where}: deepbf has no room called {room!r}; add it to MAY_IMPORT in tests/test_imports.py, "
        "with the rooms it may import, and to the house in docs/design.md."
    )


def source_files() -> list[Path]:
    return sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def test_every_file_keeps_the_order() -> None:
    files = source_files()
    assert files, f"no source found in {PACKAGE}"
    found = [sentence for path in files for sentence in violations((PACKAGE / path).read_text("utf-8"), path)]
    assert not found, "\n" + "\n".join(found)


def test_the_order_points_one_way() -> None:
    assert set().union(*MAY_IMPORT.values()) <= set(MAY_IMPORT)
    TopologicalSorter(MAY_IMPORT).prepare()  # raises CycleError if the table allows a circle


FORBIDDEN = {
    "absolute": ("baselines/abc.py", "import deepbf.training", "training"),
    "absolute from": ("baselines/abc.py", "from deepbf.training.loop import train", "training"),
    "room as a name": ("baselines/abc.py", "from deepbf import estimator", "estimator"),
    "relative": ("baselines/abc.py", "from ..networks import DeepSet", "networks"),
    "relative room as a name": ("baselines/deeper/abc.py", "from ... import training", "training"),
    "one of several": ("baselines/abc.py", "import numpy, deepbf.models, deepbf.training as t", "training"),
    "inside a function": ("models/model.py", "def f():\n    from ..simulation import run", "simulation"),
    "for types only": (
        "answer.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .estimator import BayesFactor",
        "estimator",
    ),
    "by name": ("losses.py", "import importlib\nimportlib.import_module('deepbf.models')", "models"),
    "front door": ("training/loop.py", "from deepbf import Model", "deepbf itself"),
    "a star": ("plots/scatter.py", "from deepbf.evaluation import *", "evaluation"),
}


@pytest.mark.parametrize("source", ["import deepbf_studies", "from deepbf_studies.problems import load"])
def test_the_library_never_imports_the_studies(source: str) -> None:
    [sentence] = violations(source, Path("cli/demo.py"))
    assert "the library imports deepbf_studies" in sentence


@pytest.mark.parametrize("case", FORBIDDEN)
def test_a_forbidden_import_is_caught(case: str) -> None:
    path, source, imported = FORBIDDEN[case]
    [sentence] = violations(source, Path(path))
    assert f"{room_of(Path(path))} imports {imported};" in sentence
    assert path in sentence


ALLOWED = {
    "own room": (
        "networks/sets.py",
        "from .vector import Dense\nfrom deepbf.networks import vector\nfrom . import vector",
    ),
    "below": (
        "training/loop.py",
        "from deepbf import losses\nfrom ..simulation.source import run\nfrom .._checks import f",
    ),
    "answer below the estimator": ("estimator.py", "from .answer import Answer\nfrom deepbf.networks import DeepSet"),
    "other libraries": ("_checks.py", "import numpy as np\nfrom jax import numpy\nimport deepbfx"),
    "front door from the top": ("cli/demo.py", "import deepbf\nfrom .. import fit, __version__"),
    "the front door itself": ("__init__.py", "from .models import Model\nfrom deepbf.estimator import BayesFactor"),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_an_allowed_import_passes(case: str) -> None:
    path, source = ALLOWED[case]
    assert violations(source, Path(path)) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [("attic/boxes.py", "import numpy"), ("models/model.py", "from deepbf.attic.boxes import box")],
)
def test_an_unknown_room_is_told_where_to_go(path: str, source: str) -> None:
    [sentence] = violations(source, Path(path))
    assert "'attic'; add it to MAY_IMPORT in tests/test_imports.py" in sentence
