"""Five models in one classifier: error of the posterior probabilities, and of every pair's Bayes factor.

Run: python benchmarks/models.py                     one fit of 120 seconds
     python benchmarks/models.py --out results.json  and write the numbers
"""

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

import deepbf
from deepbf_studies import problems

NUM_TEST = 10_000
TEST_SEED = 1_000_003
CLIP = np.log(1e6)


def excess_loss(estimated: list[NDArray[Any]], exact: list[NDArray[Any]]) -> tuple[float, float]:
    """Mean cross-entropy over all models minus that of the exact evidences, with its Monte Carlo standard error."""
    differences = [
        log_softmax(truth, axis=1)[:, label] - log_softmax(found, axis=1)[:, label]
        for label, (found, truth) in enumerate(zip(estimated, exact, strict=True))
    ]
    variance = sum(d.var() / len(d) for d in differences) / len(differences) ** 2
    return float(np.mean([d.mean() for d in differences])), float(np.sqrt(variance))


def consistency(bf: deepbf.BayesFactor, data: NDArray[Any]) -> tuple[float, float]:
    """Return how far pairs are from antisymmetric, and triples from transitive, at most."""
    pairs = {(i, j): bf.log_bf(data, i, j) for i, j in itertools.permutations(range(len(bf.names)), 2)}
    antisymmetry = max(float(np.abs(pairs[i, j] + pairs[j, i]).max()) for i, j in pairs)
    transitivity = max(
        float(np.abs(pairs[i, j] + pairs[j, k] - pairs[i, k]).max())
        for i, j, k in itertools.permutations(range(len(bf.names)), 3)
    )
    return antisymmetry, transitivity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    study = problems.load("five-counts")
    if study.exact_log_evidence is None:
        raise TypeError("the study has no exact evidences")
    bf = deepbf.fit(study.models, structure=study.structure, seconds=options.seconds, seed=options.seed, progress=False)
    last = len(bf.names) - 1
    tests = [model.simulate(NUM_TEST, seed=TEST_SEED + k).data for k, model in enumerate(study.models)]
    exact = [study.exact_log_evidence(data) for data in tests]
    # Log evidences against the last model; its own is 0.
    estimated = [
        np.stack([bf.log_bf(data, k, last) if k < last else np.zeros(len(data)) for k in range(last + 1)], axis=1)
        for data in tests
    ]
    excess, error = excess_loss(estimated, exact)
    print(f"excess loss {excess:.1e} +- {error:.0e}, {bf.record.num_simulations:,} simulations")
    result: dict[str, Any] = {"excess_loss": excess, "excess_loss_standard_error": error, "pairs": []}
    for i, j in itertools.combinations(range(last + 1), 2):
        gaps = [np.clip(e[:, i] - e[:, j], -CLIP, CLIP) - np.clip(x[:, i] - x[:, j], -CLIP, CLIP)
                for e, x in zip((estimated[i], estimated[j]), (exact[i], exact[j]), strict=True)]  # fmt: skip
        mse = float(np.mean(np.concatenate(gaps) ** 2))
        result["pairs"].append({"model": bf.names[i], "over": bf.names[j], "clipped_mse": mse})
        print(f"  {bf.names[i]:<28} over {bf.names[j]:<28} clipped MSE {mse:.3f}")
    result["antisymmetry"], result["transitivity"] = consistency(bf, np.concatenate([data[:500] for data in tests]))
    print(f"pairs antisymmetric to {result['antisymmetry']:.0e}, transitive to {result['transitivity']:.0e}")
    if options.out is not None:
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
