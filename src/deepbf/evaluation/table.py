"""An evaluation as text: what a person reads first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr

from deepbf.evaluation.accuracy import METRICS
from deepbf.evaluation.log_bf_arrays import EXACT, WEIGHTED
from deepbf.evaluation.self_consistency import Check

LABEL_WIDTH = 27
NARROWEST_COLUMN = 20


def written_evaluation(results: xr.Dataset, checks: Sequence[Check]) -> str:
    """Return an evaluation as text: its tables, then its checks.

    What has a bootstrap error is printed with it. Tables that need the exact log Bayes factors, or an observed data
    set, are left out where there are none.
    """
    first, second = results.attrs["first"], results.attrs["second"]
    estimators = [str(name) for name in results["estimator"].values]
    shown = [name for name in estimators if name != EXACT]
    sizes = [int((results["source"] == name).sum()) for name in (first, second)]
    lines = [
        f"Log Bayes factor (natural log) of {first} over {second}, "
        f"at {sizes[0]:,} data sets of {first} and {sizes[1]:,} of {second}"
    ]
    if EXACT in estimators and len(shown) == 1:
        groups = [first, second, WEIGHTED]
        rows = _accuracy_rows(results, [(shown[0], group) for group in groups])
        lines += ["", *aligned_table("Against the exact log BF", groups, rows)]
    elif EXACT in estimators:
        # Several estimators have a column each, in one table over both models and in one under each.
        for group in (WEIGHTED, first, second):
            title = "Against the exact log BF" if group == WEIGHTED else f"Under {group}"
            rows = _accuracy_rows(results, [(name, group) for name in shown])
            lines += ["", *aligned_table(title, shown, rows)]
    lines += ["", *_plain_table(results, estimators)]
    lines += ["", *_decision_tables(results, estimators)]
    if "surprise" in results:
        rows = [("observed log BF", [write_number(float(results["observed_log_bf"].sel(estimator=e))) for e in shown])]
        for model, tail in zip((first, second), ("P(BF <= observed)", "P(BF >= observed)"), strict=True):
            cells = []
            for estimator in shown:
                found = results.sel(estimator=estimator, model=model)
                value, low, high = (float(found[key]) for key in ("surprise", "surprise_low", "surprise_high"))
                cells.append(f"{value:.4f} ({low:.4f} to {high:.4f})")
            rows.append((f"{tail} under {model}", cells))
        lines += ["", *aligned_table("Surprise, 95% intervals", shown, rows)]
    name_width = max(len(check.name) for check in checks)
    estimator_width = max(len(check.estimator) for check in checks) + 2
    lines += ["", "Checks"]
    for check in checks:
        # A single estimator needs no name.
        whose = f"{check.estimator:<{estimator_width}}" if len(shown) > 1 else ""
        lines.append(f"  {whose}{check.name:<{name_width}}  {check.verdict:<8}  {check.detail}")
    return "\n".join(lines)


def write_number(value: float, error: float | None = None) -> str:
    """Return a number with as many digits as its error leaves.

    Examples
    --------
    >>> write_number(0.12345, 0.0123), write_number(3.2e-5, 1.1e-5), write_number(0.5), write_number(float("inf"))
    ('0.123 +- 0.012', '3.2e-05 +- 1.1e-05', '0.500', 'inf')
    """
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else f"{value}"
    if error is None or not math.isfinite(error):
        return f"{value:.3g}" if value and (abs(value) < 1e-3 or abs(value) >= 1e4) else f"{value:.3f}"
    size = max(abs(value), error)
    if size and (size < 1e-3 or size >= 1e5):
        return f"{value:.1e} +- {error:.1e}"
    digits = 3 if error == 0 else int(np.clip(1 - math.floor(math.log10(error)), 0, 6))
    return f"{value:.{digits}f} +- {error:.{digits}f}"


def aligned_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, Sequence[str]]],
    *,
    narrowest: int = NARROWEST_COLUMN,
    label_width: int = LABEL_WIDTH,
) -> list[str]:
    """Return the lines of a table: a title over the labels of the rows, and columns flush right.

    Each row is a label and one cell of text per column. Columns are as wide as their widest cell, and at least
    `narrowest`.

    Examples
    --------
    >>> aligned_table("Metric", ["A"], [("loss", ["0.5"])], narrowest=5, label_width=8)
    ['Metric        A', '  loss      0.5']
    """
    widths = [max(narrowest, len(column), *(len(cells[k]) for _, cells in rows)) for k, column in enumerate(columns)]
    label_width = max(label_width, len(title), *(len(label) + 2 for label, _ in rows))
    lines = [
        f"{title:<{label_width}}  "
        + "  ".join(f"{column:>{width}}" for column, width in zip(columns, widths, strict=True))
    ]
    for label, cells in rows:
        written = "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{'  ' + label:<{label_width}}  {written}")
    return [line.rstrip() for line in lines]


def _accuracy_rows(results: xr.Dataset, cells_of: Sequence[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    rows = []
    for metric, words in METRICS.items():
        cells = [
            write_number(*(float(results[name].sel(estimator=e, group=g)) for name in (metric, f"{metric}_error")))
            for e, g in cells_of
        ]
        rows.append((f"{words} at +-{results.attrs['clip']:.3g}" if metric == "clipped_mse" else words, cells))
    return rows


def _plain_table(results: xr.Dataset, estimators: Sequence[str]) -> list[str]:
    def row(name: str, error: str | None = None, **where: str) -> list[str]:
        cells = []
        for estimator in estimators:
            chosen = results.sel({"estimator": estimator, **where})
            cells.append(write_number(float(chosen[name]), None if error is None else float(chosen[error])))
        return cells

    rows = [
        ("loss on fresh data", row("loss", "loss_error", group=WEIGHTED)),
        (f"prior of {results.attrs['first']}", row("estimated_prior", "estimated_prior_error")),
        ("calibration error", row("calibration_error")),
        ("area under ROC", row("auc", "auc_error")),
        ("balancing log threshold", row("balanced_log_threshold", "balanced_log_threshold_error")),
        ("error rate there", row("balanced_error_rate", "balanced_error_rate_error")),
    ]
    total = results.sizes["dataset"]
    for name, label in (("num_missing", "not answered (nan)"), ("num_infinite", "infinite log BF")):
        if int(results[name].sum()):
            # Metrics leave nan out: an estimator that answers only the easy ones looks good.
            counts = [int(results[name].sel(estimator=estimator).sum()) for estimator in estimators]
            rows.insert(0, (label, [f"{count} of {total}" if count else "0" for count in counts]))
    return aligned_table("Without the exact log BF", estimators, rows)


def _decision_tables(results: xr.Dataset, estimators: Sequence[str]) -> list[str]:
    """Return how often each threshold is passed, then how the data sets fall into Jeffreys' ten categories.

    Of categories there is a table per estimator but the exact one: by model, and by exact category where it is known.
    """
    rows = []
    for threshold in results["threshold"].values:
        for name in results["model"].values:
            cells = []
            for estimator in estimators:
                rate = results["decision_rate"].sel(estimator=estimator, model=name, threshold=threshold)
                right, misleading, undecided = (float(value) for value in rate)
                cells.append(f"{right:.3f}  {misleading:.3f}  {undecided:.3f}")
            rows.append((f"BF {threshold:g}, under {name}", cells))
    lines = aligned_table("Right, misleading, undecided", estimators, rows)
    categories = [str(name) for name in results["category"].values]
    columns = [str(number) for number in range(1, len(categories) + 1)]
    width = max(len(name) for name in categories) + 6
    for estimator in estimators:
        if estimator == EXACT:
            continue
        one = results.sel(estimator=estimator)
        lines += ["", f"Jeffreys' categories, {estimator}, data sets"[: width + 2].ljust(width) + _counts(columns)]
        for name in results["model"].values:
            lines.append(f"{'  under ' + str(name):<{width}}" + _counts(one["category_count"].sel(model=name).values))
        if "category_confusion" in results:
            lines.append("  by the exact one")
        for number, name in enumerate(categories):
            label = f"  {number + 1:>2} {name}"
            counts = one["category_confusion"].sum("model").values[number] if "category_confusion" in results else []
            lines.append(f"{label:<{width}}" + _counts(counts))
    return [line.rstrip() for line in lines]


def _counts(values: Iterable[object]) -> str:
    return "".join(f"{value!s:>7}" for value in values)
