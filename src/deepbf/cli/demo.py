"""`deepbf demo`: the whole way from two simulators to an answer, on the built-in example."""

from __future__ import annotations

import json
from pathlib import Path

import typer


def demo(
    seconds: float = typer.Option(60.0, help="How long to train, in seconds of wall time."),
    steps: int | None = typer.Option(None, help="Train for so many steps instead: the same answer on every machine."),
    seed: int = typer.Option(1, help="Seed of the simulations and the networks."),
    out: Path | None = typer.Option(None, help="Also save the trained estimator to this file."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object for machines, no progress bar."),
) -> None:
    """Train on the built-in example and compare the answer with the exact one.

    128 counts: negative binomial or Poisson? The observed counts ship with deepbf; they were simulated from the
    negative binomial model. This comparison has an exact Bayes factor, so you can see how close the estimate comes.
    """
    import deepbf
    from deepbf.example import counts_example, observed_counts

    study = counts_example()
    observed = observed_counts()
    if not as_json:
        first = " ".join(str(count) for count in observed[:20].astype(int))
        typer.echo(f"{study.title}\n{len(observed)} observed counts: {first} ...")
        length = f"{seconds:g} s" if steps is None else f"{steps:,} steps"
        typer.echo(f"Training on simulations of both models for {length}. Ctrl-C stops early.\n")
    bf = deepbf.fit(
        study.models,
        structure=study.structure,
        seconds=seconds if steps is None else None,
        steps=steps,
        seed=seed,
        progress=not as_json,
    )
    answer = bf.compare(observed)
    exact = float(study.exact_log_bf(observed[None])[0])
    if out is not None:
        bf.save(out)
    if as_json:
        record = bf.record
        training = {"steps": record.num_steps, "simulations": record.num_simulations, "seconds": record.seconds}
        typer.echo(json.dumps({**answer.to_dict(), "exact_log_bf": exact, "training": training}, indent=2))
        return
    typer.echo(f"\n{answer}")
    typer.echo(f"  {'exact':<17} {exact:.2f}, log Bayes factor of {answer.model} over {answer.against}, closed form")
    typer.echo(f"\n{bf}")
    if out is not None:
        typer.echo(f"Saved to {out}. Ask it about other data with: deepbf compare {out} observed.csv")
