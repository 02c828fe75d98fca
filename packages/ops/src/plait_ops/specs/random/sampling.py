"""Drawing from tables, rates and moments: multinomial, poisson, binomial, normal with tensors, randint_like."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.specs.random import random
from plait_ops.specs.random.random import bounds_fit
from plait_ops.words import (
    broadcast,
    check,
    default_dtype,
    dense_strides,
    format_strides,
    int64,
    is_tensor,
    require,
    require_common,
    require_same,
    result,
    result_as,
    sizes,
    to_dtype,
)

BEFORE = random  # overloads must come after the operator

multinomial = Operator(
    "multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
    doc="""
    `num_samples` indices of each row of `self`, drawn with probabilities proportional to the weights in the row, in the
    order of the draws. Without `replacement` no index is drawn twice.

    Shapes: `self` is (n,) or (rows, n), the result (num_samples,) or (rows, num_samples). Dtypes: floating; the result is int64.
    Raises: ShapeError for other shapes; ValueError unless `num_samples` is positive and, without replacement, no larger
    than n, or if weights are negative or not finite, all weights of a row are 0, or, without replacement, fewer than
    `num_samples` are not 0.

    >>> import plait_core as pc
    >>> pc.multinomial(pc.tensor([0.0, 3.0, 0.0]), 2, replacement=True).tolist()
    [1, 1]
    """,
    random=True,
    dtypes="floating",
    kernel="without replacement the method of Efraimidis and Spirakis (2006), with replacement cumulative sums and bisection.",
    variants="function method",
    libm="all",
)
multinomial.batch("code")


@multinomial.shape
def _(self, num_samples, replacement):
    require("self", self.dtype, "floating")
    check(1 <= self.ndim <= 2, f"`self` must have 1 or 2 dimensions; got shape {self.shape}")
    n = self.shape[-1]
    check(n > 0, f"`self` must have at least 1 weight in each row; got shape {self.shape}")
    check(num_samples > 0, f"`num_samples` must be positive; got {num_samples}", "ValueError")
    check(
        replacement or num_samples <= n,
        f"`num_samples` without replacement must be at most {n} for `self` of shape {self.shape}; got {num_samples}",
        "ValueError",
    )
    shape = [self.shape[0], num_samples] if self.ndim == 2 else [num_samples]
    sizes("num_samples", shape)
    return result(shape, int64)


multinomial.constant("self")


def _elementwise(name, arguments, text, example, internal=False):
    operator = Operator(
        f"{name}({arguments}, *, Generator? generator=None) -> Tensor",
        doc=f"""
    {text}

    Dtypes: floating; the result has the same dtype. Parameters outside the range that the distribution allows give
    nan.

    >>> import plait_core as pc
    >>> {example}
    """,
        kernel="operands have one shape and dtype, any strides; the result has them, in C order or that of in[0]'s dimensions; parameters outside the range that the distribution allows give nan; the generator is the last argument, None is the default one.",
        random=True,
        dtypes="floating",
        internal=internal,
        libm="all",
    )
    return operator


poisson = _elementwise(
    "poisson",
    "Tensor self",
    "Whole numbers drawn from the Poisson distribution with the rates in `self`: k with probability ``exp(-r) * r ** k / k!``.",
    "pc.poisson(pc.zeros(2)).tolist()\n    [0.0, 0.0]",
)
poisson.batch("leading")
standard_gamma = _elementwise(
    "_standard_gamma",
    "Tensor self",
    "Numbers drawn from the gamma distribution with the shapes in `self`: density proportional to ``x ** (a - 1) * exp(-x)``.",
    "tuple(pc.poisson(pc.ones(2)).shape)\n    (2,)",
    internal=True,
)
standard_gamma.batch("leading")


@poisson.shape
@standard_gamma.shape
def _(self):
    require("self", self.dtype, "floating")
    return result(self.shape, self.dtype)


@poisson.vjp("self")
def _(g):
    return op.zeros_like(g)


binomial_draw = _elementwise(
    "binomial_draw",
    "Tensor count, Tensor prob",
    "`binomial` of tensors of one shape and dtype.",
    "tuple(pc.binomial(pc.ones(2), pc.ones(2)).shape)\n    (2,)",
    internal=True,
)
binomial_draw.batch("leading")


@binomial_draw.shape
def _(count, prob):
    require("count", count.dtype, "floating")
    require_same("count", count, "prob", prob)
    check(
        prob.shape == count.shape,
        f"`count` and `prob` must have the same shape; got {count.shape} and {prob.shape}",
    )
    return result(count.shape, count.dtype)


binomial_draw.constant("count", "prob")

binomial = Composite(
    "binomial(Tensor count, Tensor prob, *, Generator? generator=None) -> Tensor",
    doc="""
    Whole numbers drawn from the binomial distribution: how many of `count` trials of probability `prob` succeed.

    Shapes: both broadcast. Dtypes: floating; parameters outside the range that the distribution allows give nan.

    >>> import plait_core as pc
    >>> pc.binomial(pc.tensor([4.0, 4.0]), pc.tensor([0.0, 1.0])).tolist()
    [0.0, 4.0]
    """,
    random=True,
    dtypes="floating",
)


@binomial.decompose
def _(count, prob, generator):
    made = require_common("count", count, "prob", prob)
    require("count", made, "floating")
    shape = broadcast("count", count.shape, "prob", prob.shape)
    n, p = to_dtype(count, made), to_dtype(prob, made)
    return binomial_draw(op.expand(n, shape), op.expand(p, shape), generator=generator)


def _normal(schema, text, shape):
    operator = Operator(
        schema,
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> {shape}
    """,
        kernel="optional: without a kernel other operators compute it; parameters that are tensors broadcast to the result, which is in C order.",
        random=True,
        dtypes="floating",
    )
    return operator


