"""What the user brings: models, and sets of models with prior probabilities."""

from deepbf.models.model import Model, SimulationError, Simulations
from deepbf.models.model_set import ModelSet

__all__ = ["Model", "ModelSet", "SimulationError", "Simulations"]
