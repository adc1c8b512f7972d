"""How well simulation hides behind training: the wall time of a fit against each of the two alone.

Run: python benchmarks/overlap.py
"""

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np

import deepbf
from deepbf.simulation import CHUNK_SIZE
from deepbf_studies import problems

STEPS = 12000
# Burns processor time in the simulator, for a simulator about as slow as training.
SLOWDOWNS = (0, 3)


class Replay(Executor):
    """Runs nothing: hands back chunks that a recording run drew before, as they were after its transform."""

    def __init__(self, drawn: dict[int, list[np.ndarray]]) -> None:
        self._drawn = drawn

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        _, _, sizes, _ = args
        parts = [self._drawn[index] for index, _ in sizes]
        done: Future[Any] = Future()
        done.set_result([np.concatenate(model_parts) for model_parts in zip(*parts, strict=True)])
        return done


class Record(Executor):
    """Runs each task at once and keeps its chunks."""

    def __init__(self) -> None:
        self.drawn: dict[int, list[np.ndarray]] = {}
        self.seconds = 0.0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        _, _, sizes, _ = args
        begin = time.perf_counter()
        data = fn(*args, **kwargs)
        self.seconds += time.perf_counter() - begin
        for position, (index, _) in enumerate(sizes):
            rows = slice(position * CHUNK_SIZE, (position + 1) * CHUNK_SIZE)
            self.drawn[index] = [model_data[rows].copy() for model_data in data]
        done: Future[Any] = Future()
        done.set_result(data)
        return done


def slowed(model: deepbf.Model, repeats: int) -> deepbf.Model:
    """The same model, its simulator run several times more often."""

    def simulator(rng: np.random.Generator, params: Any) -> Any:
        for _ in range(repeats):
            model.simulator(np.random.default_rng(0), params)
        return model.simulator(rng, params)

    return deepbf.Model(model.name, prior=model.prior, simulator=simulator)


def timed_fit(models: list[deepbf.Model], executor: Executor | None) -> float:
    begin = time.perf_counter()
    deepbf.fit(models, structure="exchangeable", steps=STEPS, seed=1, executor=executor, progress=False)
    return time.perf_counter() - begin


def main() -> None:
    study = problems.load("data-1-i", num_obs=128)
    deepbf.fit(study.models, structure="exchangeable", steps=10, seed=1, progress=False)  # imports and warms up
    print(f"{'simulator':<14} {'simulation':>10} {'training':>9} {'fit':>7} {'fit / max':>9}")
    for repeats in SLOWDOWNS:
        models = [slowed(model, repeats) for model in study.models]
        recorder = Record()
        timed_fit(models, recorder)
        training = timed_fit(models, Replay(recorder.drawn))
        together = timed_fit(models, None)
        longer = max(recorder.seconds, training)
        label = "as it is" if repeats == 0 else f"{repeats + 1} times slower"
        print(f"{label:<14} {recorder.seconds:>8.1f} s {training:>7.1f} s {together:>5.1f} s {together / longer:>9.2f}")


if __name__ == "__main__":
    main()
