"""Test data of linalg/matmul: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.linalg.matmul import bmm, dot, linalg_matmul, matmul_, mm, mv, outer


def _bad_dtypes(operator, *shapes):
    def call(first, second):
        return lambda s: s(
            s.array(*shapes[0], dtype=first),
            *[s.array(*shape, dtype=second) for shape in shapes[1:]],
        )

    base = operator.schema.base
    operator.error("DTypeError", call("float32", "float64"), contains=[base, "float32", "float64"])
    operator.error("DTypeError", call("bool", "bool"), contains=[base, "bool"])


mm.reference(lambda self, mat2: np.matmul(self, mat2))


@mm.samples
def _(s):
    yield s(s.array(3, 4), s.array(4, 5))
    yield s(s.array(3, 4, dtype="float64"), s.array(5, 4, dtype="float64").T)
    yield s(s.strided(3, 4), s.strided(4, 2))
    yield s(s.backwards(3, 4), s.array(4, 2))
    yield s(s.array(3, 4, dtype="int64"), s.array(4, 5, dtype="int64"))
    yield s(s.array(3, 4, dtype="uint8"), s.array(4, 5, dtype="uint8"))
    yield s(s.array(3, 0), s.array(0, 5))
    yield s(s.array(0, 4), s.array(4, 5))
    yield s(s.array(70, 130), s.array(130, 65)).loosely(4)
    yield s(s.expanded(3, 4), s.array(4, 2))
    for dtype in ("complex64", "complex128"):
        yield s(s.array(3, 4, dtype=dtype), s.array(4, 5, dtype=dtype))
        yield s(s.strided(3, 4, dtype=dtype), s.backwards(4, 2, dtype=dtype))
    wide = s(s.array(70, 130, dtype="complex64"), s.array(130, 65, dtype="complex64"))
    yield wide.loosely(8).without_gradient()


mm.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2, 3)),
    contains=["mm", "self", "mat2", "(2, 3)"],
)
mm.error(
    "ShapeError", lambda s: s(s.array(2, 3), s.array(3)), contains=["mm", "mat2", "(2, 3)", "(3,)"]
)
_bad_dtypes(mm, (2, 3), (3, 2))
bmm.reference(lambda self, mat2: np.matmul(self, mat2))


@bmm.samples
def _(s):
    yield s(s.array(2, 3, 4), s.array(2, 4, 5))
    yield s(s.strided(2, 3, 4), s.array(2, 5, 4).transpose(0, 2, 1))
    yield s(s.array(2, 3, 4, dtype="int64"), s.array(2, 4, 5, dtype="int64"))
    yield s(s.array(0, 3, 4), s.array(0, 4, 5))
    yield s(s.array(2, 3, 0), s.array(2, 0, 5))
    yield s(s.expanded(3, 2, 4), s.array(3, 4, 2))
    z = s.strided(5, 3, 4, dtype="complex64")
    yield s(z, s.array(5, 4, 2, dtype="complex64"))


bmm.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(3, 2)),
    contains=["bmm", "(2, 3)", "(3, 2)", "3 dimensions"],
)
bmm.error(
    "ShapeError",
    lambda s: s(s.array(2, 3, 4), s.array(3, 4, 5)),
    contains=["bmm", "batch", "(2, 3, 4)", "(3, 4, 5)"],
)
bmm.error(
    "ShapeError",
    lambda s: s(s.array(2, 3, 4), s.array(2, 3, 5)),
    contains=["bmm", "(2, 3, 4)", "(2, 3, 5)"],
)
_bad_dtypes(bmm, (1, 2, 3), (1, 3, 2))
mv.reference(lambda self, vec: np.matmul(self, vec))
mv.samples(
    lambda s: iter(
        [
            s(s.array(3, 4), s.array(4)),
            s(s.strided(3, 4), s.backwards(4)),
            s(s.array(3, 0), s.array(0)),
            s(s.array(2, 3, dtype="int64"), s.array(3, dtype="int64")),
            s(s.array(2, 3, dtype="complex64"), s.array(3, dtype="complex64")),
        ]
    )
)
mv.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2)),
    contains=["mv", "self", "vec", "(2, 3)", "(2,)"],
)
mv.error("ShapeError", lambda s: s(s.array(3), s.array(3)), contains=["mv", "self", "vec", "(3,)"])
_bad_dtypes(mv, (2, 3), (3,))
dot.reference(lambda self, tensor: np.asarray(np.dot(self, tensor)))
dot.samples(
    lambda s: iter(
        [
            s(s.array(4), s.array(4)),
            s(s.strided(5), s.backwards(5)),
            s(s.array(0), s.array(0)),
            s(s.array(3, dtype="int64"), s.array(3, dtype="int64")),
            s(s.array(3, dtype="complex64"), s.array(3, dtype="complex64")),
        ]
    )
)
dot.error(
    "ShapeError",
    lambda s: s(s.array(3), s.array(2)),
    contains=["dot", "self", "tensor", "(3,)", "(2,)"],
)
dot.error("ShapeError", lambda s: s(s.array(2, 3), s.array(3)), contains=["dot", "(2, 3)", "(3,)"])
_bad_dtypes(dot, (3,), (3,))
outer.reference(lambda self, vec2: np.outer(self, vec2))
outer.samples(lambda s: iter([s(s.array(3), s.array(4)), s(s.array(0), s.array(2))]))
outer.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(3)),
    contains=["outer", "self", "vec2", "(2, 3)", "(3,)"],
)


matmul_.reference(lambda self, other: np.matmul(self, other))


@matmul_.samples
def _(s):
    yield s(s.array(3, 4), s.array(4, 5))
    yield s(s.array(4), s.array(4))
    yield s(s.array(3, 4), s.array(4))
    yield s(s.array(4), s.array(4, 3))
    yield s(s.array(2, 3, 4), s.array(4, 5))
    yield s(s.array(2, 3, 4), s.array(4))
    yield s(s.array(4), s.array(2, 4, 3))
    yield s(s.array(2, 1, 3, 4), s.array(5, 4, 2))
    yield s(s.strided(2, 3, 4), s.strided(2, 4, 3))
    yield s(s.array(3, 4, dtype="int64"), s.array(2, 4, 5, dtype="int64"))
    yield s(s.array(2, 0, 4), s.array(2, 4, 5))


matmul_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2, 3)),
    contains=["matmul", "self", "other", "(2, 3)"],
)
matmul_.error(
    "ShapeError", lambda s: s(s.array(), s.array(2)), contains=["matmul", "self", "other", "()"]
)
matmul_.error(
    "ShapeError",
    lambda s: s(s.array(2, 2, 3), s.array(3, 3, 2)),
    contains=["matmul", "broadcast", "(2,)", "(3,)"],
)
matmul_.error(
    "DTypeError",
    lambda s: s(s.array(2, 3), s.array(3, 2, dtype="float64")),
    contains=["self", "float32", "float64"],
)


linalg_matmul.reference(lambda self, other: np.matmul(self, other))
linalg_matmul.samples(lambda s: iter([s(s.array(2, 3), s.array(3, 2))]))
linalg_matmul.error("ShapeError", lambda s: s(s.array(2, 3), s.array(2)), contains=["(2, 3)"])
