"""Comparisons and logic: results are bool."""

from plait_ops import calls as op
from plait_ops.spec import Pointwise

_DOC = """
    Whether ``self {sign} other``, element by element{more} A number counts by its value, also where the tensor's dtype does
    not have it.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1, 2, 3]), 2).tolist()
    {example}
    >>> pc.tensor([1, 2, 3]).{name}_(2).tolist()
    {written}
    """


def _compare(name, sign, example, more=".", dtypes="all"):
    written = example.replace("True", "1").replace("False", "0")
    operator = Pointwise(
        f"{name}(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        doc=_DOC.format(name=name, sign=sign, more=more, example=example, written=written),
        promote="bool",
        dtypes=dtypes,
        variants="function method",
    )
    return operator


eq = _compare("eq", "==", "[False, True, False]", "; nan equals nothing.", "any")
ne = _compare("ne", "!=", "[True, False, True]", "; nan differs from everything.", "any")
lt = _compare("lt", "<", "[True, False, False]")
le = _compare("le", "<=", "[True, True, False]")
gt = _compare("gt", ">", "[False, False, True]")
ge = _compare("ge", ">=", "[False, True, True]")


def _logical(name, text, example):
    return Pointwise(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        doc=f"""
    Whether {text}, element by element; numbers other than 0 count as True.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([True, True, False]), pc.tensor([True, False, False])).tolist()
    {example}
    """,
        promote="bool",
        dtypes="any",
        variants="function method",
    )


logical_and = _logical("logical_and", "both are True", "[True, False, False]")
logical_or = _logical("logical_or", "one of them is true", "[True, True, False]")
logical_xor = _logical("logical_xor", "exactly one of them is true", "[False, True, False]")

logical_not = Pointwise(
    "logical_not(Tensor self) -> Tensor",
    doc="""
    Whether an element is 0 (or False).

    >>> import plait_core as pc
    >>> pc.logical_not(pc.tensor([False, True])).tolist()
    [True, False]
    """,
    promote="bool",
    dtypes="any",
    variants="function method",
)


@logical_and.decompose
def _(self, other):
    return op.bitwise_and(op.ne(self, 0), op.ne(other, 0))


@logical_or.decompose
def _(self, other):
    return op.bitwise_or(op.ne(self, 0), op.ne(other, 0))


@logical_xor.decompose
def _(self, other):
    return op.bitwise_xor(op.ne(self, 0), op.ne(other, 0))


@logical_not.decompose
def _(self):
    return op.eq(self, 0)
