"""Random numbers. They come from a counter-based stream: (seed, offset) names a position, threads do not change it."""

import numpy as np

from plait_ops.calls import empty, empty_like, normal_, uniform_, zeros_like
from plait_ops.spec import Operator
from plait_ops.words import (
    bfloat16,
    bool_,
    check,
    default_dtype,
    dense_strides,
    float16,
    float32,
    format_strides,
    in_range,
    int64,
    is_floating,
    part,
    require,
    result,
    result_as,
    sizes,
)

_SIZE_ERRORS = "Raises: ShapeError for a bad `size`, DTypeError for other dtypes."


def _size_errors(operator, *lead):
    name = operator.schema.base
    operator.error("ShapeError", lambda s: s(*lead, (2, -1)), contains=[name, "size", "(2, -1)"])
    operator.error(
        "ShapeError", lambda s: s(*lead, (2**40, 2**40)), contains=[name, "size", "2**63"]
    )
    operator.error("ShapeError", lambda s: s(*lead, (1,) * 65), contains=[name, "size", "64", "65"])


def _draw(name, text):
    operator = Operator(
        f"{name}(int[]* size, *, Generator? generator=None, dtype? dtype=None, device? device=None) -> Tensor",
        doc=f"""
    {text} `dtype` None is the default dtype; `generator` None is the default one.

    {_SIZE_ERRORS}

    >>> import plait_core as pc
    >>> tuple(pc.{name}(2, 3).shape)
    (2, 3)
    """,
        random=True,
        dtypes="floating",
        method=False,
        out=True,
    )

    @operator.shape
    def _(size, dtype):
        sizes("size", size)
        made = dtype if dtype is not None else default_dtype()
        require("dtype", made, "inexact")
        return result(size, made)

    operator.reference(lambda size, dtype=None: np.zeros(size, dtype or "float32"))
    operator.samples(lambda s: iter([s((20, 30)), s(2, 3, dtype="float64"), s(()), s((0, 2))]))
    operator.error(
        "DTypeError", lambda s: s((2,), dtype="int64"), contains=[name, "dtype", "int64"]
    )
    _size_errors(operator)
    return operator


rand = _draw("rand", "Numbers drawn uniformly from [0, 1).")
randn = _draw(
    "randn", "Numbers drawn from the normal distribution with mean 0 and standard deviation 1."
)


@rand.decompose
def _(size, generator, dtype, device):
    return uniform_(empty(size, dtype=dtype, device=device), generator=generator)


@randn.decompose
def _(size, generator, dtype, device):
    return normal_(empty(size, dtype=dtype, device=device), generator=generator)


def _like(name, text):
    operator = Operator(
        f"{name}(Tensor self, *, Generator? generator=None, dtype? dtype=None, device? device=None, "
        'str memory_format="preserve_format") -> Tensor',
        doc=f"""
    `{text}` of the shape of `self`. `dtype` and `device` None are those of `self`.

    >>> import plait_core as pc
    >>> tuple(pc.{name}(pc.zeros(2)).shape)
    (2,)
    """,
        random=True,
        dtypes="floating",
        method=False,
    )

    @operator.shape
    def _(self, dtype, memory_format):
        made = dtype if dtype is not None else self.dtype
        require("self" if dtype is None else "dtype", made, "inexact")
        strides = format_strides(memory_format, self.shape, dense_strides(self))
        return result_as(self.shape, made, strides)

    operator.reference(lambda self, dtype=None: np.zeros(self.shape, dtype or self.dtype))
    operator.samples(
        lambda s: iter([s(s.array(2, 3)), s(s.array(3, dtype="int64"), dtype="float64")])
    )
    operator.error(
        "DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=[name, "self", "int64"]
    )
    return operator


rand_like = _like("rand_like", "rand")
randn_like = _like("randn_like", "randn")


@rand_like.decompose
def _(self, generator, dtype, device, memory_format):
    fresh = empty_like(self, dtype=dtype, device=device, memory_format=memory_format)
    return uniform_(fresh, generator=generator)


@randn_like.decompose
def _(self, generator, dtype, device, memory_format):
    fresh = empty_like(self, dtype=dtype, device=device, memory_format=memory_format)
    return normal_(fresh, generator=generator)


