# What the package exports; read by type checkers, and by lazy_loader when a name is first used.

from .leave_one_out_discrepancy import LeaveOneOut as LeaveOneOut
from .leave_one_out_discrepancy import leave_one_out as leave_one_out
from .model_criticism import Criticism as Criticism
from .model_criticism import ModelCriticism as ModelCriticism
from .model_criticism import criticise as criticise
from .posterior_fitting import PartialPosteriorError as PartialPosteriorError
from .posterior_fitting import fit_posterior as fit_posterior
from .posterior_predictive_check import PredictiveCheck as PredictiveCheck
from .posterior_predictive_check import StatisticCheck as StatisticCheck
from .posterior_predictive_check import Verdict as Verdict
from .posterior_predictive_check import predictive_check as predictive_check
from .posterior_sampler import PosteriorSampler as PosteriorSampler
from .predictive_source import ExactPosterior as ExactPosterior
from .predictive_source import PredictiveSource as PredictiveSource
from .z_value_check import ZValues as ZValues
from .z_value_check import z_values as z_values
