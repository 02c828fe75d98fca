"""Sequences: ranges, equal steps, the identity matrix."""

from plait_ops import calls as op
from plait_ops.spec import Operator
from plait_ops.words import (
    DType,
    cast_argument,
    check,
    conjugate,
    count_of,
    default_dtype,
    dtype_of,
    float64,
    in_range,
    int64,
    is_floating,
    is_integral,
    is_tensor,
    require,
    require_common,
    result,
    sizes,
    to_dtype,
)

complex128 = DType("complex128")

arange = Operator(
    "arange(Scalar end, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    The numbers ``0, 1, ...`` that come before `end`. `dtype` None: int64, or the default dtype if `end` is a float number.

    Args:
        end: The end, which is not in the result.

    Raises: ValueError if `end` is negative or not finite.

    >>> import plait_core as pc
    >>> pc.arange(3).tolist()
    [0, 1, 2]
    """,
    kernel="optional: without a kernel other operators compute it; out[i] = i in the dtype of the result, which has as many elements as there are; in[0] is not needed.",
)
arange_start = Operator(
    "arange.start(Scalar start, Scalar end, Scalar step=1, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    The numbers ``start, start + step, ...`` that come before `end`: ``ceil((end - start) / step)`` of them. `dtype` None:
    int64, or the default dtype if one of the three is a float. With an integer dtype fractions are cut off, as in PyTorch:
    for int64 those of all three arguments, before the elements are counted; for other integer dtypes those of `start` and
    `step`.

    Args:
        end: The end, which is not in the result.

    Raises: ValueError if `step` is 0 or leads away from `end`, or if a bound is not finite.

    >>> import plait_core as pc
    >>> pc.arange(1, 7, 2).tolist()
    [1, 3, 5]
    """,
    kernel="out[i] = start + i * step: of an integer dtype in int64, without fractions; else in float64, then cast.",
)


@arange_start.shape
def _(start, end, step, dtype):
    number = (
        int64
        if is_integral(dtype_of(start))
        and is_integral(dtype_of(end))
        and is_integral(dtype_of(step))
        else default_dtype()
    )
    made = dtype if dtype is not None else number
    require("dtype", made, "all")
    n = count_of(start, end, step, made == int64)
    return result([n], made)


@arange.shape
def _(end, dtype):
    made = (
        dtype if dtype is not None else (int64 if is_integral(dtype_of(end)) else default_dtype())
    )
    require("dtype", made, "all")
    n = count_of(0, end, 1, made == int64)
    return result([n], made)


@arange.decompose
def _(end, dtype, device):
    return arange_start(0, end, 1, dtype=dtype, device=device)


def _steps(name, arguments, text, example, kernel):
    bounded = name == "linspace"
    refused = " or an end does not fit in `dtype`" if bounded else ""
    operator = Operator(
        f"{name}(Scalar start, Scalar end, int steps{arguments}, *, dtype? dtype=None, device? device=None) -> Tensor",
        doc=f"""
    {text} `dtype` None is the default dtype, or the complex dtype of it if one of the two is complex. With an integer
    dtype, fractions of `start` and `end` are cut off first, as in PyTorch.

    Raises: ValueError if `steps` is negative{refused}; DTypeError for bool, and for a real dtype if a number is complex.

    >>> import plait_core as pc
    >>> pc.{name}{example}
    """,
        kernel=kernel,
        dtypes="arithmetic",
        libm="" if bounded else "all",
    )

    @operator.shape
    def _(start, end, steps, dtype):
        check(steps >= 0, f"`steps` must not be negative; got {steps}", "ValueError")
        real = (is_floating(dtype_of(start)) or is_integral(dtype_of(start))) and (
            is_floating(dtype_of(end)) or is_integral(dtype_of(end))
        )
        number = default_dtype()
        if not real:
            whole = is_floating(dtype_of(start)) or is_integral(dtype_of(start))
            number = dtype_of(end) if whole else dtype_of(start)
        made = dtype if dtype is not None else number
        require("dtype", made, "arithmetic")
        check(
            real or not (is_floating(made) or is_integral(made)),
            f"`dtype` must be complex for complex `start` or `end`; got {made}",
            "DTypeError",
        )
        if bounded and real:  # the exponents may fit although their powers do not
            in_range("start", start, made)
            in_range("end", end, made)
        return result([steps], made)

    return operator


