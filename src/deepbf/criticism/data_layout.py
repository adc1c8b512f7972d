"""How the data sets of one model are laid out, which is what observed ones are checked against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deepbf._mixed import DATA, MixedForm
from deepbf.criticism.conditioning import without_parameters
from deepbf.criticism.joint_model import PARAMETERS
from deepbf.estimator.observed_data import Data, check_data
from deepbf.models import ModelSet
from deepbf.models.hyperparameters import Ranges
from deepbf.networks import Structure
from deepbf.simulation import NumObsRange, simulate_chunks
from deepbf.training import TrainedEnsemble
from deepbf.training.structured import WHOLE, Sizes, arrays_of, check_arrays, count_present, find_form, sizes_of

# Data sets that show what a model without parameters simulates.
NUM_SHOWN = 16


@dataclass(frozen=True)
class DataLayout:
    """The shape of data sets, and how many observations they may have.

    Fields are as in `deepbf.training.TrainedEnsemble`; `sized_part` is the array, by name, whose observations count.
    """

    structure: Structure
    data_shape: tuple[int, ...]
    sizes: Mapping[str, Sizes]
    num_obs: tuple[int, int] | None = None
    num_obs_asked: bool = False
    form: MixedForm | None = None
    sized_part: str = WHOLE
    hyperparameters: Ranges = field(default_factory=dict)

    @classmethod
    def of_trained(cls, structure: Structure, trained: TrainedEnsemble) -> DataLayout:
        """Return the layout of data that training saw packed with their parameters."""
        if trained.form is None:
            raise ValueError("data that come with parameters have a form")
        form = without_parameters(trained.form)
        sizes = {name: sizes for name, sizes in trained.sizes.items() if name != PARAMETERS}
        if isinstance(structure, str):
            shape, sizes = form.parts[0].shape, {WHOLE: sizes[DATA]}
            return cls(structure, shape, sizes, trained.num_obs, trained.num_obs_asked)
        part = trained.form.names[trained.preparation.size_part or 0]
        return cls(structure, (form.width,), sizes, trained.num_obs, trained.num_obs_asked, form, part)

    @classmethod
    def of_simulated(
        cls, structure: Structure, model_set: ModelSet, num_obs: NumObsRange | None, seed: int
    ) -> DataLayout:
        """Return the layout of data of a model that nothing was trained on, from a few simulations."""
        form = find_form(model_set, structure, num_obs, seed)
        data = simulate_chunks(model_set.models, seed, [(0, NUM_SHOWN)], num_obs=num_obs, form=form)
        arrays = arrays_of(structure, form, data)
        check_arrays(arrays, "auto")
        sizes = {array.name: sizes_of(array) for array in arrays}
        if num_obs is not None:
            # A few data sets need not have met both ends of the range.
            grown = [array.name for array in arrays if sizes[array.name][:1] and sizes[array.name][0][1] == num_obs[1]]
            sizes |= {name: ((num_obs.low, num_obs.high),) for name in grown}
        varying = [name for name, found in sizes.items() if found and found[0][0] < found[0][1]]
        part = varying[0] if varying else arrays[0].name
        found_num_obs = sizes[part][0] if varying else None
        return cls(structure, data[0].shape[1:], sizes, found_num_obs, num_obs is not None, form, part)

    def check(self, argument: str, data: Data, *, extrapolate: bool = False) -> NDArray[np.generic]:
        """Return data sets along a leading axis, packed if mixed, nan for absent observations."""
        return check_data(argument, data, self.structure, self, extrapolate=extrapolate)

    def check_one(self, argument: str, observed: Data, *, extrapolate: bool = False) -> NDArray[np.generic]:
        """Return a single data set, with a leading axis."""
        data = self.check(argument, observed, extrapolate=extrapolate)
        if len(data) != 1:
            raise ValueError(f"{argument} must be one data set; received {len(data)}. Pass one, or use sample_many.")
        return data

    def count(self, data: NDArray[np.generic]) -> int:
        """Return how many observations the first of checked data sets has."""
        sized = data if self.form is None else self.form.unpack(data)[self.sized_part]
        return int(count_present(sized[:1])[0])
