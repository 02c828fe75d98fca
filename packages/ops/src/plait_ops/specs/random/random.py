"""Random numbers. They come from a counter-based stream: (seed, offset) names a position, threads do not change it."""

from plait_ops import calls as op
from plait_ops.costs import nbytes
from plait_ops.fills import random_fill
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


def _draw(name, text):
    operator = Operator(
        f"{name}(int[]* size, *, Generator? generator=None, dtype? dtype=None, device? device=None) -> Tensor",
        doc=f"""
    {text} `dtype` None is the default dtype, `generator` None the default generator.

    {_SIZE_ERRORS}

    >>> import plait_core as pc
    >>> tuple(pc.{name}(2, 3).shape)
    (2, 3)
    """,
        kernel="optional: without a kernel other operators compute it; the result is in C order, floating or complex.",
        random=True,
        dtypes="floating",
    )

    @operator.shape
    def _(size, dtype):
        sizes("size", size)
        made = dtype if dtype is not None else default_dtype()
        require("dtype", made, "inexact")
        return result(size, made)

    return operator


rand = _draw("rand", "Numbers drawn uniformly from [0, 1).")
rand.batch("leading")
randn = _draw(
    "randn", "Numbers drawn from the normal distribution with mean 0 and standard deviation 1."
)
randn.batch("leading")


@rand.decompose
def _(size, generator, dtype, device):
    return op.uniform_(op.empty(size, dtype=dtype, device=device), generator=generator)


@randn.decompose
def _(size, generator, dtype, device):
    return op.normal_(op.empty(size, dtype=dtype, device=device), generator=generator)


def _like(name, text):
    operator = Operator(
        f"{name}(Tensor self, *, Generator? generator=None, dtype? dtype=None, device? device=None, "
        'str memory_format="preserve_format") -> Tensor',
        doc=f"""
    `{text}` of the shape of `self`. `dtype` and `device` None mean those of `self`.

    >>> import plait_core as pc
    >>> tuple(pc.{name}(pc.zeros(2)).shape)
    (2,)
    """,
        kernel="optional: without a kernel other operators compute it; the result is dense, in the order of dimensions that `memory_format` names, floating or complex; in[0] is not read.",
        random=True,
        dtypes="floating",
    )

    @operator.shape
    def _(self, dtype, memory_format):
        made = dtype if dtype is not None else self.dtype
        require("self" if dtype is None else "dtype", made, "inexact")
        strides = format_strides(memory_format, self.shape, dense_strides(self))
        return result_as(self.shape, made, strides)

    @operator.cost
    def _(result):
        return 0, 0, nbytes(result)

    return operator


rand_like = _like("rand_like", "rand")
rand_like.batch("leading")
randn_like = _like("randn_like", "randn")
randn_like.batch("leading")


@rand_like.decompose
def _(self, generator, dtype, device, memory_format):
    fresh = op.empty_like(self, dtype=dtype, device=device, memory_format=memory_format)
    return op.uniform_(fresh, generator=generator)


@randn_like.decompose
def _(self, generator, dtype, device, memory_format):
    fresh = op.empty_like(self, dtype=dtype, device=device, memory_format=memory_format)
    return op.normal_(fresh, generator=generator)


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
)
randint.batch("leading")
randint_high = Operator(
    "randint.high(int high, int[] size, *, Generator? generator=None, dtype? dtype=int64, device? device=None) -> Tensor",
    doc="""
    Integers drawn uniformly from [0, high).

    Raises: ValueError unless `high` is positive and fits in `dtype`, ShapeError for a bad `size`, DTypeError for complex dtypes.

    >>> import plait_core as pc
    >>> pc.randint(1, (2,)).tolist()
    [0, 0]
    """,
    kernel="optional: without a kernel other operators compute it; numbers are drawn in int64 and cast.",
    random=True,
)
randint_high.batch("leading")


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


randperm = Operator(
    "randperm(int n, *, Generator? generator=None, dtype? dtype=int64, device? device=None) -> Tensor",
    doc="""
    The numbers 0 to n - 1 in random order, each order equally likely.

    Args:
        n: The upper limit: the numbers are 0 to n - 1.

    Raises: ShapeError if `n` is negative, ValueError if its numbers do not fit in `dtype`, DTypeError for bool and complex
    dtypes.

    >>> import plait_core as pc
    >>> pc.randperm(4).sort()[0].tolist()
    [0, 1, 2, 3]
    """,
    kernel="the result is in C order, of any dtype that holds the numbers, except bool and complex; the generator is in[1], None is the default one.",
    random=True,
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


bernoulli = Operator(
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    doc="""
    1 with the probability that each element of `self` gives, else 0, in the dtype of `self`.

    Raises: DTypeError for dtypes that are not floating-point, ValueError for numbers that are not probabilities.

    >>> import plait_core as pc
    >>> pc.bernoulli(pc.tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """,
    kernel="in[0] has any strides; numbers outside [0, 1] and nan are a ValueError; the result is in C order; the generator is in[1], None is the default one.",
    random=True,
    dtypes="floating",
    variants="function method",
)
bernoulli.batch("leading")


@bernoulli.shape
def _(self):
    require("self", self.dtype, "floating")
    return result(self.shape, self.dtype)


@bernoulli.vjp("self")
def _(g):
    return op.zeros_like(g)


uniform = random_fill(
    "uniform_",
    ", float low|from=0, float high|to=1",
    "Write numbers drawn uniformly from [low, high).",
    "pc.zeros(2).uniform_(1, 1).tolist()",
    "[1.0, 1.0]",
)
normal = random_fill(
    "normal_",
    ", float mean=0, float std=1",
    "Write numbers drawn from the normal distribution with this `mean` and standard deviation.",
    "pc.zeros(2).normal_(1, 0).tolist()",
    "[1.0, 1.0]",
    libm="wide",
)
bernoulli_fill = random_fill(
    "bernoulli_",
    ", float p=0.5",
    "Write 1 with probability `p`, else 0.",
    "pc.zeros(2).bernoulli_(1).tolist()",
    "[1.0, 1.0]",
    "all",
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


@bernoulli_fill.decompose
def _(self, p, generator):
    drawn = op.empty(self.shape, device=self.device)
    return op.copy_(self, op.lt(op.uniform_(drawn, generator=generator), p))
