"""The influenza study drawn: the outbreak among predictions, the answer beside its checks, and what it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deepbf import plots
from deepbf._jeffreys import strength_on_jeffreys_scale
from deepbf.answer import ATYPICAL, written_list
from deepbf.criticism import StatisticCheck
from deepbf.evaluation import Evaluation
from deepbf.plots.axes import Handle, legend_beside
from deepbf.plots.styles import BLACK, GUIDE, SKY
from deepbf_studies.paper.influenza import COMPARED, plan
from deepbf_studies.paper.target import Drawing, Results, Target, paragraph
from deepbf_studies.problems.influenza import IN_BED, VARYING

FIRST, SECOND = COMPARED
ALL = (*COMPARED, VARYING)
# Estimators trained besides the comparison itself, by their labels in the plan.
OTHER_CHOICES = {
    "finer": f"steps half as long, {FIRST} over {SECOND}",
    "varying": "constant contact over contact that varies by day",
}
# Central ranges of the predictions, from the widest to the median.
BANDS = ((0.025, 0.975), (0.25, 0.75))
PARAMS_IN_WORDS = {
    "reproduction": "boys infected by one",
    "infectious_days": "days infectious, up",
    "bed_days": "days in bed",
    "share_to_bed": "share who take to bed",
    "first_cases": "further first cases",
    "latent_days": "days latent",
    "daily_variation": "variation by day",
}


def draw(results: Results) -> Drawing:
    """Return the figures, the tables and the verdict."""
    numbers = _numbers_of(results)
    text = "\n\n".join(
        [
            _answer_text(numbers),
            _evaluation_text(numbers),
            _parameters_text(numbers),
            _criticism_text(numbers),
            _sensitivity_text(numbers),
            _verdict_text(numbers),
        ]
    )
    figures = {"": _overview(results, numbers), "checks": _checks_figure(results)}
    return Drawing(text, figures, numbers)


# Numbers


def _numbers_of(results: Results) -> dict[str, Any]:
    """Return everything that is said, as plain data."""
    repeats = [results[label] for label in results if str(label).startswith("trained")]
    criticised = [name for name in ALL if f"criticised {name}" in results]
    log_bfs = [float(one["answer"][0]) for one in repeats]
    return {
        "direction": f"{FIRST} over {SECOND}, natural log",
        "trained": [_answer_numbers(one) for one in repeats],
        "mean_log_bf": float(np.mean(log_bfs)),
        "spread_over_seeds": float(np.std(log_bfs, ddof=1)) if len(log_bfs) > 1 else None,
        "abc": {name: float(results["abc"][name]) for name in ("log_bf", "error")},
        "particles": _particle_numbers(results),
        "posterior": {name: _posterior_numbers(results, name) for name in criticised},
        "criticism": {name: _check_numbers(results[f"criticised {name}"], name) for name in criticised},
        "criticism_by_particles": {name: _check_numbers(results[f"filtered {name}"], name) for name in ALL},
        "other_choices": {label: _answer_numbers(results[label]) for label in OTHER_CHOICES if label in results},
    }


def _answer_numbers(one: xr.Dataset) -> dict[str, Any]:
    """Return one estimator's answer and evaluation."""
    evaluation = Evaluation(one)
    log_bf, error, low, high = (float(value) for value in one["answer"])
    areas = {
        what: {name: [float(v) for v in one[f"answer_{what}"][k]] for k, name in enumerate(evaluation.names)}
        for what in ("surprise", "support")
    }
    return {
        "models": list(evaluation.names),
        "log_bf": log_bf,
        "error": error,
        "interval": [low, high],
        "other_reading": {"log_bf": float(one["other_reading"][0]), "error": float(one["other_reading"][1])},
        "members": [float(value) for value in one["members"]],
        "posterior_probs": [float(value) for value in one["answer_probs"]],
        **areas,
        "auc": evaluation.value("auc"),
        "loss": evaluation.value("loss"),
        "loss_error": evaluation.value("loss_error"),
        "calibration_error": evaluation.value("calibration_error"),
        "calibration_p_value": evaluation.value("calibration_p_value"),
        "estimated_prior": evaluation.value("estimated_prior"),
        "estimated_prior_error": evaluation.value("estimated_prior_error"),
        "checks": [[check.name, check.verdict, check.detail] for check in evaluation.checks],
    }