randint = Operator(
    "randint(int low, int high, int[] size, *, Generator? generator=None, dtype? dtype=int64, device? device=None) -> Tensor",
    doc="""
    Integers drawn uniformly from [low, high).

    Raises: ValueError unless `low` is below `high` and both fit in `dtype`, ShapeError for a bad `size`, DTypeError for complex dtypes.

    >>> import plait_core as pc
    >>> pc.randint(3, 4, (2,)).tolist()
    [3, 3]
    """,
    random=True,
    kernel="numbers are drawn in int64 and cast.",
    method=False,
    out=True,
)
randint_high = Operator(
    "randint.high(int high, int[] size, *, Generator? generator=None, dtype? dtype=int64, device? device=None) -> Tensor",
    doc="""
    Integers drawn uniformly from [0, high).

    Raises: ValueError unless `high` is positive and fits in `dtype`, ShapeError for a bad `size`, DTypeError for complex dtypes.

    >>> import plait_core as pc
    >>> pc.randint(1, (2,)).tolist()
    [0, 0]
    """,
    random=True,
    method=False,
    out=True,
)


@part
def bounds_fit(low, high, dtype):
    if dtype == bool_:
        check(
            low >= 0 and high <= 2,
            f"`low` and `high` must be in [0, 2] for bool; got {low} and {high}",
            "ValueError",
        )
    else:
        in_range("low", low, dtype)
        in_range("high - 1", high - 1, dtype)


@randint.shape
def _(low, high, size, dtype):
    check(low < high, f"`low` must be below `high`; got {low} and {high}", "ValueError")
    sizes("size", size)
    made = dtype if dtype is not None else int64
    require("dtype", made, "all")
    bounds_fit(low, high, made)
    return result(size, made)


@randint_high.shape
def _(high, size, dtype):
    check(high > 0, f"`high` must be positive; got {high}", "ValueError")
    sizes("size", size)
    made = dtype if dtype is not None else int64
    require("dtype", made, "all")
    bounds_fit(0, high, made)
    return result(size, made)


@randint_high.decompose
def _(high, size, generator, dtype, device):
    return randint(0, high, size, generator=generator, dtype=dtype, device=device)


randint.reference(lambda low, high, size, dtype="int64": np.zeros(size, dtype))
randint_high.reference(lambda high, size, dtype="int64": np.zeros(size, dtype))
randint.samples(lambda s: iter([s(-3, 4, (20, 3)), s(0, 2, (4,), dtype="float32"), s(0, 1, ())]))
randint_high.samples(lambda s: iter([s(4, (20, 3)), s(2, (4,), dtype="uint8")]))
randint.error("ValueError", lambda s: s(3, 3, (2,)), contains=["randint", "low", "high", "3"])
randint_high.error("ValueError", lambda s: s(0, (2,)), contains=["randint", "high", "0"])
for _low, _high, _dtype in (
    (0, 300, "uint8"),
    (-1, 3, "uint8"),
    (0, 3, "bool"),
    (0, 10**6, "float16"),
):
    randint.error(
        "ValueError",
        lambda s, low=_low, high=_high, dtype=_dtype: s(low, high, (2,), dtype=dtype),
        contains=["randint", "low" if _low else "high", _dtype],
    )
randint_high.error(
    "ValueError", lambda s: s(300, (2,), dtype="uint8"), contains=["randint", "high", "uint8"]
)
_size_errors(randint, 0, 4)
_size_errors(randint_high, 4)


randperm = Operator(
    "randperm(int n, *, Generator? generator=None, dtype? dtype=int64, device? device=None) -> Tensor",
    doc="""
    The numbers 0 to n - 1 in random order, each order equally likely.

    Raises: ShapeError if `n` is negative, ValueError if its numbers do not fit in `dtype`, DTypeError for bool and complex.

    >>> import plait_core as pc
    >>> pc.randperm(4).sort()[0].tolist()
    [0, 1, 2, 3]
    """,
    random=True,
    method=False,
    out=True,
)


@randperm.shape
def _(n, dtype):
    check(n >= 0, f"`n` must not be negative; got {n}")
    made = dtype if dtype is not None else int64
    require("dtype", made, "numeric")
    if n > 0:
        in_range("n - 1", n - 1, made)
    most = 9007199254740992
    if made == float32:
        most = 16777216
    if made == float16:
        most = 2048
    if made == bfloat16:
        most = 256
    check(
        n <= most + 1 or not is_floating(made),
        f"`n` must be at most {most + 1} for {made}, which has no more whole numbers; got {n}",
        "ValueError",
    )
    return result([n], made)


