"""What data look like: structures with their rules, and the layout that carries them from the models to the file."""

from deepbf.layout.data_layout import (
    DATA,
    HYPERPARAMETERS,
    WHOLE,
    ArrayLayout,
    Data,
    DataLayout,
    DataShape,
    NumObsRange,
    describe_shapes,
    shapes_of,
)
from deepbf.layout.groups import Nested
from deepbf.layout.images import Image
from deepbf.layout.structure import (
    STRUCTURES,
    Exchangeable,
    Responses,
    Series,
    Shape,
    Sizes,
    Structure,
    Vector,
    count_present,
    find_structure,
    is_absent,
)

__all__ = [
    "DATA",
    "HYPERPARAMETERS",
    "STRUCTURES",
    "WHOLE",
    "ArrayLayout",
    "Data",
    "DataLayout",
    "DataShape",
    "Exchangeable",
    "Image",
    "Nested",
    "NumObsRange",
    "Responses",
    "Series",
    "Shape",
    "Sizes",
    "Structure",
    "Vector",
    "count_present",
    "describe_shapes",
    "find_structure",
    "is_absent",
    "shapes_of",
]
