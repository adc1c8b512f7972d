"""Running models: seeds that belong to the work, chunks, and a stream that runs ahead on any executor."""

from deepbf.simulation.chunks import CHUNK_SIZE, chunk_seed, simulate_chunks
from deepbf.simulation.num_obs import NumObsRange
from deepbf.simulation.stream import SimulationStream

__all__ = ["CHUNK_SIZE", "NumObsRange", "SimulationStream", "chunk_seed", "simulate_chunks"]