randperm.reference(lambda n, dtype="int64": np.zeros(n, dtype))
randperm.samples(lambda s: iter([s(10), s(0), s(5, dtype="int32")]))
randperm.error(
    "ValueError", lambda s: s(3000, dtype="float16"), contains=["randperm", "n", "2049", "float16"]
)
randperm.error(
    "ValueError", lambda s: s(300, dtype="uint8"), contains=["randperm", "n", "299", "uint8"]
)
randperm.error("ShapeError", lambda s: s(-1), contains=["randperm", "n", "-1"])


bernoulli = Operator(
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    doc="""
    1 with the probability that each element of `self` gives, else 0, in the dtype of `self`.

    Raises: DTypeError for dtypes that are not floating-point, ValueError for numbers that are no probabilities.

    >>> import plait_core as pc
    >>> pc.bernoulli(pc.tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """,
    random=True,
    dtypes="floating",
    out=True,
)


@bernoulli.shape
def _(self):
    require("self", self.dtype, "floating")
    return result_as(self.shape, self.dtype, dense_strides(self))


@bernoulli.vjp("self")
def _(g):
    return zeros_like(g)


bernoulli.reference(lambda self: np.zeros(self.shape, self.dtype))
bernoulli.samples(
    lambda s: iter(
        [s(s.array(3, 4, low=0.0, high=1.0)), s(s.array(low=0.0, high=1.0, dtype="float64"))]
    )
)
bernoulli.error(
    "ValueError",
    lambda s: s(np.array([0.5, 1.5], "float32")),
    contains=["bernoulli", "self", "probabilities"],
)
bernoulli.error(
    "DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=["bernoulli", "self", "int64"]
)


def _fill(name, arguments, text, example, dtypes):
    operator = Operator(
        f"{name}(Tensor(a)! self, {arguments}, *, Generator? generator=None) -> Tensor(a)!",
        doc=f"""
    {text} Returns `self`.

    Raises: DTypeError for other dtypes, ValueError for parameters that make no distribution.

    >>> import plait_core as pc
    >>> pc.zeros(2).{name}{example}
    [1.0, 1.0]
    """,
        random=True,
        dtypes=dtypes,
    )
    operator.reference(lambda self: self)
    operator.samples(
        lambda s: iter(
            [s(s.array(3, 4)), s(s.strided(3, 4)), s(s.array(dtype="float64")), s(s.array(0))]
        )
    )
    operator.vjp("self")(_zero)
    return operator


def _zero(g):
    return zeros_like(g)


uniform = _fill(
    "uniform_",
    "float low|from=0, float high|to=1",
    "Write numbers drawn uniformly from [low, high).",
    "(1, 1).tolist()",
    "floating",
)
normal = _fill(
    "normal_",
    "float mean=0, float std=1",
    "Write numbers drawn from the normal distribution with this `mean` and standard deviation.",
    "(1, 0).tolist()",
    "floating",
)
bernoulli_fill = _fill(
    "bernoulli_", "float p=0.5", "Write 1 with probability `p`, else 0.", "(1).tolist()", "all"
)


@uniform.shape
def _(self, low, high):
    require("self", self.dtype, "inexact")
    check(low <= high, f"`low` must not be above `high`; got {low} and {high}", "ValueError")
    return self


@normal.shape
def _(self, std):
    require("self", self.dtype, "inexact")
    check(std >= 0.0, f"`std` must not be negative; got {std}", "ValueError")
    return self


@bernoulli_fill.shape
def _(self, p):
    require("self", self.dtype, "all")
    check(0.0 <= p <= 1.0, f"`p` must be in [0, 1]; got {p}", "ValueError")
    return self


uniform.error("ValueError", lambda s: s(s.array(2), 1.0, 0.0), contains=["uniform_", "low", "high"])
normal.error("ValueError", lambda s: s(s.array(2), 0.0, -1.0), contains=["normal_", "std", "-1"])
bernoulli_fill.error(
    "ValueError", lambda s: s(s.array(2), 1.5), contains=["bernoulli_", "p", "1.5"]
)
for each in (uniform, normal):
    each.error(
        "DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=[each.name, "self", "int64"]
    )
