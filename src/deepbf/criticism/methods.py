"""The kinds of posterior sampler by name: their network, what it learns by, and how fast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import optax

from deepbf._mixed import MixedForm
from deepbf.criticism.conditioning import AbstractPosteriorNetwork, prepare_beside
from deepbf.criticism.flow import ConditionalFlow, mean_score
from deepbf.criticism.gan import BayesianGan, adversarial, three_rates
from deepbf.networks import NetworkKind, Structure
from deepbf.training.optimise import ADAM, FlatNetworks, Goal, Objective
from deepbf.training.schedule import Schedule

PEAK_RATE = 5e-3


@dataclass(frozen=True)
class Method:
    """A network that draws parameters, and how it is trained."""

    init: Callable[..., AbstractPosteriorNetwork]
    objective: Objective
    schedule: Schedule
    optimiser_of: Callable[[FlatNetworks], optax.GradientTransformation] = lambda networks: ADAM

    def goal(self, structure: Structure) -> Goal:
        """Return what training aims at, for data of this structure."""

        def kind_of(form: MixedForm | None, data_shape: tuple[int, ...]) -> NetworkKind:
            del data_shape
            if form is None:
                raise ValueError("data that come with parameters have a form")
            return NetworkKind(prepare_beside(structure, form), self.init, PEAK_RATE, any_num_obs=True)

        return Goal(kind_of, self.objective, lambda scores: float(np.mean(scores)), self.optimiser_of)


METHODS = {
    "flow": Method(ConditionalFlow, mean_score, Schedule(batch_size=256)),
    "gan": Method(BayesianGan, adversarial, Schedule(batch_size=256), three_rates),
}
