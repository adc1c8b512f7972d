# What the package exports; read by type checkers, and by lazy_loader when a name is first used.

from .running import find_target as find_target
from .running import names as names
from .running import reproduce as reproduce
from .running import targets as targets
from .step import Cache as Cache
from .step import Step as Step
from .target import SCALES as SCALES
from .target import Drawing as Drawing
from .target import Target as Target
