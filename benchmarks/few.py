"""Few simulations: the default fit beside four classifiers of scikit-learn on summaries of a few lines.

For each problem, number of simulations in all, and seed: the excess loss over the exact answer (in expectation over
which model a data set came from), the error of log Bayes factors that are not extreme, how often the 95% interval holds
the exact value, and seconds. Numbers are appended to benchmarks/results/few.jsonl as they come; what is there already
is not computed again, so that an interrupted run goes on where it ended. Delete lines to have them computed again.

Run: python benchmarks/few.py                                            all of it, many hours
     python benchmarks/few.py --problems data-3 ar-ma --sizes 512 2000   some of it
     python benchmarks/few.py --seeds 1 2 --methods deepbf               some seeds, and the default fit alone
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from scipy.stats import t as student_t

import deepbf
from deepbf._numerics import cross_entropy, log_evidence
from deepbf.evaluation.accuracy import posterior_divergence
from deepbf_studies import problems

# By name, and the number of observations; None is the problem's own. Problems need two models, one array, and an exact
# answer. Those kept out of development (problems.KEPT_OUT) stay out of this list.
PROBLEMS: dict[str, int | None] = {
    "data-1-i": 128,
    "data-2": 128,
    "data-3": 32,
    "series-event": None,
    "series-season": None,
    "series-variance-change": None,
    "series-hidden-states": None,
    "ar-ma": None,
    "change-counts": None,
    "field": None,
}
# The first is the fewest that `deepbf.fit` takes for two models.
SIZES = (512, 2_000, 20_000, 200_000)
SEEDS = (1, 2, 3, 4, 5)
NUM_TEST = 5_000
TEST_SEED = 1_000_003
# Errors are judged where the exact Bayes factor is below a thousand to one, coverage below a million to one.
NOT_EXTREME = np.log(1e3)
CLIP = np.log(1e6)
# Of the classifiers' probabilities: a forest is often certain, and would have an infinite loss.
LEAST_PROB = 1e-6
RESULTS = Path(__file__).parent / "results" / "few.jsonl"
DEEPBF = "deepbf"

Array = NDArray[np.float64]
Line = dict[str, Any]


def summarise(data: NDArray[Any], structure: str) -> Array:
    """Return the summaries that a user would write down first, the most telling columns in front."""
    values = np.asarray(data, np.float64)
    if structure == "exchangeable":
        return summarise_scalars(values) if values.ndim == 2 else summarise_vectors(values)
    if structure == "series":
        columns = values.reshape(*values.shape[:2], -1)
        return np.concatenate([summarise_series(columns[:, :, k]) for k in range(columns.shape[2])], axis=1)
    return values.reshape(len(values), -1)


def summarise_scalars(values: Array) -> Array:
    """Return mean, log variance, skewness, kurtosis and the values in increasing order, or 32 quantiles of them."""
    mean, spread = values.mean(axis=1, keepdims=True), values.std(axis=1, keepdims=True)
    scaled = (values - mean) / np.maximum(spread, 1e-9)
    moments = [mean, np.log(spread**2 + 1e-6), *((scaled**k).mean(axis=1, keepdims=True) for k in (3, 4))]
    few = values.shape[1] <= 32
    ordered = np.sort(values, axis=1) if few else np.quantile(values, np.linspace(0, 1, 32), axis=1).T
    return np.concatenate([*moments, ordered], axis=1)


def summarise_vectors(values: Array) -> Array:
    """Return means of the columns, and of all their products."""
    first, second = np.triu_indices(values.shape[2])
    return np.concatenate([values.mean(axis=1), (values[:, :, first] * values[:, :, second]).mean(axis=1)], axis=1)


def summarise_series(values: Array) -> Array:
    """Return mean, variance, ten autocorrelations, and cumulative sums at 20 even places."""
    centred = values - values.mean(axis=1, keepdims=True)
    variance = np.maximum((centred**2).mean(axis=1), 1e-12)
    length = values.shape[1]
    lagged = [(centred[:, lag:] * centred[:, :-lag]).sum(axis=1) / (length * variance) for lag in range(1, 11)]
    places = np.linspace(0, length - 1, 21).round().astype(int)[1:]
    sums = np.cumsum(values, axis=1)[:, places]
    return np.concatenate([np.stack([values.mean(axis=1), variance, *lagged], axis=1), sums], axis=1)


def classifier(name: str, num_rows: int, num_columns: int, seed: int) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    if name == "forest":
        # Trees of more rows would take hours for the largest size.
        return RandomForestClassifier(200, min_samples_leaf=5, max_samples=min(1.0, 5e4 / num_rows), random_state=seed)
    if name == "boosting":
        return HistGradientBoostingClassifier(random_state=seed)
    if name == "quadratic":
        leading = list(range(min(20, num_columns)))
        products = ColumnTransformer(
            [("products", PolynomialFeatures(2, include_bias=False), leading)], remainder="passthrough"
        )
        return make_pipeline(StandardScaler(), products, LogisticRegression(max_iter=1000))
    return make_pipeline(StandardScaler(), MLPClassifier((64, 64), early_stopping=True, random_state=seed))


CLASSIFIERS = ("forest", "boosting", "quadratic", "mlp")
METHODS = (DEEPBF, *CLASSIFIERS)


def classify(name: str, study: Any, size: int, seed: int, tests: list[NDArray[Any]]) -> list[Array]:
    """Return log Bayes factors by a classifier, an array for the test data of each model."""
    # Seeds of their own, lest the models share their random numbers.
    data = [model.simulate(size // 2, seed=seed + 1000 * k).data for k, model in enumerate(study.models)]
    rows = np.concatenate([summarise(one, study.structure) for one in data])
    fitted = classifier(name, len(rows), rows.shape[1], seed)
    with warnings.catch_warnings():
        # Users see that scikit-learn would like more iterations, and go on.
        warnings.simplefilter("ignore")
        fitted.fit(rows, np.repeat([0, 1], size // 2))
    probs = [fitted.predict_proba(summarise(test, study.structure))[:, 0] for test in tests]
    return [logit(np.clip(prob, LEAST_PROB, 1 - LEAST_PROB)) for prob in probs]


def measure(name: str, size: int, seed: int, method: str) -> Line:
    """Fit by one method, and compare with the exact answer on fresh data sets of each model."""
    study = problems.load(name, num_obs=PROBLEMS.get(name))
    tests = [model.simulate(NUM_TEST, seed=TEST_SEED + k).data for k, model in enumerate(study.models)]
    exacts = [study.exact_log_bf(test) for test in tests]
    line: Line = {"problem": name, "num_obs": study.num_obs, "size": size, "seed": seed, "method": method}
    begin = time.monotonic()
    if method == DEEPBF:
        bf = deepbf.fit(
            study.models, structure=study.structure, covariates=study.covariates, num_simulations=size, seed=seed,
            progress=False,
        )  # fmt: skip
        line["seconds"] = time.monotonic() - begin
        members = [bf.log_bf_members(test) for test in tests]
        line["coverage"] = coverage(np.concatenate(members, axis=1), np.concatenate(exacts))
        estimates = [log_bf.mean(axis=0) for log_bf in members]
    else:
        estimates = classify(method, study, size, seed, tests)
        line["seconds"] = time.monotonic() - begin
    estimate, exact = np.concatenate(estimates), np.concatenate(exacts)
    middle = np.abs(exact) < NOT_EXTREME
    return line | {
        "expected_kl": float(posterior_divergence(estimate, exact).mean()),
        "excess_loss": excess_loss(estimates, exacts),
        "rmse": float(np.sqrt(np.mean((estimate - exact)[middle] ** 2))),
    }


def excess_loss(estimates: list[Array], exacts: list[Array]) -> float:
    """Mean cross-entropy minus that of the exact Bayes factor, by the labels that the data sets have."""
    pairs = enumerate(zip(estimates, exacts, strict=True))
    losses = [[cross_entropy(log_evidence(one[:, None]), label).mean() for one in both] for label, both in pairs]
    return float(np.mean([estimated - exact for estimated, exact in losses]))


def coverage(members: Array, exact: Array) -> float:
    """How often the 95% interval from the members' spread holds the exact value, where that is within the clip."""
    half_width = student_t.ppf(0.975, len(members) - 1) * members.std(axis=0, ddof=1)
    covered = np.abs(members.mean(axis=0) - exact) <= half_width
    return float(covered[np.abs(exact) < CLIP].mean())


