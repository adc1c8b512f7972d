# What the package exports; read by type checkers, and by lazy_loader when a name is first used.

from .accuracy import Difference as Difference
from .accuracy import paired_differences as paired_differences
from .design import Design as Design
from .design import design_from as design_from
from .evaluation_result import Evaluation as Evaluation
from .measuring import measure as measure
from .tail_areas import Surprise as Surprise
from .tail_areas import surprise as surprise
