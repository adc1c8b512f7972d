"""Networks that answer together: ensembles of equal members, and committees of parts of different kinds.

An ensemble is stacked along a leading axis of its weights and run together. Every member of the default is a committee.
Its informed network reads a summary with built-in knowledge of the data's structure; its free network reads a plain
view of the values, and can learn whatever they say: what one is blind to another sees. Each part is trained as if it
were alone. How far each is believed is decided by simulations that it was not trained on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.optimize import minimize, root_scalar
from scipy.special import log_softmax, softmax

from deepbf._compilation import IN_A_HURRY, compiled
from deepbf.networks.base import AbstractNetwork, AbstractPreparation, InitNetwork, InputLayout, NetworkKind, Pilot


def init_ensemble(
    kind: NetworkKind, layout: InputLayout, num_models: int, num_members: int, key: jax.Array
) -> AbstractNetwork:
    """Return `num_members` networks with independent random weights, stacked."""
    shapes = eqx.filter_eval_shape(_init_stacked, kind.init, layout, num_models, num_members, key)
    weights = compiled(_init_weights, kind.init, layout, num_models, num_members, options=IN_A_HURRY)(key)
    return eqx.combine(weights, eqx.filter(shapes, lambda leaf: not isinstance(leaf, jax.ShapeDtypeStruct)))


def blank_ensemble(
    kind: NetworkKind, layout: InputLayout, num_models: int, num_members: int, *, settled: bool = True
) -> AbstractNetwork:
    """Return networks with the shapes of weights in place of weights, as a form to be filled; settled, or as new."""

    def init_and_settle(key: jax.Array) -> AbstractNetwork:
        networks = _init_stacked(kind.init, layout, num_models, num_members, key)
        return settle_ensemble(networks, jnp.zeros((2, layout.width))) if settled else networks

    return eqx.filter_eval_shape(init_and_settle, jax.random.key(0))


def _init_stacked(
    init: InitNetwork, layout: InputLayout, num_models: int, num_members: int, key: jax.Array
) -> AbstractNetwork:
    keys = jax.random.split(key, num_members)
    return eqx.filter_vmap(lambda member_key: init(layout, num_models, key=member_key))(keys)


def _init_weights(init: InitNetwork, layout: InputLayout, num_models: int, num_members: int, key: jax.Array) -> Any:
    return eqx.filter(_init_stacked(init, layout, num_models, num_members, key), eqx.is_array)


def settle_ensemble(networks: AbstractNetwork, reference: jax.Array) -> AbstractNetwork:
    """Return the networks with all that depends on the batch fixed by one reference batch of inputs."""
    return eqx.filter_vmap(lambda network: network.settle(reference))(networks)


def ensemble_parts(networks: AbstractNetwork, inputs: jax.Array) -> jax.Array:
    """Return the log odds of each part of the networks, the mean over members, shape (parts, batch, K - 1)."""
    return eqx.filter_vmap(lambda network: network.parts(inputs))(networks).mean(axis=0)


def mean_log_odds(networks: AbstractNetwork, inputs: jax.Array) -> jax.Array:
    """Return the log odds that the members agree on, shape (batch, K - 1), from inputs of shape (batch, width)."""
    return ensemble_log_odds(networks, inputs).mean(axis=0)


def ensemble_log_odds(networks: AbstractNetwork, inputs: jax.Array, spread: float = 1.0) -> jax.Array:
    """Return each member's log odds, shape (members, batch, K - 1), from inputs of shape (batch, width).

    Their distances from the mean are multiplied by `spread`.

    What members of a committee bet on (`spread_weights`) is for their spread. Their mean is that of each part over
    all members, weighted as the parts are believed: if every member weighted its own parts alone, then of a part that
    few members bet on, the errors of those few would not average out.
    """
    if isinstance(networks, Committee):
        parts = eqx.filter_vmap(lambda network: network.parts(inputs))(networks)
        agreed, believed = parts.mean(axis=0), networks.weights.mean(axis=0)
        mean = jnp.tensordot(believed, agreed, axes=1)
        own = jnp.einsum("p,mpbk->mbk", believed, parts - agreed)
        bet = jnp.tensordot(networks.weights - believed, agreed, axes=1)
        return mean + spread * (own + bet)
    members = eqx.filter_vmap(lambda network: network(inputs))(networks)
    if spread == 1.0:
        return members
    mean = members.mean(axis=0)
    return mean + spread * (members - mean)


class TwoViews(AbstractPreparation):
    """The columns of an informed network's summary, then the plain view of the same data."""

    summary: AbstractPreparation
    plain: AbstractPreparation

    def __call__(self, data: jax.Array, fraction: float = 1.0) -> jax.Array:
        """Return both views side by side; `fraction` is passed to summaries that take it (see `SetSummary`)."""
        if fraction == 1.0:
            return jnp.concatenate([self.summary(data), self.plain(data)], axis=1)
        views = [view(data, fraction=fraction) for view in (self.summary, self.plain)]  # pyright: ignore[reportCallIssue]
        return jnp.concatenate(views, axis=1)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        summary, plain = self.summary.layout(data_shape), self.plain.layout(data_shape)
        return replace(summary, num_beside=plain.width)


