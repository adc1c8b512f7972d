"""What the tests of the library and of the studies share: cores for each worker, and compiled programs."""

import os
from collections.abc import Iterator

import jax
import platformdirs
import pytest

from deepbf._compilation import processor
from deepbf_studies.paper.workers import keep_to, shares_of, usable_cores


def pytest_configure() -> None:
    """Let workers that share the tests among them share the cores, too, before JAX counts them."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker:
        shares = shares_of(usable_cores(), int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
        # A worker that replaces one that crashed has a number beyond theirs.
        keep_to(shares[int(worker.removeprefix("gw")) % len(shares)])


@pytest.fixture(scope="session", autouse=True)
def compile_once() -> Iterator[None]:
    """Keep compiled programs, for all workers and for the next run: compiling is most of the time of the tests."""
    shared = platformdirs.user_cache_path("deepbf") / "tests" / processor()
    settings = {
        "jax_compilation_cache_dir": str(shared / "compiled"),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    # Processes that tests start share theirs.
    os.environ["DEEPBF_CACHE"] = str(shared / "compiled-elsewhere")
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
