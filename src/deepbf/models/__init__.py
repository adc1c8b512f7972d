"""What the user brings: models, and sets of models with prior probabilities."""

from deepbf.models.model import Model, ModelSet, SimulationError, Simulations

__all__ = ["Model", "ModelSet", "SimulationError", "Simulations"]
