"""Evaluating 100,000 data sets: the floating-point rate reached, as a share of a plain matrix product's.

Run: python benchmarks/evaluate.py
"""

import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import deepbf
from deepbf.networks.ensemble import ensemble_log_odds
from deepbf.training.intake import PREPARE_ROWS
from deepbf_studies import problems

NUM_DATASETS = 100_000
MATRIX_SIZE = 2000
REPEATS = 7


def best_time(function: Callable[[], object]) -> float:
    """Seconds of the fastest of several runs: the machine is shared, and noise only ever adds."""
    function()
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def matrix_product_rate() -> float:
    matrix = jnp.ones((MATRIX_SIZE, MATRIX_SIZE))
    product = jax.jit(lambda m: m @ m)
    return 2 * MATRIX_SIZE**3 / best_time(lambda: product(matrix).block_until_ready())


ARITHMETIC = {
    "add", "sub", "mul", "div", "max", "min", "neg", "abs", "exp", "log", "log1p", "logistic", "sqrt", "rsqrt", "tanh",
    "asinh", "integer_pow", "square", "sign", "select_n", "clamp",
}  # fmt: skip


def flops_a_dataset(bf: deepbf.BayesFactor) -> float:
    """Floating-point operations a data set: every arithmetic operation counts one, a product of matrices two a term.

    XLA's own count takes the body of a loop once, whatever its length, so this one walks the program itself.
    """
    batch = jnp.zeros((PREPARE_ROWS, *bf.data_shape), jnp.float32)
    preparation, networks = bf.ensemble.preparation, bf.ensemble.networks
    program = jax.make_jaxpr(lambda data: ensemble_log_odds(networks, preparation(data)))(batch)
    return count_flops(program.jaxpr) / PREPARE_ROWS


def count_flops(program: Any) -> float:
    total = 0.0
    for equation in program.eqns:
        name, size = equation.primitive.name, math.prod(equation.outvars[0].aval.shape)
        if name == "dot_general":
            contracted = equation.params["dimension_numbers"][0][0]
            total += 2 * size * math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
        elif name == "reduce_sum":
            total += math.prod(equation.invars[0].aval.shape)
        elif name in ARITHMETIC and equation.outvars[0].aval.dtype == jnp.float32:
            total += size
        repeats = equation.params.get("length", 1)
        for inner in ("jaxpr", "call_jaxpr"):
            if inner in equation.params:
                body = equation.params[inner]
                total += repeats * count_flops(getattr(body, "jaxpr", body))
    return total


def main() -> None:
    study = problems.load("data-1-i", num_obs=128)
    bf = deepbf.fit(study.models, structure=study.structure, steps=200, seed=1, progress=False)
    data = study.models[0].simulate(NUM_DATASETS, seed=2).data
    rate = matrix_product_rate()
    seconds = best_time(lambda: bf.log_bf(data))
    flops = flops_a_dataset(bf)
    reached = flops * NUM_DATASETS / seconds
    print(f"matrix product            {rate / 1e9:8.1f} Gflop/s")
    print(f"evaluating {NUM_DATASETS:,}        {seconds:8.3f} s, {NUM_DATASETS / seconds:,.0f} data sets/s")
    print(f"operations a data set     {flops:8.0f}")
    print(f"rate reached              {reached / 1e9:8.1f} Gflop/s, {reached / rate:.0%} of the matrix product's")


if __name__ == "__main__":
    main()
