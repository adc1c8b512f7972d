"""Time of a training step against the length of the data: every network for series and for sets, one fixed batch.

The slope is that of log time on log length, by least squares: 1 is linear, 0 does not depend on the length. Networks
that read a fixed summary are timed with rows of the width that their preparation gives at each length.

Run: python benchmarks/lengths.py                   about 2 minutes
     python benchmarks/lengths.py --out lengths.json  and write the numbers
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from deepbf import losses
from deepbf.networks import NETWORKS
from deepbf.networks.ensemble import init_ensemble
from deepbf.training.optimise import classifying, flat_networks, init_state, make_block

LENGTHS = (16, 64, 256, 1024, 4096)
CASES = (
    ("series", "conv"),
    ("series", "summary"),
    ("exchangeable", "deepset"),
    ("exchangeable", "set-attention"),
)
NUM_MODELS, NUM_MEMBERS, BATCH_SIZE = 2, 4, 128
# Data sets per model for the preparation: as few as its whitening can do with, for the sake of time.
NUM_PILOT = 512
NUM_REPEATS = 7
# A step of a long series takes a second on a busy machine; short ones are timed many at a time.
SHORTEST_SECONDS = 0.02
MOST_STEPS = 64


def seconds_a_step(structure: str, network: str, length: int) -> float:
    """Return the shortest time of a step, over several blocks of steps."""
    kind = NETWORKS[structure][network]
    rng = np.random.default_rng(length)
    pilot = [(1 + k) * rng.standard_normal((NUM_PILOT, length)).astype(np.float32) for k in range(NUM_MODELS)]
    layout = kind.fit_preparation(pilot).layout((length,))
    networks = flat_networks(init_ensemble(kind, layout, NUM_MODELS, NUM_MEMBERS, jax.random.key(0)))
    block, state = make_block(networks.form, classifying(losses.cross_entropy)), init_state(networks.weights)
    # One batch, used again: a block reads no more memory than its steps need.
    shape = (NUM_MEMBERS, NUM_MODELS, BATCH_SIZE, layout.width)
    batch = jnp.asarray(rng.standard_normal(shape).astype(np.float32))
    num_steps, best = 1, float("inf")
    state, values = block(state, batch[None], jnp.full(1, 1e-4), jnp.asarray(1))
    values.block_until_ready()
    for _ in range(NUM_REPEATS):
        begin = time.perf_counter()
        for _ in range(num_steps):
            state, values = block(state, batch[None], jnp.full(1, 1e-4), jnp.asarray(1))
        values.block_until_ready()
        seconds = time.perf_counter() - begin
        best = min(best, seconds / num_steps)
        num_steps = int(np.clip(SHORTEST_SECONDS / best, 1, MOST_STEPS))
    return best


def measure(structure: str, network: str) -> dict[str, Any]:
    """Return the times at every length, and their slope."""
    seconds = [seconds_a_step(structure, network, length) for length in LENGTHS]
    slope = float(np.polyfit(np.log(LENGTHS), np.log(seconds), 1)[0])
    last = float(np.log(seconds[-1] / seconds[-2]) / np.log(LENGTHS[-1] / LENGTHS[-2]))
    return {
        "structure": structure,
        "network": network,
        "seconds_a_step": dict(zip(LENGTHS, seconds, strict=True)),
        "slope": slope,
        "slope_of_the_last_two": last,
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    print(f"{'structure':<13}{'network':<15}" + "".join(f"{f'n={n}':>10}" for n in LENGTHS) + "   ms a step     slope")
    results = []
    for structure, network in CASES:
        result = measure(structure, network)
        results.append(result)
        times = "".join(f"{1e3 * seconds:>10.2f}" for seconds in result["seconds_a_step"].values())
        print(f"{structure:<13}{network:<15}{times} {result['slope']:>21.2f}", flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
