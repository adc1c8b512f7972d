# What the package exports; read by type checkers, and by lazy_loader when a name is first used.

from .catalogue import load as load
from .catalogue import names as names
from .covariate import covariate_log_bf as covariate_log_bf
from .linear_series import ar_ma_log_bf as ar_ma_log_bf
from .mixture import normal_mean_log_bf as normal_mean_log_bf
from .mixture import normal_mixture_log_bf as normal_mixture_log_bf
from .mixture import normal_mixture_log_bf_by_enumeration as normal_mixture_log_bf_by_enumeration
from .mixture import normal_mixture_log_bf_by_quadrature as normal_mixture_log_bf_by_quadrature
from .random_effects import random_effects_log_bf as random_effects_log_bf
from .study import Study as Study
from .toy import exponential_log_bf as exponential_log_bf
from .toy import negbin_poisson_log_bf as negbin_poisson_log_bf
