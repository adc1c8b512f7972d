"""Runs the first Python block of README.md as it stands there, prints its answer, and draws the picture of that page.

The picture shows log Bayes factors of simulations that training did not use, under each model, and the observed one.

Run from the root of the repository: python benchmarks/front_page.py
"""

import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

import deepbf

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "front-page.png"
# The fewest there can be: the picture shows no errors.
NUM_REPLICATES = 2
# The long tail of the first model would squeeze the rest. What is clipped heaps up at the clip, beyond what is shown.
SHOWN = (-30, 40)
CLIP = 60.0


def draw(bf: deepbf.BayesFactor, answer: deepbf.Answer, out: Path) -> None:
    """Write the picture: densities of the log Bayes factor under each model, and where the observed one lies."""
    reference = bf.reference_log_bf()
    if reference is None:
        raise SystemExit("the estimator holds no simulations to compare with; was it fitted with hyperparameters?")
    evaluation = deepbf.evaluation.measure(
        {"simulated": reference}, names=bf.names, clip=CLIP, num_replicates=NUM_REPLICATES
    )
    figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
    deepbf.plots.densities(evaluation, observed=answer.log_bf, ax=axes)
    axes.set_xscale("linear")
    axes.set(xlim=SHOWN, xlabel=f"log Bayes factor, {bf.names[0]} over {bf.names[1]}")
    figure.savefig(out, dpi=110)


def main() -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    defined: dict[str, Any] = {}
    exec(examples[0], defined)
    draw(defined["bf"], defined["answer"], PICTURE)


if __name__ == "__main__":
    main()
