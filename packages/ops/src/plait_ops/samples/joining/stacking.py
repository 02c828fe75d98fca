"""Test data of joining/stacking: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.joining.joining import promoted
from plait_ops.specs.joining.stacking import (
    atleast_1d_,
    atleast_2d_,
    atleast_3d_,
    column_stack,
    dstack,
    hstack,
    row_stack,
    stack,
    vstack,
)


def _of_list(operator, reference, samples):
    name = operator.schema.base
    operator.reference(
        lambda tensors: np.ascontiguousarray(
            reference([t.astype(promoted(tensors)) for t in tensors])
        )
    )
    operator.samples(samples)
    operator.error("ValueError", lambda s: s([]), contains=[name, "tensors"])


def _same(s):
    yield s([s.array(2, 3), s.array(2, 3)])
    yield s([s.array(3), s.array(3, dtype="int64")])
    yield s([s.array(), s.array()])
    yield s([s.strided(2, 3, 4), s.backwards(2, 3, 4), s.array(2, 3, 4)])


_of_list(hstack, np.hstack, _same)
_of_list(vstack, np.vstack, _same)
_of_list(row_stack, np.vstack, _same)
_of_list(dstack, np.dstack, _same)
_of_list(column_stack, np.column_stack, _same)


hstack.error(
    "ShapeError", lambda s: s([s.array(2, 3), s.array(3, 3)]), contains=["cat", "(2, 3)", "(3, 3)"]
)


def _atleast(operator, n, reference):
    operator.reference(reference)
    operator.samples(
        lambda s: iter([s(s.array()), s(s.array(3)), s(s.array(2, 3)), s(s.array(2, 3, 4))])
    )
    operator.error("TypeError", lambda s: s("a"), contains=[f"atleast_{n}d", "self"])


_atleast(atleast_1d_, 1, lambda self: np.atleast_1d(self))
_atleast(atleast_2d_, 2, lambda self: np.atleast_2d(self))
_atleast(atleast_3d_, 3, lambda self: np.atleast_3d(self))


stack.reference(
    lambda tensors, dim=0: np.stack([t.astype(promoted(tensors)) for t in tensors], axis=dim)
)


@stack.samples
def _(s):
    yield s([s.array(2, 3), s.array(2, 3)])
    yield s([s.array(2, 3), s.strided(2, 3)], -1)
    yield s([s.array(), s.array()])
    yield s([s.array(3, dtype="int64"), s.array(3)], 1)


stack.error("ValueError", lambda s: s([]), contains=["stack", "tensors", "empty"])
stack.error(
    "ShapeError",
    lambda s: s([s.array(2), s.array(3)]),
    contains=["stack", "tensors", "(2,)", "(3,)"],
)
stack.error("IndexError", lambda s: s([s.array(2)], 2), contains=["unsqueeze", "dim", "(2,)"])
