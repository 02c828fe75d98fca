"""One triangle of a matrix."""

import numpy as np

from plait_ops.spec import Operator
from plait_ops.words import check, result


def _triangle(name, text, example, reference):
    operator = Operator(
        f"{name}(Tensor self, int diagonal|k=0) -> Tensor",
        doc=f"""
    The {text} of the matrices in the last two dimensions, 0 elsewhere; `diagonal` moves its edge to the upper right.

    Shape: at least two dimensions; the result has the shape of `self`. Dtypes: all.
    Raises: ShapeError for fewer dimensions.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([[1, 2], [3, 4]])).tolist()
    {example}
    """,
        inplace=True,
        out=True,
        dtypes="any",
    )

    @operator.shape
    def _(self):
        check(self.ndim >= 2, f"`self` must have at least 2 dimensions; got shape {self.shape}")
        return result(self.shape, self.dtype)

    operator.reference(
        lambda self, diagonal=0: reference(self, int(np.clip(diagonal, -(2**31), 2**31)))
    )

    @operator.samples
    def _(s):
        yield s(s.array(3, 3))
        yield s(s.array(3, 4), 1)
        yield s(s.array(4, 3), -2)
        yield s(s.array(2, 3, 3), 10)
        yield s(s.strided(3, 4), -10)
        yield s(s.backwards(2, 3, 4), 1)
        yield s(s.array(3, 3, dtype="int64"))
        yield s(s.array(3, 3, dtype="bool"))
        yield s(s.array(3, 3, dtype="complex64"))
        yield s(s.array(2, 0, 3))
        yield s(s.array(3, 3), 2**62)

    operator.error(
        "ShapeError", lambda s: s(s.array(3)), contains=[name, "self", "2 dimensions", "(3,)"]
    )
    operator.error("TypeError", lambda s: s(s.array(3, 3), 0.5), contains=[name, "diagonal"])
    return operator


tril = _triangle("tril", "lower triangle with the diagonal", "[[1, 0], [3, 4]]", np.tril)
triu = _triangle("triu", "upper triangle with the diagonal", "[[1, 2], [0, 4]]", np.triu)


@tril.vjp("self")
def _(g, diagonal):
    return tril(g, diagonal)


@triu.vjp("self")
def _(g, diagonal):
    return triu(g, diagonal)