linspace = _steps(
    "linspace",
    "",
    "`steps` numbers from `start` to `end`, both included, equally far apart.",
    "(0, 1, 5).tolist()\n    [0.0, 0.25, 0.5, 0.75, 1.0]",
    "in float64: out[i] = start + i * (end - start) / (steps - 1) below the middle, counted from `end` above it.",
)
logspace = _steps(
    "logspace",
    ", float base=10",
    "``base ** linspace(start, end, steps)``.",
    "(0, 3, 4).tolist()\n    [1.0, 10.0, 100.0, 1000.0]",
    "powers are computed in float64.",
)


def _between_tensors(name, arguments):
    operator = Operator(
        f"{name}.tensors(Tensor|Scalar start, Tensor|Scalar end, int steps{arguments}, *, dtype? dtype=None, "
        "device? device=None) -> Tensor",
        doc=f"""
    `{name}` between 0-d tensors.

    Raises: ShapeError unless `start` and `end` are 0-d or numbers, ValueError if `steps` is negative.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor(0.0), pc.tensor(1.0), 2).shape
    plait.Size([2])
    """,
        kernel="as that of numbers; tensors are 0-d, in float64, complex128 or int64.",
        dtypes="arithmetic",
        libm="all" if name == "logspace" else "",
    )

    @operator.shape
    def _(start, end, steps, dtype):
        check(steps >= 0, f"`steps` must not be negative; got {steps}", "ValueError")
        if is_tensor(start):
            check(start.ndim == 0, f"`start` must be 0-d; got shape {start.shape}")
        if is_tensor(end):
            check(end.ndim == 0, f"`end` must be 0-d; got shape {end.shape}")
        common = require_common("start", start, "end", end)
        real = is_floating(common) or is_integral(common)
        number = default_dtype() if real else common
        made = dtype if dtype is not None else number
        require("dtype", made, "arithmetic")
        check(
            real or not (is_floating(made) or is_integral(made)),
            f"`dtype` must be complex for complex `start` or `end`; got {made}",
            "DTypeError",
        )
        wide = float64
        if not real:
            wide = complex128
        if is_integral(common):
            wide = int64
        cast_argument("start", wide)
        cast_argument("end", wide)
        return result([steps], made)

    return operator


linspace_tensors = _between_tensors("linspace", "")
logspace_tensors = _between_tensors("logspace", ", float base=10")


@linspace_tensors.vjp("start")
def _(g, steps):
    return op.dot(g, linspace(1.0, 0.0, steps, dtype=g.dtype, device=g.device))


@linspace_tensors.vjp("end")
def _(g, steps):
    return op.dot(g, linspace(0.0, 1.0, steps, dtype=g.dtype, device=g.device))


@logspace_tensors.vjp("start")
def _(g, result, steps, base):
    share = linspace(1.0, 0.0, steps, dtype=g.dtype, device=g.device)
    slope = op.log(op.full([], base, dtype=g.dtype, device=g.device))
    return op.dot(g, conjugate(result * share * slope))


@logspace_tensors.vjp("end")
def _(g, result, steps, base):
    share = linspace(0.0, 1.0, steps, dtype=g.dtype, device=g.device)
    slope = op.log(op.full([], base, dtype=g.dtype, device=g.device))
    return op.dot(g, conjugate(result * share * slope))


eye = Operator(
    "eye(int n, int? m=None, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A matrix of shape ``(n, m)`` with 1 on the diagonal and 0 elsewhere; `m` None is `n`, `dtype` None is the default dtype.

    Args:
        n: The number of rows.

    Raises: ShapeError if `n` or `m` is negative.

    >>> import plait_core as pc
    >>> pc.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """,
    kernel="the result is in C order, of any dtype; in[1] None: as many columns as rows.",
    dtypes="any",
)


@eye.shape
def _(n, m, dtype):
    columns = m if m is not None else n
    check(n >= 0 and columns >= 0, f"`n` and `m` must not be negative; got {n} and {columns}")
    sizes("n", [n, columns])
    return result([n, columns], dtype if dtype is not None else default_dtype())


@eye.decompose
def _(n, m, dtype, device):
    rows = op.reshape(op.arange(n, device=device), [n, 1])
    columns = op.arange(m if m is not None else n, device=device)
    return to_dtype(op.eq(rows, columns), dtype if dtype is not None else default_dtype())
