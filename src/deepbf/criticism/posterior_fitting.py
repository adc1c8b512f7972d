"""fit_posterior: from one model to a sampler of its posterior, in one call."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Executor
from functools import partial

import equinox as eqx
import jax
import numpy as np

from deepbf import _checks
from deepbf.criticism.conditioning import BesideParameters
from deepbf.criticism.data_layout import DataLayout
from deepbf.criticism.joint_model import PARAMETERS, beside_its_parameters, check_continuous, with_parameters
from deepbf.criticism.methods import METHODS
from deepbf.criticism.posterior_sampler import PosteriorSampler
from deepbf.criticism.trained_posterior import TrainedPosterior
from deepbf.estimator.fitting import check_num_obs, kept_if_stopped
from deepbf.models import Model, ModelSet, SimulationError
from deepbf.models.hyperparameters import describe
from deepbf.models.model import Data, Params
from deepbf.models.transform import Unconstrained
from deepbf.networks import OBSERVATION_AXES, Structure, check_network, check_structure
from deepbf.networks.registry import MIXED_NETWORK
from deepbf.simulation.stream import check_executor
from deepbf.standardise import Standardiser
from deepbf.training import Budget, TrainedEnsemble, train


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
    >>> sampler = deepbf.fit_posterior(normal, structure="exchangeable", steps=300, seed=1, progress=False)
    >>> draws = sampler.sample(np.full(10, 1.1), num_draws=2000)  # the exact posterior is normal, mean 1, sd 0.30
    >>> bool(abs(draws.mean() - 1.0) < 0.1), bool(abs(draws.std() - 0.30) < 0.06)
    (True, True)
    """
    started = time.monotonic()
    model = check_model(model)
    laid_out = check_structure(structure)
    chosen = METHODS[_checks.check_choice("method", method, METHODS)]
    budget = Budget.of(seconds, steps, num_simulations, num_models=1)
    model_set = ModelSet((model,), np.ones(1))
    network = check_network("auto", laid_out)
    num_obs_range = None if num_obs is None else check_num_obs(num_obs, model_set, laid_out, network)
    check_executor(executor, [model])
    seed = _checks.check_seed("seed", seed)
    if model.prior is None:
        return PosteriorSampler(model, method, DataLayout.of_simulated(laid_out, model_set, num_obs_range, seed))
    joint_structure = beside_its_parameters(laid_out)
    first = model.simulate(1, seed, None if num_obs_range is None else num_obs_range.low)
    check_same_arrays(model, laid_out, first.data)
    unconstrained = find_unconstrained(model, first.params)

    def as_sampler(trained: TrainedEnsemble) -> PosteriorSampler:
        layout = DataLayout.of_trained(laid_out, trained)
        return PosteriorSampler(model, method, layout, taken_apart(trained, layout, unconstrained))

    run = partial(
        train,
        ModelSet((with_parameters(model, unconstrained),), np.ones(1)),
        structure=joint_structure,
        network=MIXED_NETWORK,
        goal=chosen.goal(laid_out),
        schedule=chosen.schedule,
        budget=budget,
        num_members=1,
        num_obs=num_obs_range,
        executor=executor,
        seed=seed,
        progress=progress,
        started=started,
    )
    return kept_if_stopped(run, as_sampler, PartialPosteriorError, "sampler")


def check_model(model: object) -> Model:
    """Return the model, if it is one whose posterior depends on nothing but data."""
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


def check_same_arrays(model: Model, structure: Structure, data: Data) -> None:
    """Raise unless simulated data are the one array, or the arrays by name, that the structure is for."""
    found = ", ".join(map(repr, sorted(data))) if isinstance(data, Mapping) else "one array"
    wanted = "one array" if isinstance(structure, str) else ", ".join(map(repr, sorted(structure)))
    if found != wanted:
        raise ValueError(
            f"structure={structure!r} is for data sets of {wanted}; the simulator of model {model.name!r} returns "
            f"{found}. Pass a name for one array, or a dict with a structure for each of several."
        )


def find_unconstrained(model: Model, params: Params) -> Unconstrained:
    """Return the map between flat real vectors and parameters laid out like these."""
    check_continuous(model.name, params)
    unconstrained = Unconstrained.fit(params, model.transform)
    if unconstrained.num_coordinates == 0:
        raise ValueError(
            f"the prior of model {model.name!r} draws no numbers; pass prior=None for a model without any."
        )
    return unconstrained


def taken_apart(trained: TrainedEnsemble, layout: DataLayout, unconstrained: Unconstrained) -> TrainedPosterior:
    """Return the trained map for data that come without parameters."""
    preparation = trained.preparation
    if trained.form is None or not isinstance(preparation, BesideParameters):
        raise ValueError("training did not see data beside their parameters")
    columns = trained.form.columns[PARAMETERS]
    of_params = Standardiser(trained.standardiser.location[columns], trained.standardiser.scale[columns])
    # The ensemble has one member.
    network = jax.tree.map(lambda leaf: leaf[0] if eqx.is_array(leaf) else leaf, trained.networks)
    return TrainedPosterior(
        data_standardiser(trained.standardiser, columns, layout), preparation.data, network, preparation.scale,
        of_params, unconstrained, trained.record,
    )  # fmt: skip


def data_standardiser(joined: Standardiser, params: slice, layout: DataLayout) -> Standardiser:
    """Return the standardiser of the data alone."""
    location, scale = (np.delete(column, np.r_[params]) for column in (joined.location, joined.scale))
    if not isinstance(layout.structure, str):
        return Standardiser(location, scale)
    # Observations share one location and scale, however many there are.
    first = (0,) * OBSERVATION_AXES[layout.structure]
    return Standardiser(location.reshape(layout.data_shape)[first], scale.reshape(layout.data_shape)[first])
