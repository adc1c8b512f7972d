"""Integrals by sums over nodes that all data sets share, some data sets at a time.

The trapezoidal rule with equal steps is exact to rounding for smooth integrands that vanish at both ends, once the
step is below about two thirds of the width (standard deviation) of the integrand: for a normal of width w the error of
a step h is 2 exp(-2 pi^2 w^2 / h^2) of the integral.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# 2 MB for each temporary array: in cache.
VALUES_PER_BLOCK = 2**18


def even_nodes(low: float, high: float, *, step: float) -> tuple[Floats, float]:
    """Return equally spaced nodes from `low` to `high`, at most `step` apart, and the log of their distance.

    Examples
    --------
    >>> nodes, log_distance = even_nodes(-8.0, 8.0, step=0.5)
    >>> (np.exp(-0.5 * nodes**2).sum() * np.exp(log_distance) / np.sqrt(2 * np.pi)).round(12)
    np.float64(1.0)
    """
    nodes = np.linspace(low, high, int(np.ceil((high - low) / step)) + 1)
    return nodes, float(np.log(nodes[1] - nodes[0]))


def log_integrals(
    log_integrand: Callable[[slice], Floats],
    log_weights: Floats,
    num_datasets: int,
    *,
    values_per_block: int = VALUES_PER_BLOCK,
) -> Floats:
    """Return the log of the weighted sum of an integrand over nodes, shape (num_datasets,).

    ``log_integrand(rows)`` gives the log integrand of these data sets at all nodes, shape (rows, nodes); `log_weights`
    has shape (nodes,). The largest term is taken out of each sum, so nothing overflows or underflows. A block holds as
    many data sets as have `values_per_block` values at the nodes; integrands that are matrix products want more.

    Examples
    --------
    >>> log_integrals(lambda rows: np.log([[1.0, 3.0], [2.0, 2.0]])[rows], np.log([0.5, 0.25]), 2).round(4)
    array([0.2231, 0.4055])
    """
    rows = max(1, values_per_block // len(log_weights))
    found = np.empty(num_datasets)
    for start in range(0, num_datasets, rows):
        block = slice(start, min(start + rows, num_datasets))
        values = log_integrand(block) + log_weights
        top = values.max(axis=1)
        values -= top[:, None]
        np.exp(values, out=values)
        found[block] = top + np.log(values.sum(axis=1))
    return found
