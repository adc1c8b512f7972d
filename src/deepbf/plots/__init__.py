"""Evaluations in, matplotlib axes out: nothing is computed here beyond what drawing needs.

Legends stand beside the axes, where they hide no data: make figures of your own with ``layout="constrained"``, which
leaves room for them.
"""

from deepbf.plots.criticism_plot import predictive_check, z_values, z_values_grid
from deepbf.plots.density_plot import densities
from deepbf.plots.heat_map_plot import heat_map
from deepbf.plots.num_obs_plot import design, metric_against_num_obs, prior_against_num_obs
from deepbf.plots.path_and_sensitivity import path, sensitivity
from deepbf.plots.reliability_plot import reliability
from deepbf.plots.roc_plot import roc
from deepbf.plots.scatter_plot import scatter

__all__ = [
    "densities",
    "design",
    "heat_map",
    "metric_against_num_obs",
    "path",
    "predictive_check",
    "prior_against_num_obs",
    "reliability",
    "roc",
    "scatter",
    "sensitivity",
    "z_values",
    "z_values_grid",
]
