"""Training: from a stream of simulations to an ensemble of networks, within a budget."""

from deepbf.training.schedule import Budget
from deepbf.training.trained import TrainedEnsemble, TrainingRecord
from deepbf.training.trainer import train

__all__ = ["Budget", "TrainedEnsemble", "TrainingRecord", "train"]
