"""Training near the observed data against a global estimator of as many simulations: error against the exact answer.

Data 1 (i), n = 128. Observed: of each model, in the order drawn, the first 13 with an exact |log BF| of at most 8 and
the first 7 with one between 8 and log 1e6, beyond which no decision depends on the number.

The global estimator gets all simulations. For the tailored answers another one gets half of them, shared by all
observed data sets but counted in full for each; the pilot and the screening of each data set get the other half.

Run: python benchmarks/tailoring.py                      about 5 minutes
     python benchmarks/tailoring.py --num-each 4         fewer observed data sets
     python benchmarks/tailoring.py --out results.json   and write the numbers
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import deepbf
from deepbf_studies import problems

NUM_OBS = 128
NUM_DRAWN = 2000
OBSERVED_SEED = 20_231_205
STRONG = 8.0
CLIP = float(np.log(1e6))
# Of the observed data sets of a model.
SHARE_STRONG = 0.35


def choose_observed(study: Any, num_each: int) -> tuple[NDArray[np.generic], NDArray[np.float64]]:
    """Observed data sets and their exact log Bayes factors, by the rule above."""
    num_strong = round(SHARE_STRONG * num_each)
    chosen = []
    for k, model in enumerate(study.models):
        data = model.simulate(NUM_DRAWN, seed=OBSERVED_SEED + k).data
        size = np.abs(study.exact_log_bf(data))
        weak = np.flatnonzero(size <= STRONG)[: num_each - num_strong]
        strong = np.flatnonzero((size > STRONG) & (size <= CLIP))[:num_strong]
        chosen.append(data[np.sort(np.concatenate([weak, strong]))])
    observed = np.concatenate(chosen)
    return observed, study.exact_log_bf(observed)


def summarised(name: str, log_bf: NDArray[np.float64], exact: NDArray[np.float64]) -> dict[str, Any]:
    error = np.abs(log_bf - exact)
    strong = np.abs(exact) > STRONG
    return {
        "estimator": name,
        "mean_absolute_error": float(error.mean()),
        "mean_absolute_error_up_to_8": float(error[~strong].mean()),
        "mean_absolute_error_beyond_8": float(error[strong].mean()),
        "standard_error_beyond_8": float(error[strong].std(ddof=1) / np.sqrt(strong.sum())),
    }


def measure(num_each: int, steps: int, seed: int) -> dict[str, Any]:
    study = problems.load("data-1-i", num_obs=NUM_OBS)
    observed, exact = choose_observed(study, num_each)
    whole, half = (
        deepbf.fit(study.models, structure=study.structure, steps=number, seed=seed, progress=False)
        for number in (steps, steps // 2)
    )
    num_simulations = whole.record.num_simulations - half.record.num_simulations
    begin = time.monotonic()
    answers = []
    for index, data in enumerate(observed):
        answer = deepbf.fit_tailored(
            study.models, data, estimator=half, num_simulations=num_simulations, seed=seed + index, progress=False
        )
        assert half.record.num_simulations + answer.num_simulations <= whole.record.num_simulations
        answers.append(answer)
        print(f"exact {exact[index]:7.2f}  tailored {answer.log_bf:7.2f} +- {answer.error:.2f}  "
              f"global {whole.log_bf(data)[0]:7.2f}  near {answer.num_near}"
              f"{'' if answer.tailored else '  not tailored'}", flush=True)  # fmt: skip
    seconds = (time.monotonic() - begin) / len(observed)
    tailored = np.array([answer.log_bf for answer in answers])
    inside = np.array([answer.interval[0] <= x <= answer.interval[1] for answer, x in zip(answers, exact, strict=True)])
    extrapolates = np.array([bool(answer.warnings) for answer in answers])
    return {
        "num_observed": len(observed),
        "num_beyond_8": int((np.abs(exact) > STRONG).sum()),
        "total_simulations_each": whole.record.num_simulations,
        "of_which_shared_global": half.record.num_simulations,
        "seconds_a_tailored_answer": seconds,
        "num_tailored": int(sum(answer.tailored for answer in answers)),
        "num_with_a_warning": int(extrapolates.sum()),
        "interval_coverage": float(inside.mean()),
        "interval_coverage_without_a_warning": float(inside[~extrapolates].mean()),
        "rows": [
            summarised("tailored", tailored, exact),
            summarised("global, all simulations", whole.log_bf(observed), exact),
            summarised("global, half of them", half.log_bf(observed), exact),
        ],
        "exact": exact.tolist(),
        "tailored": tailored.tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-each", type=int, default=20, help="observed data sets of each model")
    parser.add_argument("--steps", type=int, default=4000, help="of the global estimator, each of 512 simulations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    result = {"seed": options.seed, **measure(options.num_each, options.steps, options.seed)}
    print(f"{result['num_observed']} observed data sets, {result['num_beyond_8']} beyond 8; "
          f"{result['total_simulations_each']:,} simulations each, {result['of_which_shared_global']:,} shared; "
          f"{result['seconds_a_tailored_answer']:.1f} s a tailored answer")  # fmt: skip
    print(f"{'mean absolute error of log BF':<32} {'all':>6} {'up to 8':>8} {'beyond 8':>9}")
    for row in result["rows"]:
        print(f"{row['estimator']:<32} {row['mean_absolute_error']:>6.3f} {row['mean_absolute_error_up_to_8']:>8.3f} "
              f"{row['mean_absolute_error_beyond_8']:>9.3f}")  # fmt: skip
    print(f"95% intervals hold the exact value: {result['interval_coverage']:.2f} of all, "
          f"{result['interval_coverage_without_a_warning']:.2f} of those without a warning "
          f"({result['num_with_a_warning']} have one)")  # fmt: skip
    if options.out is not None:
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
