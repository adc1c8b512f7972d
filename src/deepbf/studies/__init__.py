"""Ready-made studies: models, data shapes and, where there is one, the exact Bayes factor."""

from deepbf.studies.catalogue import load, names
from deepbf.studies.study import Study

__all__ = ["Study", "load", "names"]
