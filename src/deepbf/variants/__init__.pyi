# What the package exports; read by type checkers, and by lazy_loader when a name is first used.

from .splitting import VariantBayesFactor as VariantBayesFactor
from .splitting import Variants as Variants
from .splitting import fit_variants as fit_variants
from .tailored import TailoredAnswer as TailoredAnswer
from .tailored import fit_tailored as fit_tailored
