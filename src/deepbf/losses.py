"""Losses: short pure functions of log odds, for K models.

Log odds have shape (batch, K - 1): every model but the last, against the last. Labels are model indices. Over equally
many data sets of every model, each loss is least where log odds are log ratios of evidences.

Losses that compare two models take all pairs of the K. Comparisons with the last model alone would have the same
optimum, but say little of two models that both lie far from it: with three normal means, two of them close, the excess
cross-entropy after 2,000 steps was 0.010 by the exponential loss and 0.5 by leaky_pop, of all pairs 0.001 and 0.003.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf import _checks

Loss = Callable[[jax.Array, jax.Array], jax.Array]
Elementwise = Callable[[jax.Array], jax.Array]

# The log ratio up to which exponentials are exponentials; `extended` says what they are beyond. The few data sets that
# cost most, hardly ever seen, decide everything: untamed, kl, reverse_kl and pearson do not learn. Excess loss and
# clipped MSE on Data 1 (i), n = 32, after 1,500 steps, seed 1, where those of cross-entropy are 1e-4 and 0.57:
#   kl                at 18: 2e-2 and 7.3     at 5: 2e-3 and 1.6     at 3: 6e-4 and 0.49     at 1.5: 4e-4 and 0.58
#   pearson           at 18: 9 and 105        at 5: 2 and 66         at 2: 3e-3 and 0.90     at 1.5: 3e-3 and 1.1
#   squared_hellinger at 18: -1e-4 and 0.23   at 8: -1e-4 and 0.24   at 5: 0 and 0.35        at 3: 0 and 0.47
FAR_FOR_RATIOS = 3.0
FAR_FOR_SQUARES = 1.5
FAR_FOR_ROOTS = 8.0
# Finite log ratios beyond this cost as much as these do: the largest slope, 40, times it is still a float32.
LARGEST_LOG_RATIO = 1e36
# The square of a network's output is still a float32.
LARGEST_OUTPUT = 1e18


@dataclass(frozen=True)
class LossKind:
    """A loss, and the link that turns a network's output into log odds, where the output is not log odds itself."""

    of_log_odds: Loss
    link: Elementwise | None = None


def log_evidence(log_odds: jax.Array) -> jax.Array:
    """Return log evidences up to a constant per row, shape (batch, K): the last model's is 0."""
    return jnp.concatenate([log_odds, jnp.zeros_like(log_odds[..., :1])], axis=-1)


def cross_entropy(log_odds: jax.Array, label: jax.Array) -> jax.Array:
    """Return the negative log probability of the label, one entry per data set (Algorithm 1, equation 7).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> print(cross_entropy(jnp.array([[1e4], [0.0]]), jnp.array([0, 1])))
    [0.        0.6931472]
    """
    # logsumexp(s) - s[label], never a probability: in float32, 1 - sigmoid(17) is exactly 0.
    scores = log_evidence(log_odds)
    chosen = jnp.take_along_axis(scores, label[..., None], axis=-1)[..., 0]
    return jax.nn.logsumexp(scores, axis=-1) - chosen


def over_pairs(log_odds: jax.Array, label: jax.Array, of_first: Elementwise, of_second: Elementwise) -> jax.Array:
    """Return the costs of all comparisons of a data set's model with another, summed, one entry per data set.

    `of_first` and `of_second` are what a log ratio, first over second in the order of the models, costs a data set of
    the one and of the other.
    """
    scores = log_evidence(log_odds)
    models, own = jnp.arange(scores.shape[-1]), label[..., None]
    ahead = jnp.take_along_axis(scores, own, axis=-1) - scores
    cost = jnp.where(own < models, of_first(ahead), of_second(-ahead))
    return jnp.where(own == models, 0.0, cost).sum(axis=-1)


