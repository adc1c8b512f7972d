"""How long to train: by seconds, by steps, or by a fixed number of simulations."""

from __future__ import annotations

from dataclasses import dataclass

from deepbf import _checks
from deepbf.simulation import CHUNK_SIZE

DEFAULT_SECONDS = 60.0


@dataclass(frozen=True)
class Budget:
    """Exactly one of the three is set; `steps` may accompany `num_simulations` to say how long to reuse them."""

    seconds: float | None = None
    steps: int | None = None
    num_simulations: int | None = None

    @property
    def all_fresh(self) -> bool:
        """Whether every step takes simulations that no step took before."""
        return self.seconds is None and self.num_simulations is None

    @classmethod
    def of(cls, seconds: float | None, steps: int | None, num_simulations: int | None, *, num_models: int) -> Budget:
        """Return the checked budget; 60 seconds when none is given."""
        given = {"seconds": seconds, "steps": steps, "num_simulations": num_simulations}
        chosen = [f"{name}={value!r}" for name, value in given.items() if value is not None]
        if len(chosen) > 1:
            raise ValueError(
                f"pass exactly one budget: seconds, steps or num_simulations; received {' and '.join(chosen)}. "
                "Remove all but one."
            )
        if steps is not None:
            return cls(steps=_checks.check_count("steps", steps))
        if num_simulations is not None:
            # Two chunks: one to train on, one to judge by.
            least = 2 * CHUNK_SIZE * num_models
            return cls(num_simulations=_checks.check_count("num_simulations", num_simulations, least=least))
        return cls(seconds=_checks.check_positive("seconds", DEFAULT_SECONDS if seconds is None else seconds))
