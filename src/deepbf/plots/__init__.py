"""Evaluations in, matplotlib axes out: nothing is computed here beyond what drawing needs.

Legends stand beside the axes, where they hide no data: make figures of your own with ``layout="constrained"``, which
leaves room for them.
"""

from deepbf.plots.density_plot import densities
from deepbf.plots.design_plot import design
from deepbf.plots.heat_map_grid_plot import HeatMapRow, heat_map_grid
from deepbf.plots.heat_map_plot import heat_map
from deepbf.plots.metric_plot import metric_against_num_obs
from deepbf.plots.pairs_plot import pairs
from deepbf.plots.path_plot import path
from deepbf.plots.predictive_check_plot import predictive_check
from deepbf.plots.prior_plot import prior_against_num_obs
from deepbf.plots.reliability_plot import reliability
from deepbf.plots.roc_plot import roc
from deepbf.plots.scatter_plot import scatter
from deepbf.plots.sensitivity_plot import sensitivity
from deepbf.plots.z_values_plot import z_values, z_values_grid

__all__ = [
    "HeatMapRow",
    "densities",
    "design",
    "heat_map",
    "heat_map_grid",
    "metric_against_num_obs",
    "pairs",
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
