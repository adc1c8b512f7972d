"""Programs are compiled once: by a process for all its fits of the same shapes, and for the processes after it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import deepbf
from deepbf import _compilation
from deepbf._compilation import compiled
from tests.simulators import NORMAL_MEAN, WALK_OR_NOISE

SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_compilation_cache_max_size",
    "jax_persistent_cache_min_compile_time_secs",
)


@pytest.fixture
def count_programs() -> Iterator[list[str]]:
    """Every program that is compiled, or read from disk, while a test runs."""
    asked: list[str] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        del duration_secs, kwargs
        if event == "/jax/core/compile/backend_compile_duration":
            asked.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield asked
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.fixture
def fresh_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """JAX as it is before deepbf has told it anything."""
    before = {name: getattr(jax.config, name) for name in SETTINGS}
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.delenv(_compilation.FOLDER_VARIABLE, raising=False)
    _compilation.keep_programs.cache_clear()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    _compilation.keep_programs.cache_clear()
    _compilation.keep_programs()


def folder() -> str | None:
    return jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("models", "structure", "budget"),
    [
        (NORMAL_MEAN, "exchangeable", {"steps": 20}),
        (WALK_OR_NOISE, "vector", {"steps": 20}),
        (WALK_OR_NOISE, "vector", {"num_simulations": 600}),
    ],
)
def test_a_fit_of_shapes_seen_before_compiles_nothing(
    models: Any, structure: str, budget: dict[str, Any], count_programs: list[str]
) -> None:
    jax.jit(lambda value: value + 1.0)(0.0)
    assert count_programs, "programs are not counted"
    observed = np.asarray(models[0].simulate(1, seed=5).data)[0]
    for seed in (1, 2):
        # Those of the first fit may be there from other tests.
        count_programs.clear()
        deepbf.fit(models, structure=structure, seed=seed, progress=False, **budget).compare(observed)
    assert count_programs == []


def times(layer: eqx.nn.Linear, factor: float, row: jax.Array) -> jax.Array:
    return factor * layer(row)


def test_modules_of_one_form_share_a_program(count_programs: list[str]) -> None:
    row = jnp.arange(3.0)
    layers = [eqx.nn.Linear(3, 2, key=jax.random.key(seed)) for seed in (1, 2)]
    first = compiled(times, layers[0], 2.0)(row)
    count_programs.clear()
    second = compiled(times, layers[1], 2.0)(row)
    assert count_programs == []
    assert_array_equal(first, 2.0 * layers[0](row))
    assert_array_equal(second, 2.0 * layers[1](row))
    # A number is not an array: it is part of the program.
    assert_array_equal(compiled(times, layers[1], 3.0)(row), 3.0 * layers[1](row))


@pytest.mark.usefixtures("fresh_settings")
def test_programs_are_kept_in_the_folder_that_the_user_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_compilation.FOLDER_VARIABLE, str(tmp_path / "here"))
    _compilation.keep_programs()
    assert Path(folder() or "").parent == tmp_path / "here"
    assert Path(folder() or "").is_dir()


@pytest.mark.usefixtures("fresh_settings")
def test_an_empty_name_keeps_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_compilation.FOLDER_VARIABLE, "")
    _compilation.keep_programs()
    assert folder() is None


@pytest.mark.usefixtures("fresh_settings")
def test_what_the_user_told_jax_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_compilation.FOLDER_VARIABLE, str(tmp_path / "here"))
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "there"))
    _compilation.keep_programs()
    assert folder() == str(tmp_path / "there")


@pytest.mark.usefixtures("fresh_settings")
def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(_compilation.FOLDER_VARIABLE, str(tmp_path / "file" / "below"))
    _compilation.keep_programs()
    assert folder() is None


SCRIPT = """
import jax.monitoring, deepbf
from tests.simulators import WALK_OR_NOISE
hits = []
jax.monitoring.register_event_listener(lambda event, **details: hits.append(event.rsplit("/", 1)[-1]))
deepbf.fit(WALK_OR_NOISE, structure="vector", steps=5, seed=1, progress=False)
print(hits.count("cache_hits"))
"""


@pytest.mark.slow
def test_the_next_process_finds_them(tmp_path: Path) -> None:
    environment = {**os.environ, _compilation.FOLDER_VARIABLE: str(tmp_path)}
    command = [sys.executable, "-c", SCRIPT]
    found = [
        int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
        for _ in range(2)
    ]
    assert found[0] < found[1]