normal = _normal(
    "normal(Tensor mean, Tensor|Scalar std=1, *, Generator? generator=None) -> Tensor",
    "Numbers drawn from normal distributions with the means `mean` and the standard deviations `std`, which broadcast. No gradient flows back.",
    "pc.normal(pc.tensor([2.0, 3.0]), 0).tolist()\n    [2.0, 3.0]",
)
normal.batch("code")
normal_std = _normal(
    "normal.std(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    "Numbers drawn from normal distributions with one `mean` and the standard deviations `std`.",
    "pc.normal(2.0, pc.zeros(2)).tolist()\n    [2.0, 2.0]",
)
normal_std.batch("leading")
normal_size = _normal(
    "normal.size(float mean, float std, int[] size, *, Generator? generator=None, dtype? dtype=None, device? device=None)"
    " -> Tensor",
    "Numbers of the shape `size` drawn from one normal distribution; `dtype` None is the default dtype.",
    "pc.normal(2.0, 0.0, (2,)).tolist()\n    [2.0, 2.0]",
)
normal_size.batch("leading")


@normal.shape
def _(mean, std):
    made = require_common("mean", mean, "std", std)
    require("mean", made, "floating")
    if is_tensor(std):
        return result(broadcast("mean", mean.shape, "std", std.shape), made)
    return result(mean.shape, made)


@normal_std.shape
def _(std):
    require("std", std.dtype, "floating")
    return result(std.shape, std.dtype)


@normal_size.shape
def _(std, size, dtype):
    sizes("size", size)
    check(std >= 0.0, f"`std` must not be negative; got {std}", "ValueError")
    made = dtype if dtype is not None else default_dtype()
    require("dtype", made, "floating")
    return result(size, made)


@normal.decompose
def _(mean, std, generator):
    made = require_common("mean", mean, "std", std)
    shape = mean.shape
    if is_tensor(std):
        shape = broadcast("mean", mean.shape, "std", std.shape)
    noise = op.normal_(op.empty(shape, dtype=made, device=mean.device), generator=generator)
    return op.add(op.mul(noise, std), mean)


