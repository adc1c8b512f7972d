"""Images: values on a rectangular grid whose places mean something, of one fixed size, all of them there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deepbf.layout.structure import Shape, Sizes, Structure

# One line of pixels has no neighbours across it.
FEWEST_PIXELS = 2


class Image(Structure):
    """Rows of pixels along axis 1 of what simulators return, columns along axis 2, channels, if any, along axis 3."""

    name = "image"
    num_axes = 2
    simulated_shape = "(size, rows, columns) or (size, rows, columns, channels)"

    def default_network(self, shape: Shape) -> str:
        """Return "summary", which reads fixed features of the image, for every shape."""
        del shape
        return "summary"

    def check_simulated(self, called: str, data: Sequence[NDArray[np.generic]]) -> None:
        shape = data[0].shape[1:]
        if len(shape) not in (2, 3):
            raise ValueError(
                f"{called} needs data sets with an axis of rows and one of columns, and perhaps one of channels; the "
                f"simulators return data sets of shape {shape}. Return shape {self.simulated_shape}, or pass "
                "structure='vector'."
            )
        if min(shape[:2]) < FEWEST_PIXELS or 0 in shape:
            raise ValueError(
                f"{called} needs at least {FEWEST_PIXELS} rows and {FEWEST_PIXELS} columns of pixels; the simulators "
                f"return images of shape {shape}. A single line of pixels is a series: return shape (size, pixels) and "
                "pass structure='series'."
            )
        super().check_simulated(called, data)

    def sizes_of(self, data: Sequence[NDArray[np.generic]]) -> Sizes:
        """Return nothing: images are of one size, and no pixel is an observation of its own."""
        del data
        return ()
