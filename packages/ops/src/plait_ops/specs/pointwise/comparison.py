"""Comparisons and logic: results are bool."""

import numpy as np

from plait_ops.spec import Pointwise

_DOC = """
    Whether ``self {sign} other``, element by element{more}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1, 2, 3]), 2).tolist()
    {example}
    >>> pc.tensor([1, 2, 3]).{name}_(2).tolist()
    {written}
    """


def _compare(name, sign, reference, example, more=".", dtypes="all"):
    written = example.replace("True", "1").replace("False", "0")
    operator = Pointwise(
        f"{name}(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        doc=_DOC.format(name=name, sign=sign, more=more, example=example, written=written),
        promote="bool",
        dtypes=dtypes,
        reference=reference,
    )

    @operator.samples
    def _(s):
        yield s(s.array(30, dtype="int64"), s.array(30, dtype="int64"))
        yield s(
            np.array([np.nan, 1, np.inf, -0.0], "float32"),
            np.array([np.nan, np.nan, np.inf, 0], "float32"),
        )
        yield s(s.array(30, dtype="uint8"), 2.5)

    operator.error("TypeError", lambda s: s(1, 2.0), contains=[name, "self", "Tensor", "number"])
    return operator


eq = _compare("eq", "==", np.equal, "[False, True, False]", "; nan equals nothing.", "any")
ne = _compare(
    "ne", "!=", np.not_equal, "[True, False, True]", "; nan differs from everything.", "any"
)
lt = _compare("lt", "<", np.less, "[True, False, False]")
le = _compare("le", "<=", np.less_equal, "[True, True, False]")
gt = _compare("gt", ">", np.greater, "[False, False, True]")
ge = _compare("ge", ">=", np.greater_equal, "[False, True, True]")


def _logical(name, text, reference, example):
    return Pointwise(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        doc=f"""
    Whether {text}, element by element; what is not 0 counts as True.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([True, True, False]), pc.tensor([True, False, False])).tolist()
    {example}
    """,
        promote="bool",
        dtypes="any",
        reference=reference,
    )


logical_and = _logical("logical_and", "both are true", np.logical_and, "[True, False, False]")
logical_or = _logical("logical_or", "one of them is true", np.logical_or, "[True, True, False]")
logical_xor = _logical(
    "logical_xor", "exactly one of them is true", np.logical_xor, "[False, True, False]"
)

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
    reference=np.logical_not,
)
