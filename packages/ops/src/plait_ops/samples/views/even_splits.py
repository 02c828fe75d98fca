"""Test data of views/even_splits: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops import calls as op
from plait_ops.specs.views.even_splits import (
    dsplit,
    dsplit_indices,
    hsplit,
    hsplit_indices,
    split_with_sizes,
    tensor_split_,
    tensor_split_indices_,
    tensor_split_tensor_,
    unsafe_chunk,
    unsafe_split,
    unsafe_split_with_sizes,
    vsplit,
    vsplit_indices,
)


def _split(self, at, dim=0):
    return [np.array(part) for part in np.array_split(self, at, dim)]


tensor_split_.reference(
    lambda self, indices_or_sections, dim=0: _split(self, indices_or_sections, dim)
)
tensor_split_indices_.reference(
    lambda self, indices_or_sections, dim=0: _split(self, list(indices_or_sections), dim)
)
tensor_split_tensor_.reference(
    lambda self, indices_or_sections, dim=0: _split(self, indices_or_sections.tolist(), dim)
)
tensor_split_.samples(
    lambda s: iter(
        [s(s.array(7), 3), s(s.array(2, 5), 2, -1), s(s.array(2), 4), s(s.strided(4, 3), 2)]
    )
)
tensor_split_indices_.samples(
    lambda s: iter(
        [
            s(s.array(7), (2, 5)),
            s(s.array(2, 5), (1, -1), 1),
            s(s.array(4), (3, 1, 9)),
            s(s.array(3), ()),
        ]
    )
)
tensor_split_tensor_.samples(
    lambda s: iter([s(s.array(7), np.array(3)), s(s.array(2, 5), np.array([1, 3]), 1)])
)
tensor_split_.error(
    "ValueError", lambda s: s(s.array(3), 0), contains=["tensor_split", "indices_or_sections", "0"]
)
tensor_split_.error(
    "ShapeError", lambda s: s(s.array(), 1), contains=["tensor_split", "self", "()"]
)
tensor_split_indices_.error(
    "IndexError", lambda s: s(s.array(3), (1,), 1), contains=["tensor_split", "dim", "(3,)"]
)
tensor_split_tensor_.error(
    "DTypeError",
    lambda s: s(s.array(3), s.array(1)),
    contains=["tensor_split", "indices_or_sections", "float32"],
)


def _along(sections, indices):
    name = sections.schema.base
    function = getattr(np, name)
    for each in (sections, indices):
        each.reference(
            lambda self, indices_or_sections: [
                np.array(part)
                for part in function(
                    self,
                    indices_or_sections
                    if isinstance(indices_or_sections, int)
                    else list(indices_or_sections),
                )
            ]
        )
    sections.error("ShapeError", lambda s: s(s.array(), 1), contains=[name, "self", "()"])
    indices.error("ShapeError", lambda s: s(s.array(), (1,)), contains=[name, "self", "()"])
    size = {"hsplit": (2, 6), "vsplit": (6, 2), "dsplit": (1, 2, 6)}[name]
    sections.samples(lambda s: iter([s(s.array(*size), 2), s(s.strided(*size), 3)]))
    indices.samples(lambda s: iter([s(s.array(*size), (1, 4)), s(s.strided(*size), (2,))]))
    sections.error(
        "ValueError",
        lambda s: s(s.array(*size), 4),
        contains=[name, "indices_or_sections", "4", "6"],
    )


_along(hsplit, hsplit_indices)
_along(vsplit, vsplit_indices)
_along(dsplit, dsplit_indices)


for each in (split_with_sizes, unsafe_split_with_sizes):
    each.reference(
        lambda self, split_sizes, dim=0: np.split(self, np.cumsum(split_sizes)[:-1], axis=dim)
    )
    each.samples(lambda s: iter([s(s.array(5), (1, 4)), s(s.array(2, 6), (1, 2, 3), -1)]))
    each.error(
        "ValueError", lambda s: s(s.array(3), (1, 1)), contains=["split", "split_sizes", "(1, 1)"]
    )
unsafe_split.reference(lambda self, split_size, dim=0: op.split(self, split_size, dim))
unsafe_split.samples(lambda s: iter([s(s.array(5), 2), s(s.array(2, 6), 3, -1)]))
unsafe_split.error("ValueError", lambda s: s(s.array(3), 0), contains=["split", "split_size", "0"])
unsafe_chunk.reference(lambda self, chunks, dim=0: op.chunk(self, chunks, dim))
unsafe_chunk.samples(lambda s: iter([s(s.array(5), 2), s(s.array(2, 6), 3, -1)]))
unsafe_chunk.error("ValueError", lambda s: s(s.array(3), 0), contains=["chunk", "chunks", "0"])
