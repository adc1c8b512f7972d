"""The pool: every simulation made so far, ready to be drawn again, shared out among the ensemble's members."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Mini-batches handed to the compiled block at once: enough steps to forget the hand-over, few enough for the cache.
BLOCK_BYTES = 48_000_000
MOST_STEPS_A_BLOCK = 64
MOST_ENUMERATED = 6
NUM_HALVES = 256
# With the program itself and the compiler's working memory this keeps a fit under 1.5 GB.
POOL_BYTES = 560_000_000
# Enough for two blocks of steps that use every simulation once.
FRESH_BYTES = 2 * BLOCK_BYTES


class Pool:
    """Prepared simulations in segments of one mini-batch, new ones drawn first, old ones again when none are new.

    Each segment belongs to about half of the members. Members then differ by what they have seen as well as by how
    they started, and by the half-sampling identity the spread among members trained on random halves estimates the
    standard error of one trained on everything. When memory is full, new segments overwrite the oldest.
    """

    def __init__(
        self,
        num_models: int,
        width: int,
        batch_size: int,
        num_members: int,
        rng: np.random.Generator,
        *,
        capacity_bytes: int = POOL_BYTES,
        most_added: int = 0,
    ) -> None:
        segment_bytes = num_models * batch_size * width * 4
        # Room for what is added at once and for what waits meanwhile, or new segments would overwrite unread ones.
        fewest = 2 * num_members + 2 * -(-most_added // batch_size)
        self._num_slots = max(fewest, capacity_bytes // segment_bytes)
        # Untouched pages cost nothing: memory grows as simulations arrive.
        self._slots = np.empty((num_models, self._num_slots, batch_size, width), np.float32)
        self._owners = half_of_members(num_members)
        self._members = [MemberDraws(num_models, rng) for _ in range(num_members)]
        # Rows in the segment that is being filled.
        self._num_started = 0
        self._num_segments = 0
        self._num_drawn = 0
        self.num_rows = 0
        self.batch_size = batch_size
        self.most_steps_a_block = int(np.clip(BLOCK_BYTES // (segment_bytes * num_members), 1, MOST_STEPS_A_BLOCK))
        # Two, by turns: one is read by the running block while the other is filled.
        shape = (self.most_steps_a_block, num_members, num_models, batch_size, width)
        self._buffers = deque([np.zeros(shape, np.float32), np.zeros(shape, np.float32)])

    def add(self, rows: Sequence[NDArray[np.float32]]) -> None:
        """Take in prepared rows, the same number from each model."""
        num_rows = len(rows[0])
        self.num_rows += num_rows
        start = 0
        while start < num_rows:
            end = min(num_rows, start + self.batch_size - self._num_started)
            self._append([model_rows[start:end] for model_rows in rows])
            start = end

    def complete_last_segment(self) -> None:
        """Fill a started segment with earlier rows, so that no simulation of a fixed number goes unused."""
        if self._num_started == 0:
            return
        # Fewer rows than one mini-batch in all: repeat them until it is full.
        earlier = self._slots[:, 0] if self._num_segments else self._slots[:, 0, : self._num_started]
        missing = (self.batch_size - self._num_started, self._slots.shape[3])
        self._append([np.resize(model_rows, missing) for model_rows in earlier])

    @property
    def has_started_segment(self) -> bool:
        """Whether some rows wait for a segment to be full."""
        return self._num_started > 0

    def ready(self) -> bool:
        """Whether every member owns at least one segment."""
        return all(member.owned for member in self._members)

    def num_passes(self) -> float:
        """Return how many rows each member has drawn for each row there is."""
        return self._num_drawn / max(1, min(self._num_segments, self._num_slots))

    def num_new_steps(self) -> int:
        """Return how many steps can be taken before some member has to use a simulation again."""
        return min(len(member.new) for member in self._members)

    def num_rows_for(self, num_steps: int) -> int:
        """Return how many rows per model must have come at least, for so many steps that use each once."""
        if len(self._members) == 1:
            return num_steps * self.batch_size
        # A segment belongs to half of the members, rounded up at most.
        largest = max(map(len, self._owners))
        return num_steps * len(self._members) // largest * self.batch_size

    def num_steps_brought(self) -> int:
        """Return how many steps, taken or not, the rows so far are enough for, where each is used once."""
        return self._num_drawn + self.num_new_steps()

    def draw(self, num_steps: int) -> NDArray[np.float32]:
        """Return mini-batches, shape (most_steps_a_block, members, models, batch_size, width); the first ones count.

        The array is overwritten by the draw after the next one.
        """
        self._num_drawn += num_steps
        batches = self._buffers[0]
        self._buffers.rotate()
        for step, (m, member) in itertools.product(range(num_steps), enumerate(self._members)):
            for model_index, slot in enumerate(member.next_slots()):
                batches[step, m, model_index] = self._slots[model_index, slot]
        return batches

    def _append(self, rows: Sequence[NDArray[np.float32]]) -> None:
        """Put rows that fit into the started segment, and hand it out once it is full."""
        slot = self._num_segments % self._num_slots
        end = self._num_started + len(rows[0])
        for model_index, model_rows in enumerate(rows):
            self._slots[model_index, slot, self._num_started : end] = model_rows
        self._num_started = end % self.batch_size
        if self._num_started == 0:
            for m in self._owners[slot % len(self._owners)]:
                self._members[m].receive(slot, first_time=self._num_segments < self._num_slots)
            self._num_segments += 1


class MemberDraws:
    """Which slots one member draws next: new ones in order of arrival, otherwise a fresh shuffle of all it owns."""

    def __init__(self, num_models: int, rng: np.random.Generator) -> None:
        self._rng = rng
        self._shuffled: list[list[int]] = [[] for _ in range(num_models)]
        self.owned: list[int] = []
        self.new: deque[int] = deque()

    def receive(self, slot: int, *, first_time: bool) -> None:
        """Take note of a slot with new rows."""
        if first_time:
            self.owned.append(slot)
        self.new.append(slot)

    def next_slots(self) -> list[int]:
        """Return a slot for each model; models are shuffled apart, so old rows meet in new company."""
        if self.new:
            return [self.new.popleft()] * len(self._shuffled)
        return [self._next_old(k) for k in range(len(self._shuffled))]

    def _next_old(self, model_index: int) -> int:
        if not self._shuffled[model_index]:
            self._shuffled[model_index] = self._rng.permutation(self.owned).tolist()
        return self._shuffled[model_index].pop()


def half_of_members(num_members: int) -> list[tuple[int, ...]]:
    """Return ways to pick half of the members (both roundings of an odd half), each followed by its complement.

    All of them for small ensembles; random ones, always the same, for large.
    """
    if num_members == 1:
        return [(0,)]
    if num_members <= MOST_ENUMERATED:
        halves = list(itertools.combinations(range(num_members), num_members // 2))
    else:
        rng = np.random.default_rng(num_members)
        halves = [tuple(sorted(rng.permutation(num_members)[: num_members // 2].tolist())) for _ in range(NUM_HALVES)]
    everyone = set(range(num_members))
    # With its complement next to it, the first two segments already serve every member.
    paired = [half for c in halves for half in (c, tuple(sorted(everyone - set(c))))]
    return list(dict.fromkeys(paired))
