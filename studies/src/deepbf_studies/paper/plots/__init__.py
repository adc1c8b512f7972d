"""Pictures that only the paper's figures need, drawn like those of `deepbf.plots`: results in, matplotlib axes out."""

from deepbf_studies.paper.plots.decay_plot import Decay, decay
from deepbf_studies.paper.plots.estimators_plot import pairs, priors, repeated_roc
from deepbf_studies.paper.plots.heat_map_grid_plot import HeatMapRow, heat_map_grid

__all__ = ["Decay", "HeatMapRow", "decay", "heat_map_grid", "pairs", "priors", "repeated_roc"]
