"""Test data of creation/ranges: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.creation.ranges import (
    arange,
    arange_start,
    eye,
    linspace,
    linspace_tensors,
    logspace,
    logspace_tensors,
)


def _arange(start, end, step, dtype):
    if dtype == "int64":
        start, end, step = int(start), int(end), int(step)
    elif dtype and "int" in dtype:
        n = len(np.arange(start, end, step))
        return (int(start) + int(step) * np.arange(n)).astype(dtype)
    kinds = {np.asarray(value).dtype.kind for value in (start, end, step)}
    return np.arange(start, end, step).astype(dtype or ("float32" if "f" in kinds else "int64"))


arange_start.reference(lambda start, end, step, dtype=None: _arange(start, end, step, dtype))
arange.reference(lambda end, dtype=None: _arange(0, end, 1, dtype))


@arange.samples
def _(s):
    yield s(5)
    yield s(0)
    yield s(2.5)
    yield s(4, dtype="float64")
    yield s(3, dtype="uint8")
    yield s(2.5, dtype="int64")


@arange_start.samples
def _(s):
    yield s(2, 7)
    yield s(7, 2, -2)
    yield s(0, 1, 0.25)
    yield s(1, 1)
    yield s(-3, 3, 2, dtype="int16")
    yield s(0.5, 5.5, 1.5, dtype="int64")
    yield s(-1.5, 2, 1, dtype="int32")
    yield s(0, 2, 0.5, dtype="float16")


arange.error("ValueError", lambda s: s(-1), contains=["arange", "end", "-1"])
arange.error("ValueError", lambda s: s(float("nan")), contains=["arange", "end", "nan"])
arange_start.error("ValueError", lambda s: s(0, 3, 0), contains=["arange", "step", "0"])
arange_start.error(
    "ValueError", lambda s: s(0, 3, 0.5, dtype="int64"), contains=["arange", "step", "0"]
)
arange_start.error("ValueError", lambda s: s(0, 3, -1), contains=["arange", "step", "-1"])
arange_start.error(
    "ValueError", lambda s: s(0.0, float("inf"), 1), contains=["arange", "end", "inf"]
)


def _steps(operator):
    name = operator.schema.base

    operator.error("ValueError", lambda s: s(0, 1, -2), contains=[name, "steps", "-2"])
    operator.error("DTypeError", lambda s: s(0, 1, 2, dtype="bool"), contains=["dtype", "bool"])
    operator.error(
        "DTypeError", lambda s: s(0, 1j, 2, dtype="float32"), contains=["complex", "float32"]
    )


_steps(linspace)
_steps(logspace)


def _ends(start, end, dtype):
    return (int(start), int(end)) if dtype and "int" in dtype else (start, end)


def _made(values, start, end, dtype):
    complex_ = isinstance(start, complex) or isinstance(end, complex)
    return values.astype(dtype or ("complex64" if complex_ else "float32"))


linspace.reference(
    lambda start, end, steps, dtype=None: _made(
        np.linspace(*_ends(start, end, dtype), steps), start, end, dtype
    )
)
logspace.reference(
    lambda start, end, steps, base=10.0, dtype=None: _made(
        np.power(
            complex(base) if isinstance(end, complex) else base,
            np.linspace(*_ends(start, end, dtype), steps),
        ),
        start,
        end,
        dtype,
    )
)


for _start, _end, _dtype in ((0, 300, "uint8"), (-1, 1, "uint8"), (0, 1e39, "float32")):
    linspace.error(
        "ValueError",
        lambda s, start=_start, end=_end, dtype=_dtype: s(start, end, 3, dtype=dtype),
        contains=["linspace", "end" if _start == 0 else "start", _dtype],
    )


@linspace.samples
def _(s):
    yield s(0, 1, 5)
    yield s(3.0, -1.5, 7, dtype="float64")
    yield s(2, 5, 1)
    yield s(2, 5, 0)
    yield s(0, 10, 3, dtype="int64")
    yield s(0, 10, 4, dtype="int32")
    yield s(-7, 7, 5, dtype="int8")
    yield s(0, 1 + 2j, 5)
    yield s(0, 1, 3, dtype="float16")


@logspace.samples
def _(s):
    yield s(0, 1, 5)
    yield s(3.0, -1.5, 7, dtype="float64")
    yield s(0, 3, 4, 2.0, dtype="int64")
    yield s(2, 5, 1)
    yield s(2, 5, 0)
    yield s(0, 1 + 2j, 4, dtype="complex128")


def _between_tensors(operator):
    name = operator.schema.base

    @operator.samples
    def _(s):
        yield s(s.array(), s.array(), 5)
        yield s(s.array(dtype="float64"), 2.0, 4, dtype="float64")
        yield s(1, s.array(), 1).without_gradient()
        yield s(np.array(4.5, "float32"), np.array(-3), 9, dtype="int64")
        yield s(s.array(dtype="complex64"), 1, 3)

    operator.error(
        "ShapeError", lambda s: s(s.array(2), s.array(), 3), contains=[name, "start", "(2,)"]
    )
    operator.error(
        "ValueError", lambda s: s(s.array(), s.array(), -1), contains=[name, "steps", "-1"]
    )


_between_tensors(linspace_tensors)
_between_tensors(logspace_tensors)


@linspace_tensors.reference
def _(start, end, steps, dtype=None):
    start, end = (x.item() if hasattr(x, "item") else x for x in (start, end))
    return linspace(start, end, steps, dtype=dtype)


@logspace_tensors.reference
def _(start, end, steps, base=10.0, dtype=None):
    start, end = (x.item() if hasattr(x, "item") else x for x in (start, end))
    return logspace(start, end, steps, base, dtype=dtype)


eye.reference(lambda n, m=None, dtype=None: np.eye(n, m, dtype=dtype or "float32"))


@eye.samples
def _(s):
    yield s(3)
    yield s(2, 4, dtype="int64")
    yield s(3, 1, dtype="bool")
    yield s(0)


eye.error("ShapeError", lambda s: s(-1), contains=["eye", "n", "-1"])
eye.error("ShapeError", lambda s: s(2**40, 2**40), contains=["eye", "2**63"])