class Committee(AbstractNetwork):
    """Networks that read columns of the same row, and the weights with which their log odds are averaged.

    `columns` says from where to where each part reads. `rates` are the parts' learning rates as shares of the largest.
    """

    networks: tuple[AbstractNetwork, ...]
    weights: jax.Array
    columns: tuple[tuple[int, int], ...] = eqx.field(static=True)
    rates: tuple[float, ...] = eqx.field(static=True)

    def parts(self, inputs: jax.Array) -> jax.Array:
        return jnp.stack([network(rows) for network, rows in self._reading(inputs)])

    def __call__(self, inputs: jax.Array) -> jax.Array:
        return jnp.tensordot(self.weights, self.parts(inputs), axes=1)

    def believing(self, weights: NDArray[np.float64]) -> Committee:
        """Return the committee, or stacked ones, with these weights of its parts."""
        return eqx.tree_at(lambda committee: committee.weights, self, jnp.asarray(weights, jnp.float32))

    def joined_by(self, simple: Sequence[AbstractNetwork], width: int) -> Committee:
        """Return stacked committees with these stacked classifiers, which read rows of this width, equally believed."""
        networks = (*self.networks, *simple)
        weights = jnp.full((len(self.weights), len(networks)), 1.0 / len(networks))
        columns = (*self.columns, *((0, width) for _ in simple))
        return Committee(networks, weights, columns, (*self.rates, *(0.0 for _ in simple)))

    def without_simple(self, num_simple: int) -> Committee:
        """Return stacked committees without the simple classifiers that joined them last, equally believed."""
        number = len(self.networks) - num_simple
        weights = jnp.full((len(self.weights), number), 1.0 / number)
        return Committee(self.networks[:number], weights, self.columns[:number], self.rates[:number])

    def settle(self, reference: jax.Array) -> Committee:
        settled = tuple(network.settle(rows) for network, rows in self._reading(reference))
        return eqx.tree_at(lambda committee: committee.networks, self, settled)

    def _reading(self, inputs: jax.Array) -> list[tuple[AbstractNetwork, jax.Array]]:
        return [
            (network, inputs[:, start:stop]) for network, (start, stop) in zip(self.networks, self.columns, strict=True)
        ]


