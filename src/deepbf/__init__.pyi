# What the package exports; read by type checkers, and by lazy_loader when a name is first used.

from . import baselines as baselines
from . import criticism as criticism
from . import evaluation as evaluation
from . import plots as plots
from .answer import Answer as Answer
from .criticism import PosteriorSampler as PosteriorSampler
from .criticism import criticise as criticise
from .criticism import fit_posterior as fit_posterior
from .estimator import BayesFactor as BayesFactor
from .estimator import ZoomedAnswer as ZoomedAnswer
from .estimator import compare as compare
from .estimator import fit as fit
from .estimator import load as load
from .evaluating import evaluate as evaluate
from .evaluation import Evaluation as Evaluation
from .models import Model as Model
from .models import ModelSet as ModelSet
from .models import SimulationError as SimulationError
from .models import Simulations as Simulations
from .variants import TailoredAnswer as TailoredAnswer
from .variants import VariantBayesFactor as VariantBayesFactor
from .variants import Variants as Variants
from .variants import fit_tailored as fit_tailored
from .variants import fit_variants as fit_variants

__version__: str
