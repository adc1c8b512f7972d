"""fit_posterior: from one model to a sampler of its posterior, in one call."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import equinox as eqx
import jax
import numpy as np
import optax
from numpy.typing import NDArray

from deepbf import _checks
from deepbf.criticism.beside_parameters import (
    PARAMETERS,
    BesideParameters,
    CheckedPrior,
    JointSimulator,
    check_continuous,
    layout_of_data,
)
from deepbf.criticism.flow import ConditionalFlow
from deepbf.criticism.gan import BayesianGan, three_rates
from deepbf.criticism.posterior_network import AbstractPosteriorNetwork, ParameterScale
from deepbf.criticism.posterior_sampler import PosteriorSampler, TrainedPosterior
from deepbf.estimator.fitting import check_num_obs, kept_if_stopped
from deepbf.layout.data_layout import DATA, DataLayout
from deepbf.layout.structure import Structure, Vector, find_structure
from deepbf.models.hyperparameters import describe
from deepbf.models.model import Model, ModelSet, SimulationError, Simulations
from deepbf.models.transform import Unconstrained
from deepbf.networks.base import AbstractNetwork, NetworkKind
from deepbf.networks.registry import AUTO, check_simulated, summary_kind
from deepbf.simulation import Source, check_executor
from deepbf.standardise import Standardiser
from deepbf.training.optimise import ADAM, Goal, NetworkForm
from deepbf.training.schedule import Budget, Schedule
from deepbf.training.trained import TrainedEnsemble
from deepbf.training.trainer import train

# Data sets that show what a model without parameters simulates.
NUM_SHOWN = 16
PEAK_RATE = 5e-3
SCHEDULE = Schedule(batch_size=256)


@dataclass(frozen=True)
class Method:
    """A kind of posterior sampler: the network that draws parameters, and the optimiser that trains it."""

    init: Callable[..., AbstractPosteriorNetwork]
    optimiser_of: Callable[[NetworkForm], optax.GradientTransformation] = lambda form: ADAM

    def goal(self, structure: Structure | Mapping[str, Structure]) -> Goal:
        """Return what training aims at, for data of this structure."""

        def kind_of(beside: DataLayout) -> NetworkKind:
            data, columns = layout_of_data(beside, structure), beside.columns[PARAMETERS]
            # The data alone are prepared as the default network for them has it.
            inner = summary_kind(data)

            def prepare(pilot: Sequence[NDArray[np.float32]]) -> BesideParameters:
                rows = [np.delete(one, np.r_[columns], axis=1).reshape(len(one), *data.shape) for one in pilot]
                scale = ParameterScale.fit(np.concatenate([one[:, columns] for one in pilot]))
                return BesideParameters(inner.fit_preparation(rows), scale, columns.start, columns.stop, data.shape)

            return NetworkKind(prepare, self.init, PEAK_RATE, any_num_obs=True)

        return Goal(kind_of, _own_loss, lambda scores: float(np.mean(scores)), self.optimiser_of)


def _own_loss(network: AbstractNetwork, batch: jax.Array, step: jax.Array) -> jax.Array:
    return cast(AbstractPosteriorNetwork, network).loss(batch, step)


METHODS = {"flow": Method(ConditionalFlow), "gan": Method(BayesianGan, three_rates)}


class PartialPosteriorError(SimulationError):
    """A simulator failed during the fit; `partial` is the sampler trained until then, or None."""

    partial: PosteriorSampler | None = None


def fit_posterior(
    model: Model,
    *,
    structure: str | Mapping[str, str] = "vector",
    num_obs: tuple[int, int] | None = None,
    method: str = "flow",
    seconds: float | None = None,
    steps: int | None = None,
    num_simulations: int | None = None,
    executor: Executor | None = None,
    seed: int = 0,
    progress: bool = True,
) -> PosteriorSampler:
    """Return a sampler of the model's posterior, trained on its simulations, for any data set of their shape.

    Parameters
    ----------
    model
        The model; its `transform` says where bounded parameters live, so that no draw leaves their bounds. Parameters
        are real numbers. Hyperparameters must be fixed, ``model.at(scale=1.0)``. For a model without parameters nothing
        is trained.
    structure, num_obs
        How data sets are laid out, and the range of the number of observations, as in `deepbf.fit`. Predictions of
        each observation from the others need a range that includes one observation fewer.
    method
        "flow": a conditional normalising flow, by maximum likelihood. "gan": the Bayesian GAN of Wang and Rockova
        (2022), a generator of parameters from data and noise, and a critic of pairs of data and parameters.
    seconds, steps, num_simulations
        At most one budget, as in `deepbf.fit`; 60 seconds by default. With `steps` or `num_simulations`, the same seed
        gives the same sampler.
    executor, seed, progress
        As in `deepbf.fit`. Ctrl-C stops training and returns the best sampler so far.

    Raises
    ------
    PartialPosteriorError
        If the simulator fails once training has begun; its `partial` holds the sampler trained until then.

    Examples
    --------
    >>> import numpy as np
    >>> import deepbf
    >>> normal = deepbf.Model("normal", prior=lambda rng, size: rng.normal(size=size),
    ...                       simulator=lambda rng, mean: rng.normal(mean[:, None], 1.0, (len(mean), 10)))
    >>> sampler = deepbf.fit_posterior(normal, structure="exchangeable", steps=1000, seed=1, progress=False)
    >>> observed = np.linspace(-0.4, 2.6, 10)  # mean 1.1: the exact posterior is normal, mean 1, sd 0.30
    >>> draws = sampler.sample(observed, num_draws=2000)
    >>> bool(abs(draws.mean() - 1.0) < 0.1), bool(abs(draws.std() - 0.30) < 0.06)
    (True, True)
    """
    started = time.monotonic()
    model = check_model(model)
    found = find_structure(structure)
    chosen = METHODS[_checks.check_choice("method", method, METHODS)]
    budget = Budget.of(seconds, steps, num_simulations, num_models=1)
    model_set = ModelSet((model,), np.ones(1))
    num_obs_range = None if num_obs is None else check_num_obs(num_obs, model_set, found, AUTO)
    check_executor(executor, [model])
    seed = _checks.check_seed("seed", seed)
    if model.prior is None:
        layout = DataLayout.of(model_set, found, num_obs_range, seed=seed)
        shown = Source(model_set.models, layout, seed).simulate([(0, NUM_SHOWN)])
        check_simulated(layout, AUTO, shown)
        return PosteriorSampler(model, method, layout.seen(shown))
    arrays = {DATA: found} if isinstance(found, Structure) else dict(found)
    if PARAMETERS in arrays:
        raise ValueError(
            f"structure may not name an array {PARAMETERS!r}: the model's parameters have that name. Rename the array."
        )
    first = model.simulate(1, seed, None if num_obs_range is None else num_obs_range.low)
    unconstrained = _find_unconstrained(model, found, first)
    # With its parameters among its data; the same seed draws the same as the model itself.
    prior, simulator = (
        CheckedPrior(model.prior, unconstrained, model.name),
        JointSimulator(model.simulator, unconstrained),
    )
    joint = ModelSet((replace(model, prior=prior, simulator=simulator),), np.ones(1))

    def as_sampler(trained: TrainedEnsemble) -> PosteriorSampler:
        layout = layout_of_data(trained.layout, found)
        return PosteriorSampler(model, method, layout, _without_parameters(trained, layout, unconstrained))

    layout = DataLayout.of(joint, {**arrays, PARAMETERS: Vector()}, num_obs_range, seed=seed)
    run = partial(
        train, joint, layout, network=AUTO, goal=chosen.goal(found), schedule=SCHEDULE, budget=budget, num_members=1,
        executor=executor, seed=seed, progress=progress, started=started,
    )  # fmt: skip
    return kept_if_stopped(run, as_sampler, PartialPosteriorError, "sampler")


def check_model(model: object) -> Model:
    """Return the model, if it is a single one whose posterior depends on nothing but data.

    Raises a TypeError for anything but a Model, and a ValueError for one whose hyperparameters are not fixed.
    """
    if not isinstance(model, Model):
        raise TypeError(
            f"model must be one deepbf.Model; received {type(model).__name__}. Pass one model; of several, fit a "
            "sampler for each."
        )
    if model.hyperparameters:
        ranges = describe(dict(model.hyperparameters))
        values = ", ".join(f"{name}=..." for name in model.hyperparameters)
        raise ValueError(
            f"the posterior of model {model.name!r} depends on its hyperparameters, {ranges}. Fix them: "
            f"model.at({values})."
        )
    return model


def _find_unconstrained(
    model: Model, structure: Structure | Mapping[str, Structure], first: Simulations
) -> Unconstrained:
    """Return the map between flat real vectors and the model's parameters, from its first simulation.

    Raises a ValueError if the data are not the one array, or the arrays by name, that the structure is for.
    """
    made = ", ".join(map(repr, sorted(first.data))) if isinstance(first.data, Mapping) else "one array"
    wanted = "one array" if isinstance(structure, Structure) else ", ".join(map(repr, sorted(structure)))
    if made != wanted:
        named = structure.name if isinstance(structure, Structure) else {k: one.name for k, one in structure.items()}
        raise ValueError(
            f"structure={named!r} is for data sets of {wanted}; the simulator of model {model.name!r} returns "
            f"{made}. Pass a name for one array, or a dict with a structure for each of several."
        )
    check_continuous(model.name, first.params)
    unconstrained = Unconstrained.fit(first.params, model.transform)
    if unconstrained.num_coordinates == 0:
        raise ValueError(
            f"the prior of model {model.name!r} draws no numbers; pass prior=None for a model without any."
        )
    return unconstrained


def _without_parameters(trained: TrainedEnsemble, layout: DataLayout, unconstrained: Unconstrained) -> TrainedPosterior:
    """Return the trained map for data that come without parameters.

    Training saw data packed together with parameters; the standardiser and the preparation are taken apart here.
    """
    preparation = trained.preparation
    if not isinstance(preparation, BesideParameters):
        raise TypeError("training did not see data beside their parameters")
    columns = trained.layout.columns[PARAMETERS]
    both = (trained.standardiser.location, trained.standardiser.scale)
    of_data = [np.delete(values, np.r_[columns]) for values in both]
    if not layout.packed:
        # Observations share one location and scale, however many there are.
        first = (0,) * layout.arrays[0].structure.num_axes
        of_data = [values.reshape(layout.shape)[first] for values in of_data]
    # The ensemble has one member.
    network = jax.tree.map(lambda leaf: leaf[0] if eqx.is_array(leaf) else leaf, trained.networks)
    return TrainedPosterior(
        Standardiser(*of_data), preparation.data, network, preparation.scale,
        Standardiser(*(values[columns] for values in both)), unconstrained, trained.record,
    )  # fmt: skip