def committee_kind(informed: NetworkKind | None, free: NetworkKind, simple: Sequence[NetworkKind] = ()) -> NetworkKind:
    """Return the kind whose members are committees: an informed network, a free one, and any simple classifiers.

    Without an informed network there is but the plain view, which `free` prepares. Simple classifiers read everything.
    """
    peak_rate = max(0.0 if informed is None else informed.peak_rate, free.peak_rate)
    kinds = (*(() if informed is None else (informed,)), free, *simple)

    def fit(pilot: Pilot) -> AbstractPreparation:
        if informed is None:
            return free.fit_preparation(pilot)
        # Most of fitting either is compilation, which leaves the other core free.
        with ThreadPoolExecutor(1) as thread:
            summary = thread.submit(informed.fit_preparation, pilot)
            plain = free.fit_preparation(pilot)
            return TwoViews(summary.result(), plain)

    inits, rates = tuple(kind.init for kind in kinds), tuple(kind.peak_rate / peak_rate for kind in kinds)
    init = InitCommittee(inits, rates, informed is not None, len(simple))
    return NetworkKind(fit, init, peak_rate, any_num_obs=free.any_num_obs)


@dataclass(frozen=True)
class InitCommittee:
    """How a committee starts: the starts of its parts, an informed network first if there is one, simple ones last.

    One made of the same parts is the same: what is compiled for the one serves the other.
    """

    inits: tuple[InitNetwork, ...]
    rates: tuple[float, ...]
    has_informed: bool
    num_simple: int

    def __call__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> Committee:
        num_plain = layout.num_beside if self.has_informed else layout.width
        layouts, columns = [InputLayout(0, num_plain)], [(layout.width - num_plain, layout.width)]
        if self.has_informed:
            summary = replace(layout, num_beside=0)
            layouts.insert(0, summary)
            columns.insert(0, (0, summary.width))
        layouts += [InputLayout(0, layout.width)] * self.num_simple
        columns += [(0, layout.width)] * self.num_simple
        keys = jax.random.split(key, len(self.inits))
        networks = tuple(
            init(own, num_models, key=own_key) for init, own, own_key in zip(self.inits, layouts, keys, strict=True)
        )
        believed = jnp.full(len(networks), 1.0 / len(networks))
        return Committee(networks, believed, tuple(columns), self.rates)


# Standard errors of a difference between losses that chance accounts for.
CHANCE = 2.0


def stacking_weights(log_odds: Sequence[NDArray[np.floating]], *, preferred: int | None = None) -> NDArray[np.float64]:
    """Return the weights, at least 0 and summing to 1, with which the parts' mean has the least cross-entropy.

    `log_odds` has one array per model that the data sets came from, shape (parts, data sets, K - 1), at simulations
    that no part was trained on. The loss is convex in the weights (stacking, Wolpert 1992; of log odds, not of
    probabilities, so that the answer stays a log Bayes factor).

    A `preferred` part has all the weight, unless others improve on it by more than chance, two standard errors of the
    difference. An informed network goes on in the right form where no simulation is, which losses do not show.

    Examples
    --------
    >>> right, blind = np.full((200, 1), 3.0), np.zeros((200, 1))
    >>> stacking_weights([np.stack([right, blind]), np.stack([-right, blind])]).round(2).tolist()
    [1.0, 0.0]
    """
    num_parts = len(log_odds[0])
    evidence = [np.concatenate([odds, np.zeros_like(odds[..., :1])], axis=-1).astype(np.float64) for odds in log_odds]

    def loss_and_slope(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        loss, slope = 0.0, np.zeros(num_parts)
        for label, parts in enumerate(evidence):
            mixed = np.tensordot(weights, parts, axes=1)
            loss -= log_softmax(mixed, axis=-1)[:, label].mean()
            residual = softmax(mixed, axis=-1)
            residual[:, label] -= 1.0
            slope += np.einsum("pdk,dk->p", parts, residual) / len(residual)
        return loss / len(evidence), slope / len(evidence)

    found = minimize(
        loss_and_slope,
        np.full(num_parts, 1.0 / num_parts),
        jac=True,
        bounds=[(0.0, 1.0)] * num_parts,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones_like(w)},
        method="SLSQP",
        # Losses that matter differ in their fifth digit.
        options={"ftol": 1e-12},
    )
    weights = np.clip(found.x, 0.0, 1.0)
    weights /= weights.sum()
    if preferred is None:
        return weights
    alone = np.eye(num_parts)[preferred]
    gains = [
        log_softmax(np.tensordot(weights, parts, axes=1), axis=-1)[:, label]
        - log_softmax(np.tensordot(alone, parts, axes=1), axis=-1)[:, label]
        for label, parts in enumerate(evidence)
    ]
    gain = np.mean([one.mean() for one in gains])
    error = np.sqrt(sum(one.var() / len(one) for one in gains)) / len(gains)
    return weights if gain > CHANCE * error else alone


