"""A set of competing models with their prior probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.models.hyperparameters import Ranges
from deepbf.models.model import Model


@dataclass(frozen=True)
class ModelSet:
    """Two or more models, their order, and a prior probability for each.

    The order is the direction of every Bayes factor: the first over the second unless asked otherwise.
    """

    models: tuple[Model, ...]
    prior_probs: NDArray[np.float64]

    @classmethod
    def of(cls, models: Sequence[Model], prior_probs: ArrayLike | None = None) -> ModelSet:
        """Return the checked set; equal prior probabilities when none are given."""
        if isinstance(models, Model):
            raise TypeError(f"models must be a list of two or more models; received the one model {models.name!r}.")
        if not isinstance(models, Sequence):
            raise TypeError(f"models must be a list of two or more deepbf.Model; received {models!r}.")
        members = tuple(models)
        for position, model in enumerate(members):
            if not isinstance(model, Model):
                raise TypeError(
                    f"models[{position}] must be a deepbf.Model; received {type(model).__name__}. "
                    "Wrap it: deepbf.Model(name, prior=..., simulator=...)."
                )
        if len(members) < 2:
            raise ValueError(
                f"models needs at least two models to compare; received {len(members)}. Add a competing model."
            )
        names = [model.name for model in members]
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise ValueError(
                f"models need distinct names, or answers could not tell them apart; {repeated[0]!r} appears "
                f"{names.count(repeated[0])} times. Rename one of them."
            )
        first: dict[str, tuple[Model, tuple[float, float]]] = {}
        for model in members:
            for name, ends in (model.hyperparameters or {}).items():
                other, before = first.setdefault(name, (model, ends))
                if ends != before:
                    raise ValueError(
                        f"models share the hyperparameter {name!r} by name, so its range must be the same; "
                        f"{other.name!r} has {before}, {model.name!r} has {ends}. Make them equal, or rename one."
                    )
        return cls(members, _checks.check_probs("prior_probs", prior_probs, names))

    @property
    def names(self) -> tuple[str, ...]:
        """The models' names, in order."""
        return tuple(model.name for model in self.models)

    @property
    def hyperparameters(self) -> Ranges:
        """The ranges of all hyperparameters, by name."""
        found: Ranges = {}
        for model in self.models:
            found |= dict(model.hyperparameters or {})
        return dict(sorted(found.items()))

    def __len__(self) -> int:
        return len(self.models)