def _particle_numbers(results: Results) -> dict[str, Any]:
    """Return log evidences by particles, and the log Bayes factors that they give."""
    evidence = {name: _evidence_numbers(results[f"filtered {name}"]) for name in ALL}
    found = {
        "evidence": evidence,
        "log_bf": _over(evidence[FIRST], evidence[SECOND]),
        "constant_over_varying": _over(evidence[FIRST], evidence[VARYING]),
    }
    if f"reread {FIRST}" in results:
        first, second = (_evidence_numbers(results[f"reread {name}"]) for name in COMPARED)
        found["other_reading"] = _over(first, second)
    return found


def _evidence_numbers(one: xr.Dataset) -> dict[str, float]:
    """Return a log evidence with its error."""
    return {part: float(one[part]) for part in ("log_evidence", "error", "num_effective")}


def _over(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    """Return the log Bayes factor of two evidences, with its error."""
    return {
        "log_bf": first["log_evidence"] - second["log_evidence"],
        "error": float(np.hypot(first["error"], second["error"])),
    }


def _posterior_numbers(results: Results, name: str) -> dict[str, Any]:
    """Return 2.5%, 50% and 97.5% of each parameter, by the trained sampler and by particles."""
    ways = {"sampler": results[f"criticised {name}"], "particles": results[f"filtered {name}"]}
    return {
        str(param): {
            way: np.quantile(one["posterior"].sel(parameter=param), [0.025, 0.5, 0.975]).tolist()
            for way, one in ways.items()
        }
        for param in ways["sampler"]["parameter"].values
    }


def _check_numbers(one: xr.Dataset, name: str) -> list[dict[str, Any]]:
    """Return where each statistic of the outbreak stands among a model's predictions."""
    return [check.to_dict() for check in _statistic_checks(one, name)]


def _statistic_checks(one: xr.Dataset, name: str) -> list[StatisticCheck]:
    """Return each statistic at the outbreak and at a model's predictions."""
    return [
        StatisticCheck(
            str(what),
            float(one["statistic_observed"].sel(statistic=what)),
            one["statistic_draws"].sel(statistic=what).values,
            name,
        )
        for what in one["statistic"].values
    ]


# Text


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text: the first column to the left, the others to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *others = (
            cell.rjust(width) if k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *others]).rstrip())
    return "\n".join(lines)


def _written(value: float, error: float) -> str:
    """Return a log Bayes factor with its error."""
    return f"{value:.2f} +- {error:.2f}"


def _answer_text(numbers: dict[str, Any]) -> str:
    """Return the log Bayes factor at the outbreak, by every way there is."""
    rows = [("log Bayes factor at the outbreak", f"{FIRST} over {SECOND}")]
    for seed, one in enumerate(numbers["trained"], start=1):
        rows.append((f"  deepbf, seed {seed}", _written(one["log_bf"], one["error"])))
    rows.append(("  deepbf, mean of all seeds", f"{numbers['mean_log_bf']:.2f}"))
    rows.append(("  ABC on square roots", _written(**_for_writing(numbers["abc"]))))
    rows.append(("  particles, exact but for their error", _written(**_for_writing(numbers["particles"]["log_bf"]))))
    fewest = min(one["num_effective"] for one in numbers["particles"]["evidence"].values())
    first = numbers["trained"][0]
    probs = ", ".join(f"{name} {prob:.2f}" for name, prob in zip(COMPARED, first["posterior_probs"], strict=True))
    lines = [
        "Influenza in a boarding school of 763 boys: boys in bed on 14 days of 1978 (BMJ, 4 March 1978, p. 587)",
        "",
        table(rows),
        "",
        f"  Particles: {fewest:.0f} effective draws of the parameters, or more, behind each evidence.",
        f"  Probabilities, seed 1, equal before the data: {probs}.",
    ]
    for what, words in (("surprise", "a Bayes factor as much against it"), ("support", "data as strange")):
        said = ", ".join(f"{first[what][name][0]:.3f} if {name}" for name in COMPARED)
        lines.append(f"  Probability of {words}: {said}.")
    return "\n".join(lines)


