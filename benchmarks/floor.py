"""The floor: one plain network on raw data, which the default estimator has to beat with the same time.

Values are standardised by median and interquartile range and squashed by arcsinh; sets are put in increasing order (of
their first column, if observations are vectors). One network of 256-256-256 units (GELU), 256 data sets per model in a
mini-batch, Adam at 1e-3 falling along a cosine, averaged weights; simulation in one background thread; one compiled
block of 16 steps. No ensemble, no summaries, no error.

`benchmarks/accuracy.py` runs it beside the default.
"""

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from deepbf_studies.problems import Study

BATCH, BLOCK, WIDTH, RATE, AVERAGING = 256, 16, 256, 1e-3, 16.0


def fit_floor(study: Study, seconds: float, seed: int) -> tuple[Callable[[Any], NDArray[np.float64]], int]:
    """Return the trained map from data sets to log odds against the last model, shape (batch, K - 1), and its steps."""
    started = time.monotonic()
    first = np.concatenate([_flat(study, model.simulate(4096, seed=seed).data) for model in study.models])
    low, middle, high = np.nanquantile(first, [0.25, 0.5, 0.75], axis=0)
    spread = np.where(high > low, high - low, np.where(first.std(axis=0) > 0, first.std(axis=0), 1.0))

    def prepare(data: Any) -> NDArray[np.float32]:
        return np.arcsinh((_flat(study, data) - middle) / spread).astype(np.float32)

    waiting: queue.Queue[NDArray[np.float32]] = queue.Queue(maxsize=4)
    over = threading.Event()

    def simulate() -> None:
        number = 0
        while not over.is_set():
            number += 1
            drawn = [model.simulate(BLOCK * BATCH, seed=1_000_000 * seed + number).data for model in study.models]
            rows = [prepare(data) for data in drawn]
            block = np.stack([one.reshape(BLOCK, BATCH, -1) for one in rows], axis=1)
            while not over.is_set():
                try:
                    waiting.put(block, timeout=0.1)
                    break
                except queue.Full:
                    continue

    thread = threading.Thread(target=simulate)
    thread.start()
    num_models = len(study.models)
    network = eqx.nn.MLP(first.shape[1], num_models - 1, WIDTH, 3, activation=jax.nn.gelu, key=jax.random.key(seed))
    weights, static = eqx.partition(network, eqx.is_array)
    labels = jnp.repeat(jnp.arange(num_models), BATCH)

    def loss(weights: Any, rows: jax.Array) -> jax.Array:
        odds = jax.vmap(eqx.combine(weights, static))(rows.reshape(num_models * BATCH, -1))
        logits = jnp.concatenate([odds, jnp.zeros_like(odds[:, :1])], axis=1)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    adam = optax.scale_by_adam()

    @jax.jit
    def run_block(state: Any, block: jax.Array, rates: jax.Array) -> Any:
        def step(state: Any, inputs: Any) -> Any:
            weights, averaged, memory, number = state
            rows, rate = inputs
            update, memory = adam.update(jax.grad(loss)(weights, rows), memory)
            weights = jax.tree.map(lambda w, u: w - rate * u, weights, update)
            share = (AVERAGING + 1.0) / (number + AVERAGING + 1.0)
            averaged = jax.tree.map(lambda a, w: a + share * (w - a), averaged, weights)
            return (weights, averaged, memory, number + 1), None

        return jax.lax.scan(step, state, (block, rates))[0]

    state = (weights, weights, adam.init(weights), jnp.zeros(()))
    num_blocks, block_seconds, began = 0, 0.0, time.monotonic()
    while (left := seconds - (time.monotonic() - started)) > block_seconds:
        begin = time.monotonic()
        block = waiting.get()
        done = (begin - began) / (begin - began + left)
        state = run_block(state, jnp.asarray(block), jnp.full(BLOCK, RATE * 0.5 * (1 + np.cos(np.pi * done))))
        jax.block_until_ready(state)
        block_seconds = time.monotonic() - begin if num_blocks else 0.0
        num_blocks += 1
        if num_blocks == 1:
            began = time.monotonic()
    over.set()
    thread.join()
    evaluate = jax.jit(jax.vmap(eqx.combine(state[1], static)))

    def log_odds(data: Any) -> NDArray[np.float64]:
        return np.asarray(evaluate(jnp.asarray(prepare(data))), np.float64)

    return log_odds, num_blocks * BLOCK


def _flat(study: Study, data: Any) -> NDArray[np.float64]:
    """Return data sets as rows of numbers, absent ones 0, sets in increasing order."""
    arrays = data if isinstance(data, dict) else {"data": data}
    structures = study.structure if isinstance(study.structure, dict) else dict.fromkeys(arrays, study.structure)
    parts = []
    for name, values in arrays.items():
        array = np.ma.filled(np.ma.asarray(values).astype(np.float64), 0.0)
        if structures[name] == "exchangeable":
            if array.ndim == 2:
                array = np.sort(array, axis=1)
            else:
                columns = array.reshape(*array.shape[:2], -1)
                array = np.take_along_axis(columns, np.argsort(columns[:, :, 0], axis=1)[:, :, None], axis=1)
        parts.append(array.reshape(len(array), -1))
    return np.concatenate(parts, axis=1)