# Log odds are at most doubled: where models are never mistaken for each other, no factor is too large.
LARGEST_SCALE = 2.0
# Of the scale, for the slope of a slope.
SMALL_STEP = 1e-3


def cautious_scale(log_odds: Sequence[NDArray[np.floating]]) -> float:
    """Return the factor, at least 1, by which log odds are smaller than they should be, as far as it is not chance.

    `log_odds` has one array per model that the data sets came from, shape (data sets, K - 1), at simulations that
    they were not trained on. The factor with the least cross-entropy is taken, less its standard error. Ridges, and
    few trees, make classifiers that are more cautious than they need to be. A factor below 1 is not believed: those
    that are judged are single members, and their mean, which is the answer, is less noisy than any of them.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> values = [rng.normal(mean, 1.0, (4000, 1)) for mean in (1.0, -1.0)]
    >>> right, cautious = [2.0 * value for value in values], [1.25 * value for value in values]
    >>> round(cautious_scale(right), 1), round(cautious_scale(cautious), 1)
    (1.0, 1.6)
    """
    evidence = [np.concatenate([odds, np.zeros_like(odds[..., :1])], axis=-1).astype(np.float64) for odds in log_odds]

    def slope(scale: float) -> float:
        """Return how fast the loss rises with the scale."""
        rises = [
            (softmax(scale * parts, axis=-1) * parts).sum(axis=-1) - parts[:, label]
            for label, parts in enumerate(evidence)
        ]
        return float(np.mean([one.mean() for one in rises]))

    # The loss is convex: its slope rises with the scale.
    if slope(1.0) >= 0.0:
        return 1.0
    found = LARGEST_SCALE if slope(LARGEST_SCALE) <= 0.0 else root_scalar(slope, bracket=(1.0, LARGEST_SCALE)).root
    # What the data sets say of the factor, by the model's own probabilities: where none is in doubt, they say nothing.
    information = sum(map(len, evidence)) * (slope(found + SMALL_STEP) - slope(found - SMALL_STEP)) / (2 * SMALL_STEP)
    return max(1.0, found - 1.0 / math.sqrt(information)) if information > 0.0 else 1.0


# The share of the belief that is spread evenly over all parts where the error is concerned, whatever decided.
DOUBT = 0.25


def spread_weights(weights: NDArray[np.float64], num_members: int, doubt: float = DOUBT) -> NDArray[np.float64]:
    """Return weights for each member, shape (members, parts), about the given ones: members bet on different parts.

    Their mean is `weights`, and their covariance (with one degree of freedom less than there are members) is that of
    betting everything on one part, drawn with these probabilities, as far as the number of members allows. So if
    parts that are believed disagree at a data set, the members' spread shows it. No part is left out altogether: what
    decided between them are typical data, and far out another part may be the better one.
    """
    num_parts = len(weights)
    if num_members == 1:
        return weights[None]
    # Orthogonal columns of mean 0 over the members, each of variance 1.
    signs = helmert(num_members).T * np.sqrt(num_members - 1.0)
    doubted = (1.0 - doubt) * weights + doubt / num_parts
    order = np.argsort(-doubted)[: signs.shape[1]]
    spread = np.zeros((num_members, num_parts))
    for column, part in enumerate(order):
        away = np.eye(num_parts)[part] - doubted
        spread += signs[:, column, None] * np.sqrt(doubted[part]) * away
    return weights + spread
