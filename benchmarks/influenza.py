"""The influenza study against the evidence by particles, which is exact but for Monte Carlo error.

Evidences are repeated with several seeds, so that their spread checks the error that each reports. The trained
estimators are asked at the outbreak: more and fewer steps, data laid out as vectors and as series.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import deepbf
from deepbf_studies import problems
from deepbf_studies.problems.influenza import LATENT, NO_LATENT, VARYING
from deepbf_studies.problems.influenza_evidence import Round, log_evidence

RESULTS = Path(__file__).parent / "results" / "influenza.json"
ROUNDS = (Round(300, 200), Round(500, 400), Round(1000, 600))
NUM_TEST = 5000
TEST_SEED = 99


def measure_evidence(name: str, seed: int, steps_a_day: int) -> dict[str, object]:
    """Log evidence of one model at the outbreak."""
    started = time.process_time()
    observed = problems.load("influenza").observed
    assert observed is not None
    found = log_evidence(name, observed, ROUNDS, seed=seed, steps_a_day=steps_a_day)
    return {
        "model": name,
        "steps_a_day": steps_a_day,
        "seed": seed,
        "log_evidence": round(found.log_evidence, 3),
        "error": round(found.error, 3),
        "num_effective": round(found.num_effective, 1),
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def measure_estimator(structure: str, network: str, num_steps: int, seed: int) -> dict[str, object]:
    """Loss on fresh simulations, and the answer at the outbreak, of one trained estimator."""
    started = time.process_time()
    study = problems.load("influenza")
    assert study.observed is not None
    bf = deepbf.fit(study.models, structure=structure, network=network, steps=num_steps, seed=seed, progress=False)
    first, second = (bf.log_bf(model.simulate(NUM_TEST, seed=TEST_SEED).data) for model in study.models)
    answer = bf.compare(study.observed)
    loss = 0.5 * (np.logaddexp(0, -first).mean() + np.logaddexp(0, second).mean())
    return {
        "structure": structure,
        "network": network,
        "steps": num_steps,
        "seed": seed,
        "loss": round(float(loss), 4),
        "log_bf": round(answer.log_bf, 3),
        "error": answer.error,
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, help="one part; the other's results are kept")
    options = parser.parse_args()
    for part in PARTS if options.only is None else (options.only,):
        found = []
        for measure, arguments in PARTS[part]:
            found.append(measure(*arguments))
            print(found[-1], flush=True)
        kept = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
        RESULTS.write_text(json.dumps({**kept, part: found}, indent=1) + "\n")


PARTS = {
    "evidence": [
        *((measure_evidence, (name, seed, 6)) for seed in (1, 2, 3) for name in (NO_LATENT, LATENT, VARYING)),
        *((measure_evidence, (name, 1, 12)) for name in (NO_LATENT, LATENT)),
    ],
    "estimators": [
        (measure_estimator, ("vector", "mlp", 1500, 11)),
        (measure_estimator, ("series", "summary", 1500, 11)),
        (measure_estimator, ("series", "conv", 1500, 11)),
        (measure_estimator, ("vector", "mlp", 6000, 11)),
    ],
}


if __name__ == "__main__":
    main()