def extended(of_first: Elementwise, of_second: Elementwise, far: float) -> tuple[Elementwise, Elementwise]:
    """Return the costs of a log ratio, to data sets of the first and of the second model, tamed beyond `far`.

    The cost that grows goes on along its tangent. The other's slope falls off exponentially, so that the two slopes
    keep their ratio, -exp(log ratio), and the least expected cost stays at the log ratio of evidences, however large.
    """

    def split(log_ratio: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        limited = jnp.clip(log_ratio, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)
        inside = jnp.clip(limited, -far, far)
        return inside, jnp.maximum(limited - inside, 0.0), jnp.minimum(limited - inside, 0.0)

    def first(log_ratio: jax.Array) -> jax.Array:
        inside, above, below = split(log_ratio)
        value, rise = jax.jvp(of_first, (inside,), (below - jnp.expm1(-above),))
        return value + rise

    def second(log_ratio: jax.Array) -> jax.Array:
        inside, above, below = split(log_ratio)
        value, rise = jax.jvp(of_second, (inside,), (above + jnp.expm1(below),))
        return value + rise

    return first, second


# The f-divergences (Remark 1; Nowozin, Cseke and Tomioka 2016): E2 f(r), for the ratio r = p1/p2, is the largest value
# of E1 T - E2 f*(T), taken at T = f'(r). Here T = f'(exp(t)) from the start: t is the log ratio, and nothing is left to
# invert. A data set of the first model costs -f'(r), one of the second f*(f'(r)) = r f'(r) - f(r); the sum of their
# expectations is at its least minus the divergence.


def kl(log_odds: jax.Array, label: jax.Array) -> jax.Array:
    """Return the dual loss of the Kullback-Leibler divergence of the first model from the second, f(r) = r log r.

    One entry per data set. At log ratio t, a data set of the first model costs -t - 1, and one of the second exp(t). A
    few data sets far out decide what is learned: it is here for comparison, as `reverse_kl` and `pearson` are.
    """
    return over_pairs(log_odds, label, *extended(lambda t: -t - 1.0, jnp.exp, FAR_FOR_RATIOS))


def reverse_kl(log_odds: jax.Array, label: jax.Array) -> jax.Array:
    """Return the dual loss of the Kullback-Leibler divergence of the second model from the first, f(r) = -log r.

    One entry per data set: exp(-t) for one of the first model, t - 1 for one of the second, at log ratio t.
    """
    return over_pairs(log_odds, label, *extended(lambda t: jnp.exp(-t), lambda t: t - 1.0, FAR_FOR_RATIOS))


def jensen_shannon(log_odds: jax.Array, label: jax.Array) -> jax.Array:
    """Return the dual loss of twice the Jensen-Shannon divergence, f(r) = r log r - (r + 1) log((r + 1) / 2).

    For two models it is cross-entropy minus log 2.
    """
    return over_pairs(
        log_odds, label, lambda t: jax.nn.softplus(-t) - np.log(2.0), lambda t: jax.nn.softplus(t) - np.log(2.0)
    )


def squared_hellinger(log_odds: jax.Array, label: jax.Array) -> jax.Array:
    """Return the dual loss of the squared Hellinger distance, f(r) = (sqrt(r) - 1)^2.

    It is the exponential loss minus 1 for each comparison, and trains alike.
    """
    costs = extended(lambda t: jnp.expm1(-t / 2), lambda t: jnp.expm1(t / 2), FAR_FOR_ROOTS)
    return over_pairs(log_odds, label, *costs)


# The share of squared Hellinger in the balanced loss. On normal-mean, t-test, pairs, data-1-i, change-counts (45 s on
# one busy core each), errors within a thousand to one were 0.093, 0.114, 0.119, 0.145, 0.200 by cross-entropy alone,
# 0.052, 0.109, 0.144, 0.141, 0.194 with this share, and 0.046, 0.131, 0.169, 0.155, 0.207 by squared Hellinger alone;
# clipped mean squared errors 0.194, 0.041, 0.172, 0.168, 0.597 by cross-entropy, 0.070, 0.043, 0.086, 0.114, 0.400 with
# this share. With two more seeds, errors by cross-entropy and with this share were 0.103, 0.125 and 0.038, 0.069 for
# normal-mean; 0.109, 0.115 and 0.125, 0.125 for t-test; 0.154, 0.078 and 0.075, 0.082 for pairs.
HELLINGER_SHARE = 0.2


def balanced(log_odds: jax.Array, label: jax.Array) -> jax.Array:
    """Return cross-entropy plus a fifth of the squared Hellinger loss, the default.

    Cross-entropy is the most efficient in the middle, and hardly sees how strong strong evidence is: beyond a hundred
    to one, a data set that speaks against its own model is rare, and costs no more than its log odds. Hellinger's
    weight grows with the root of the odds. Both are least at the log ratio of evidences, and so is their sum.
    """
    return cross_entropy(log_odds, label) + HELLINGER_SHARE * squared_hellinger(log_odds, label)


def pearson(log_odds: jax.Array, label: jax.Array) -> jax.Array:
    """Return the dual loss of Pearson's chi-squared divergence, f(r) = (r - 1)^2.

    One entry per data set: 2 - 2 exp(t) for one of the first model, exp(2 t) - 1 for one of the second, at log ratio t.
    """
    costs = extended(lambda t: -2.0 * jnp.expm1(t), lambda t: jnp.expm1(2.0 * t), FAR_FOR_SQUARES)
    return over_pairs(log_odds, label, *costs)


def exponential(log_odds: jax.Array, label: jax.Array) -> jax.Array:
    """Return the exponential loss of Evidence Networks (Jeffrey and Wandelt 2024): the root of the wrong odds.

    One entry per data set: exp(-t / 2) for one of the first model, exp(t / 2) for one of the second, at log ratio t.
    """
    costs = extended(lambda t: jnp.exp(-t / 2), lambda t: jnp.exp(t / 2), FAR_FOR_ROOTS)
    return over_pairs(log_odds, label, *costs)


def leaky_power(output: jax.Array) -> jax.Array:
    """Return log odds from a network's output f: the leaky parity-odd power f + f |f|, alpha = 2.

    Moderate outputs then reach log odds of many sizes (Jeffrey and Wandelt 2024).
    """
    limited = jnp.clip(output, -LARGEST_OUTPUT, LARGEST_OUTPUT)
    return limited + limited * jnp.abs(limited)


def at_mixture(loss: Loss, probs: NDArray[np.float64]) -> Loss:
    """Return the loss at a mixture of models with these probabilities, from equally many data sets of each model.

    Weighing each model's data sets by its probability moves the optimum by the log prior odds, away from the log ratio
    of evidences; the loss taken at log odds plus log prior odds has it there again, whichever the loss. An f-divergence
    becomes that between the measures p1 P1 and p2 P2.
    """
    # Where costs are powers of the ratio, the shift is a factor, and both together only weigh the comparison of two
    # models, its two sides alike: by p1 for kl, p2 for reverse_kl, sqrt(p1 p2) for squared_hellinger and the
    # exponential loss, p1^2 / p2 for pearson. Two sides weighed unlike, without a shift, would move the optimum.
    log_prior_odds = jnp.asarray(np.log(probs[:-1] / probs[-1]), jnp.float32)
    weights = jnp.asarray(len(probs) * probs, jnp.float32)

    def weighed(log_odds: jax.Array, label: jax.Array) -> jax.Array:
        return weights[label] * loss(log_odds + log_prior_odds, label)

    return weighed


LOSSES: dict[str, LossKind] = {
    "balanced": LossKind(balanced),
    "cross_entropy": LossKind(cross_entropy),
    "kl": LossKind(kl),
    "reverse_kl": LossKind(reverse_kl),
    "jensen_shannon": LossKind(jensen_shannon),
    "squared_hellinger": LossKind(squared_hellinger),
    "pearson": LossKind(pearson),
    "exponential": LossKind(exponential),
    "leaky_pop": LossKind(exponential, link=leaky_power),
}
DEFAULT = "balanced"
# What files were trained by that do not say: they are older than any other loss.
OLDEST = "cross_entropy"


def register_loss(name: str, kind: LossKind) -> None:
    """Make a loss known, so that ``deepbf.fit(loss=name)`` finds it.

    A proper loss is least, over equally many data sets of every model, where log odds are log ratios of evidences; only
    then are the answers Bayes factors. A file names the loss that its estimator was trained by: register it before
    loading, if it has a link.
    """
    LOSSES[name] = kind


def by_name(name: str) -> LossKind:
    """Return the loss called `name`, with its link.

    Raises a ValueError that names the nearest one if there is no such loss; see `register_loss`.
    """
    return LOSSES[_checks.check_choice("loss", name, LOSSES)]