@normal_std.decompose
def _(mean, std, generator):
    noise = op.normal_(op.empty(std.shape, dtype=std.dtype, device=std.device), generator=generator)
    return op.add(op.mul(noise, std), mean)


@normal_size.decompose
def _(mean, std, size, generator, dtype, device):
    made = dtype if dtype is not None else default_dtype()
    return op.normal_(op.empty(size, dtype=made, device=device), mean, std, generator=generator)


normal.constant("mean", "std")
normal_std.constant("std")


bernoulli_p = Operator(
    "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    doc="""
    1 with probability `p`, else 0, in the shape and dtype of `self`; the elements of `self` are not used.

    Args:
        p: The probability of 1.

    Raises: ValueError unless `p` is in [0, 1].

    >>> import plait_core as pc
    >>> pc.bernoulli(pc.zeros(2), 1.0).tolist()
    [1.0, 1.0]
    """,
    kernel="optional: without a kernel other operators compute it; in[0] is not read; the result is dense in the order of its dimensions.",
    random=True,
    variants="function method",
)
bernoulli_p.batch("leading")


@bernoulli_p.shape
def _(self, p):
    require("self", self.dtype, "all")
    check(0.0 <= p <= 1.0, f"`p` must be in [0, 1]; got {p}", "ValueError")
    return result(self.shape, self.dtype)


@bernoulli_p.decompose
def _(self, p, generator):
    made = op.empty_like(self, memory_format="contiguous_format")
    return op.bernoulli_(made, p, generator=generator)


bernoulli_p.constant("self")


def _randint_like(name, arguments, text):
    return Operator(
        f"{name}(Tensor self, {arguments}, *, Generator? generator=None, dtype? dtype=None, device? device=None, "
        'str memory_format="preserve_format") -> Tensor',
        doc=f"""
    {text}, in the shape of `self`. `dtype` and `device` None mean those of `self`.

    Raises: ValueError for an empty range or one that does not fit in `dtype`, DTypeError for complex numbers.

    >>> import plait_core as pc
    >>> pc.randint_like(pc.zeros(2), 3, 4).tolist()
    [3.0, 3.0]
    """,
        kernel="optional: without a kernel other operators compute it; as for `randint`; in[0] is not read; the result is dense, in the order of dimensions that `memory_format` names.",
        random=True,
    )


randint_like = _randint_like(
    "randint_like", "int low, int high", "Integers drawn uniformly from [low, high)"
)
randint_like.batch("leading")
randint_like_high = _randint_like(
    "randint_like.high", "int high", "Integers drawn uniformly from [0, high)"
)
randint_like_high.batch("leading")


@randint_like.shape
def _(self, low, high, dtype, memory_format):
    check(low < high, f"`low` must be below `high`; got {low} and {high}", "ValueError")
    made = dtype if dtype is not None else self.dtype
    require("self" if dtype is None else "dtype", made, "all")
    bounds_fit(low, high, made)
    strides = format_strides(memory_format, self.shape, dense_strides(self))
    return result_as(self.shape, made, strides)


@randint_like_high.shape
def _(self, high, dtype, memory_format):
    check(high > 0, f"`high` must be positive; got {high}", "ValueError")
    made = dtype if dtype is not None else self.dtype
    require("self" if dtype is None else "dtype", made, "all")
    bounds_fit(0, high, made)
    strides = format_strides(memory_format, self.shape, dense_strides(self))
    return result_as(self.shape, made, strides)


@randint_like.decompose
def _(self, low, high, generator, dtype, device, memory_format):
    fresh = op.empty_like(self, dtype=dtype, device=device, memory_format=memory_format)
    return op.random__from(fresh, low, high, generator=generator)


@randint_like_high.decompose
def _(self, high, generator, dtype, device, memory_format):
    fresh = op.empty_like(self, dtype=dtype, device=device, memory_format=memory_format)
    return op.random__from(fresh, 0, high, generator=generator)


randint_like.constant("self")
randint_like_high.constant("self")