def cell_of(line: Line) -> tuple[str, int, int, str]:
    return line["problem"], line["size"], line["seed"], line["method"]


def read_lines() -> list[Line]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def print_table(lines: Iterable[Line]) -> None:
    """Print means over seeds: excess losses of all methods, and their ratio to the best classifier's."""
    by_case: dict[tuple[str, int], dict[str, list[Line]]] = {}
    for line in lines:
        by_case.setdefault((line["problem"], line["size"]), {}).setdefault(line["method"], []).append(line)
    print(f"{'problem':<23} {'size':>7} " + " ".join(f"{method:>9}" for method in METHODS)
          + f" {'to best':>7} {'RMSE':>6} {'coverage':>8} {'seconds':>7}")  # fmt: skip
    for (problem, size), methods in sorted(by_case.items()):

        def mean(method: str, field: str, methods: dict[str, list[Line]] = methods) -> float:
            return float(np.mean([line[field] for line in methods[method]])) if method in methods else np.nan

        losses = [mean(method, "expected_kl") for method in METHODS]
        best = np.nanmin(losses[1:]) if np.isfinite(losses[1:]).any() else np.nan
        print(f"{problem:<23} {size:>7,} " + " ".join(f"{loss:>9.1e}" for loss in losses)
              + f" {losses[0] / best:>7.2f} {mean(DEEPBF, 'rmse'):>6.3f} {mean(DEEPBF, 'coverage'):>8.3f}"
              + f" {mean(DEEPBF, 'seconds'):>7.1f}")  # fmt: skip


def in_own_process(function: Callable[..., Line], *arguments: Any) -> Line:
    """Return the function's result from a fresh process, so that nothing is compiled or cached before the clock."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=problems.names(), default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    done = {cell_of(line) for line in read_lines()}
    RESULTS.parent.mkdir(exist_ok=True)
    # Small sizes first: they say most for the time they take.
    cells = [
        (name, size, seed, method)
        for size in options.sizes
        for seed in options.seeds
        for name in options.problems
        for method in options.methods
    ]
    for cell in cells:
        if cell in done:
            continue
        line = in_own_process(measure, *cell)
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(*cell, f"excess loss {line['expected_kl']:.1e}, {line['seconds']:.1f} s", flush=True)
    chosen = set(cells)
    print_table(line for line in read_lines() if cell_of(line) in chosen)


if __name__ == "__main__":
    main()
