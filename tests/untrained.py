"""Estimators with random weights: every network by name, without the time it takes to train one."""

from dataclasses import replace
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf import BayesFactor, losses
from deepbf.layout import STRUCTURES, WHOLE, ArrayLayout, DataLayout
from deepbf.models.covariates import Covariates
from deepbf.networks import NETWORKS, network_kind
from deepbf.networks.ensemble import init_ensemble, settle_ensemble
from deepbf.standardise import Standardiser
from deepbf.training import TrainedEnsemble, TrainingRecord

EVERY_NETWORK = [
    (structure, network) for structure, networks in NETWORKS.items() for network in ("committee", *networks)
]
SET_NETWORKS = [(network, shape) for network in ("deepset", "set-attention", "deepset2") for shape in ((13,), (13, 2))]
# The shape of a data set where a test names none.
USUAL_SHAPES = {
    "vector": (13,),
    "exchangeable": (13,),
    "series": (13,),
    "nested": (5, 13),
    "responses": (13,),
    "image": (7, 6),
}
# Where a structure has covariates: a number, and groups.
TABLE = Covariates.of({"x": np.linspace(-1, 1, 13), "group": ["a"] * 4 + ["b"] * 4 + ["c"] * 5})
EVERY_INPUT = [(structure, network, USUAL_SHAPES[structure]) for structure, network in EVERY_NETWORK] + [
    ("exchangeable", network, data_shape) for network, data_shape in SET_NETWORKS if len(data_shape) == 2
]

NUM_PILOT = 300


def pilot_data(data_shape: tuple[int, ...], num_models: int = 2) -> list[NDArray[np.float64]]:
    """Return pilot data sets, normals that are wider for each model than for the one before."""
    rng = np.random.default_rng(1)
    return [(1 + k) * rng.normal(size=(NUM_PILOT, *data_shape)) for k in range(num_models)]


@cache
def untrained(
    structure: str,
    network: str,
    data_shape: tuple[int, ...] | None = None,
    *,
    names: tuple[str, ...] = ("first", "second"),
    num_members: int = 2,
    seed: int = 0,
    loss: str = losses.DEFAULT,
) -> BayesFactor:
    """Return an estimator fitted to pilot data in all but its weights, which are random."""
    data_shape = data_shape or USUAL_SHAPES[structure]
    pilot = pilot_data(data_shape, len(names))
    table = TABLE if STRUCTURES[structure].has_covariates else None
    layout = DataLayout((ArrayLayout(WHOLE, STRUCTURES[structure], covariates=table),)).seen(pilot)
    if structure == "nested":
        # As if groups of every size had been simulated.
        sizes = ((1, data_shape[0]), (1, data_shape[1]))
        layout = replace(layout, arrays=(replace(layout.arrays[0], sizes=sizes),))
    kind = network_kind(layout, network, losses.by_name(loss).link)
    standardiser = Standardiser.fit(pilot, num_axes=STRUCTURES[structure].num_axes)
    standardised = [standardiser(data) for data in pilot]
    preparation = kind.fit_preparation(standardised)
    inputs = preparation.layout(data_shape)
    networks = init_ensemble(kind, inputs, len(names), num_members, jax.random.key(seed))
    # Doubled, or the deepest network starts out flat: an answer that never varies would pass any comparison.
    networks = jax.tree.map(lambda leaf: 2 * leaf if eqx.is_array(leaf) else leaf, networks)
    # Only this network depends on the batch that it settles by; to prepare one takes long to compile.
    some = np.concatenate([data[:64] for data in standardised])
    reference = preparation(jnp.asarray(some)) if network == "bnn" else jnp.zeros((2, inputs.width))
    record = TrainingRecord(num_steps=1, num_simulations=600, seconds=0.5, held_out_loss=0.6, stopped="budget")
    return BayesFactor(
        names=names,
        prior_probs=np.full(len(names), 1 / len(names)),
        network=network,
        loss=loss,
        ensemble=TrainedEnsemble(
            layout,
            standardiser,
            preparation,
            settle_ensemble(networks, reference),
            record,
            reference=np.random.default_rng(2).normal(size=(len(names), 50, len(names) - 1)).astype(np.float32),
        ),
    )