def _for_writing(found: dict[str, float]) -> dict[str, float]:
    """Return value and error by the names that `_written` has."""
    return {"value": found["log_bf"], "error": found["error"]}


def _evaluation_text(numbers: dict[str, Any]) -> str:
    """Return how the estimators fare on fresh simulations."""
    rows = [("On fresh simulations", "area under ROC", "loss", "calibration error", "prior recovered (0.5)")]
    for seed, one in enumerate(numbers["trained"], start=1):
        rows.append(
            (
                f"  deepbf, seed {seed}",
                f"{one['auc']:.3f}",
                f"{one['loss']:.4f}",
                f"{one['calibration_error']:.3f} (p = {one['calibration_p_value']:.2f})",
                f"{one['estimated_prior']:.3f} +- {one['estimated_prior_error']:.3f}",
            )
        )
    failing = [
        f"  seed {seed}: {name}, {detail}"
        for seed, one in enumerate(numbers["trained"], start=1)
        for name, verdict, detail in one["checks"]
        if verdict == "fails"
    ]
    return "\n".join([table(rows), *(failing or ["  No check of what any right Bayes factor satisfies fails."])])


def _parameters_text(numbers: dict[str, Any]) -> str:
    """Return what each model says about the outbreak, by two samplers."""
    rows: list[Sequence[str]] = [("Parameters: median (95%)", "trained sampler", "particles")]
    for name, params in numbers["posterior"].items():
        rows.append((f"  {name}", "", ""))
        for param, found in params.items():
            cells = [
                f"{found[way][1]:.2f} ({found[way][0]:.2f} to {found[way][2]:.2f})" for way in ("sampler", "particles")
            ]
            rows.append((f"    {PARAMS_IN_WORDS[param]}", *cells))
    return table(rows)


def _criticism_text(numbers: dict[str, Any]) -> str:
    """Return the predictive checks as tables, by the trained samplers and by particles."""
    tables = []
    for key, way in (("criticism", "trained samplers"), ("criticism_by_particles", "particles")):
        rows: list[Sequence[str]] = [(f"Predictions, 95%: {way}", "observed", *numbers[key])]
        for places in zip(*numbers[key].values(), strict=True):
            cells = [f"{one['low']:.4g} to {one['high']:.4g}, {one['verdict']}" for one in places]
            rows.append((f"  {places[0]['name']}", f"{places[0]['observed']:.4g}", *cells))
        tables.append(table(rows))
    return "\n\n".join(tables)


def _sensitivity_text(numbers: dict[str, Any]) -> str:
    """Return what other choices do to the answer."""
    rows = [("Other choices", "log Bayes factor")]
    for label, one in numbers["other_choices"].items():
        rows.append((f"  {OTHER_CHOICES[label]}", _written(one["log_bf"], one["error"])))
    particles = numbers["particles"]
    rows.append(
        (f"  {OTHER_CHOICES['varying']}, by particles", _written(**_for_writing(particles["constant_over_varying"])))
    )
    reread = numbers["trained"][0]["other_reading"]
    rows.append(("  another reading of the graph, deepbf, seed 1", _written(**_for_writing(reread))))
    if "other_reading" in particles:
        rows.append(
            ("  another reading of the graph, by particles", _written(**_for_writing(particles["other_reading"])))
        )
    return table(rows)


def _verdict_text(numbers: dict[str, Any]) -> str:
    """Return what it comes to, in sentences."""
    mean, exact = numbers["mean_log_bf"], numbers["particles"]["log_bf"]
    favoured, other = (FIRST, SECOND) if mean > 0 else (SECOND, FIRST)
    infected = {name: numbers["posterior"][name]["reproduction"]["particles"][1] for name in COMPARED}
    varying = numbers["particles"]["constant_over_varying"]["log_bf"]
    better, worse = ("varies by day", "is constant") if varying < 0 else ("is constant", "varies by day")
    strange = [name for name in COMPARED if numbers["trained"][0]["support"][name][0] <= ATYPICAL]
    said = [
        f"Verdict: {favoured} over {other} by {np.exp(abs(mean)):.1f} to 1, {strength_on_jeffreys_scale(mean)}; by "
        f"particles, without a network, log Bayes factor {exact['log_bf']:.2f} +- {exact['error']:.2f}.",
        f"The models mean different things: one boy infects {infected[FIRST]:.1f} others with {FIRST}, "
        f"{infected[SECOND]:.1f} with {SECOND}.",
        f"Data as strange are rare under {written_list(strange)}." if strange else "The data are typical of both.",
        *(_against(name, found) for name, found in numbers["criticism_by_particles"].items()),
        "A Bayes factor between two models does not say that either is good: without a latent stage, particles prefer "
        f"contact that {better} to contact that {worse} by {np.exp(abs(varying)):.0f} to 1.",
    ]
    return "\n".join(map(paragraph, said))


