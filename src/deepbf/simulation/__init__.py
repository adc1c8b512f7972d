"""Running models: a source whose seeds belong to the work, and a stream that runs ahead on any executor."""

from deepbf.simulation.source import CHUNK_SIZE, Source, chunk_seed, draw_num_obs
from deepbf.simulation.stream import SimulationStream, check_executor

__all__ = ["CHUNK_SIZE", "SimulationStream", "Source", "check_executor", "chunk_seed", "draw_num_obs"]
