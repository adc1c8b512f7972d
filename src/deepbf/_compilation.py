"""Compile once: programs that all fits of a process share, and that the next process finds on disk.

A program of XLA takes a tenth of a second to many seconds to compile, more than a short training. JAX compiles anew
for every new function, and for every module whose arrays stand in the program as constants. Here functions are those
of modules, and arrays are arguments: data of the same shape need one program, whoever reads them.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import platformdirs
from numpy.typing import NDArray

# The environment variable with the folder for programs; empty to keep none.
FOLDER_VARIABLE = "DEEPBF_CACHE"
# Programs that compile faster are compiled again: finding them takes as long.
LEAST_SECONDS_KEPT = 0.05
# Those used longest ago go first. A fit has 1 to 5 MB of them.
MOST_BYTES_KEPT = 2**30
# Fits of different shapes whose programs a process holds. Those of one take 1,200 of the 65,530 pieces of memory that
# Linux lets a process have: held for good, they were the end of it after fifty fits.
FITS_HELD = 4
# Programs that a fit prepares its data and answers by.
PROGRAMS_HELD = 10 * FITS_HELD

# Options of the compiler, for inputs that are never nan, which makes ramps a third faster; and for programs that run
# once, which then are four times faster to a result.
NEVER_NAN = (("xla_cpu_enable_fast_min_max", True),)
IN_A_HURRY = (("xla_backend_optimization_level", 0),)
Options = tuple[tuple[str, bool | int], ...]


class Form(NamedTuple):
    """All that a program depends on in modules, besides the shapes of their arrays; hashable."""

    leaves: tuple[Hashable, ...]
    structure: Any

    @classmethod
    def of(cls, tree: Any) -> Form:
        """Return the form of a tree without arrays, or with their shapes in their place."""
        leaves, structure = jax.tree.flatten(tree)
        return cls(tuple(leaves), structure)

    def tree(self) -> Any:
        """Return the tree that it is the form of."""
        return jax.tree.unflatten(self.structure, self.leaves)


def compiled(function: Callable[..., Any], *modules: Any, options: Options = NEVER_NAN) -> Callable[..., Any]:
    """Return ``function(*modules, *inputs)`` as a compiled function of the inputs, which are arrays.

    `function` is one of a module, not one made on the spot: its program is that of all modules of the same form.

    Examples
    --------
    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> layers = [eqx.nn.Linear(2, 1, key=jax.random.key(seed)) for seed in (1, 2)]
    >>> first, second = (compiled(eqx.nn.Linear.__call__, layer) for layer in layers)
    >>> first(jnp.ones(2)).shape, bool((first(jnp.ones(2)) == second(jnp.ones(2))).any())
    ((1,), False)
    """
    keep_programs()
    arrays, static = eqx.partition(modules, eqx.is_array)
    return partial(_program(function, Form.of(static), options), arrays)


@lru_cache(PROGRAMS_HELD)
def _program(function: Callable[..., Any], form: Form, options: Options) -> Callable[..., Any]:
    static = form.tree()

    @partial(jax.jit, compiler_options=dict(options))
    def run(arrays: Any, *inputs: jax.Array) -> Any:
        return function(*eqx.combine(arrays, static), *inputs)

    return run


# One at a time: the other core simulates, and prepares what comes.
_BACKGROUND = ThreadPoolExecutor(1, thread_name_prefix="compiling")


class CompiledAhead:
    """A compiled function whose program can be asked for before it is needed: it then compiles in the background.

    Parameters
    ----------
    function
        What is compiled, a function of arrays and trees of them.
    donated
        The argument whose memory the result takes over, by number; None if there is none.
    """

    def __init__(self, function: Callable[..., Any], donated: int | None = None) -> None:
        keep_programs()
        self._jitted = jax.jit(function, donate_argnums=() if donated is None else donated)
        self._programs: dict[Form, Future[Any]] = {}

    def ask(self, *inputs: Any) -> None:
        """Compile for inputs like these, arrays or `jax.ShapeDtypeStruct`s, while the caller goes on."""
        shapes = jax.tree.map(_shape_of, inputs)
        form = Form.of(shapes)
        if form not in self._programs:
            self._programs[form] = _BACKGROUND.submit(lambda: self._jitted.lower(*shapes).compile())

    def __call__(self, *inputs: Any) -> Any:
        """Return the function of these arrays, by the program that was asked for, if one was."""
        program = self._programs.get(Form.of(jax.tree.map(_shape_of, inputs)))
        return self._jitted(*inputs) if program is None else program.result()(*inputs)


def _shape_of(array: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def in_batches(
    function: Callable[[jax.Array], jax.Array],
    data: NDArray[np.generic],
    batch_size: int,
    *,
    axis: int = 0,
    before: Callable[[NDArray[np.generic]], NDArray[np.float32]] | None = None,
) -> NDArray[np.float32]:
    """Return `function` of the data, computed in batches of one fixed size, so that it compiles once.

    `before` runs on each batch in NumPy. `axis` is where the batch is in the function's output. The last batch is
    padded with copies of its last row.
    """

    def compute(start: int) -> NDArray[np.float32]:
        batch = data[start : start + batch_size]
        num_rows = len(batch)
        if before is not None:
            batch = before(batch)
        if num_rows < batch_size:
            batch = np.concatenate([batch, np.repeat(batch[-1:], batch_size - num_rows, axis=0)])
        output = np.asarray(function(jnp.asarray(batch)))
        return output[(slice(None),) * axis + (slice(num_rows),)]

    starts = range(0, len(data), batch_size)
    if before is None or len(starts) == 1:
        return np.concatenate([compute(start) for start in starts], axis=axis)
    # One batch is standardised while others are computed: NumPy and XLA both let go of Python's lock.
    with ThreadPoolExecutor(1 + (os.cpu_count() or 1)) as threads:
        return np.concatenate(list(threads.map(compute, starts)), axis=axis)


@cache
def keep_programs() -> None:
    """Have JAX keep compiled programs in the user's cache folder, unless the user has told JAX where, or not to.

    `DEEPBF_CACHE` names another folder, or, empty, switches this off.
    """
    told = os.environ.get(FOLDER_VARIABLE)
    if told == "" or jax.config.jax_compilation_cache_dir is not None:  # pyright: ignore[reportAttributeAccessIssue]
        return
    folder = platformdirs.user_cache_path("deepbf") / "programs" if told is None else Path(told)
    # A home may be shared by machines, and programs know instructions that not all of them have.
    folder /= processor()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        # Nowhere to write: everything works as before, and compiles each time.
        return
    jax.config.update("jax_compilation_cache_max_size", MOST_BYTES_KEPT)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS_KEPT)
    jax.config.update("jax_compilation_cache_dir", str(folder))


def processor() -> str:
    """Return a name of what this machine's processor can do."""
    description = Path("/proc/cpuinfo")
    lines = description.read_text().splitlines() if description.exists() else [platform.processor()]
    features = sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))} or lines[:1])
    digest = hashlib.sha256("\n".join(features).encode()).hexdigest()
    return f"{platform.machine()}-{digest[:12]}"