def _against(name: str, checks: Sequence[dict[str, Any]]) -> str:
    """Return which statistics of the data a model does not predict."""
    found = [f"{one['name']} ({one['verdict']})" for one in checks if one["verdict"] != "as predicted"]
    return f"Against {name}: {', '.join(found)}." if found else f"No statistic here speaks against {name}."


# Figures


def _overview(results: Results, numbers: dict[str, Any]) -> Figure:
    """Return the outbreak among predictions of each model, the answer, and its reliability."""
    figure = Figure(figsize=(14.5, 9.5), layout="constrained")
    axes = figure.subplots(2, 2)
    for ax, name in zip(axes[0], COMPARED, strict=True):
        _draw_bands(ax, results[f"criticised {name}"], results[f"filtered {name}"], name)
    first = results["trained 1"]
    exact = numbers["particles"]["log_bf"]["log_bf"]
    repeats = [one["log_bf"] for one in numbers["trained"]]
    plots.densities(first, observed=repeats[0], repeats=repeats, exact_observed=exact, ax=axes[1, 0])
    axes[1, 0].set_title("Where the outbreak falls: log Bayes factors of fresh simulations")
    plots.reliability(first, ax=axes[1, 1])
    figure.suptitle("Influenza in a boarding school, 1978: no latent stage or one?", fontsize="x-large")
    return figure


def _draw_bands(ax: Axes, one: xr.Dataset, by_particles: xr.Dataset, name: str) -> None:
    """Draw the courses that a model predicts, having seen the outbreak, by two samplers, and the outbreak itself."""
    days = np.arange(1, len(IN_BED) + 1)
    handles: list[Handle] = []
    for (low, high), alpha, words in zip(BANDS, (0.35, 0.6), ("95%", "50%"), strict=True):
        ends = np.quantile(one["predicted"], [low, high], axis=0)
        label = f"{words} of predictions\neach day, trained sampler"
        handles.append(ax.fill_between(days, *ends, color=SKY, alpha=alpha, linewidth=0, label=label))
    ends = np.quantile(by_particles["predicted"], BANDS[0], axis=0)
    lines = [ax.plot(days, end, color=GUIDE, linestyle=(0, (4, 2)), linewidth=1.3)[0] for end in ends]
    lines[0].set_label("95% of predictions\neach day, particles")
    [seen] = ax.plot(days, IN_BED, color=BLACK, marker="o", linewidth=1.2, label="observed")
    ax.set(title=f"{name}: predictions after the data", xlabel="day (the first is 22 January)", ylabel="boys in bed")
    ax.set_xticks(days)
    ax.set_ylim(bottom=0)
    legend_beside(ax, [seen, *handles, lines[0]])


def _checks_figure(results: Results) -> Figure:
    """Return every statistic at the outbreak among the predictions of each of the compared models."""
    columns = [_statistic_checks(results[f"criticised {name}"], name) for name in COMPARED]
    figure = Figure(figsize=(14.0, 2.6 * len(columns[0])), layout="constrained")
    axes = figure.subplots(len(columns[0]), len(columns), squeeze=False)
    for column, checks in enumerate(columns):
        for row, check in enumerate(checks):
            plots.predictive_check(check, ax=axes[row, column])
        axes[0, column].set_title(COMPARED[column])
    return figure


TARGETS = (
    Target(
        name="influenza",
        title="Influenza in a boarding school, 1978: a latent stage or none, with criticism and an independent check",
        paper="",
        plan=plan,
        draw=draw,
    ),
)
