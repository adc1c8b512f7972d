"""What training leaves behind: the trained ensemble, the record of how it came about, the error with what there was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deepbf._mixed import MixedForm
from deepbf.models import SimulationError
from deepbf.models.hyperparameters import Ranges
from deepbf.networks import AbstractNetwork, AbstractPreparation
from deepbf.standardise import Standardiser
from deepbf.training.structured import Sizes
from deepbf.training.typicality import Typicality


@dataclass(frozen=True)
class TrainingRecord:
    """What training did: plain numbers, kept with the estimator."""

    num_steps: int
    num_simulations: int
    seconds: float
    held_out_loss: float
    stopped: str
    history: list[dict[str, float]] = field(default_factory=list)


@dataclass(frozen=True)
class TrainedEnsemble:
    """The trained map in its three stages, and the record of how it came about.

    `reference` holds the ensemble's mean log odds against the last model at simulations set aside, shape (K models that
    they came from, data sets, K - 1): what a Bayes factor looks like if a model is true. `sizes` has, for each array of
    the data by name, the fewest and the most observations along its axes. Where the number of observations varies,
    `num_obs` has its range, `reference_num_obs` those of the simulations set aside, shape (K, data sets); simulators
    were told the number if `num_obs_asked`. Mixed data are packed by `form`. Data come with the values of the models'
    `hyperparameters`, whose ranges these are, if there are any. `typicality` tells strange data from usual ones; and
    `any_order` whether simulated observations come in any order, so that one that is no accident is strange.
    """

    standardiser: Standardiser
    preparation: AbstractPreparation
    networks: AbstractNetwork
    data_shape: tuple[int, ...]
    record: TrainingRecord
    reference: NDArray[np.float32] | None
    reference_num_obs: NDArray[np.int32] | None = None
    num_obs: tuple[int, int] | None = None
    num_obs_asked: bool = False
    sizes: Mapping[str, Sizes] = field(default_factory=dict)
    form: MixedForm | None = None
    hyperparameters: Ranges = field(default_factory=dict)
    typicality: Typicality | None = None
    any_order: bool = False

    def sized(self, data: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the array whose observations are counted: the data themselves, or one of the parts packed in them."""
        if self.form is None:
            return data
        return self.form.unpack(data)[self.form.names[size_part(self.preparation)]]


class PartialTrainingError(SimulationError):
    """A simulator failed during training; `partial` holds the ensemble trained until then, if any."""

    partial: TrainedEnsemble | None = None


def size_part(preparation: AbstractPreparation) -> int:
    """Return which array's number of observations is that of the data set."""
    return preparation.size_part or 0
