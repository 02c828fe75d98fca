"""Test data of random/distributions: references in NumPy, sample calls, errors."""

from plait_ops.specs.random.distributions import (
    bernoulli_tensor,
    cauchy,
    exponential,
    geometric,
    normal_logarithm,
    random_,
    random_from,
    random_to,
)


def _fill(operator, *values):
    name = operator.schema.base
    operator.reference(lambda self: self)

    @operator.samples
    def _(s):
        for dtype in ("float32", "float64"):
            yield s(s.array(3, 4, dtype=dtype), *values)
        yield s(s.strided(3, 4), *values)
        yield s(s.array(), *values)
        yield s(s.array(0), *values)
        if operator.dtypes != "floating":
            yield s(s.array(3, 4, dtype="int64"), *values)

    group = "floating" if operator.dtypes == "floating" else "all"
    operator.error(
        "DTypeError",
        lambda s: s(s.array(2, dtype="int64" if group == "floating" else "complex64"), *values),
        contains=[name.partition(".")[0], "self", "64"],
    )


_fill(exponential)
_fill(cauchy)
_fill(normal_logarithm)
_fill(geometric, 0.5)
exponential.error("ValueError", lambda s: s(s.array(2), 0.0), contains=["exponential_", "lambd"])
cauchy.error("ValueError", lambda s: s(s.array(2), 0.0, -1.0), contains=["cauchy_", "sigma", "-1"])
normal_logarithm.error(
    "ValueError", lambda s: s(s.array(2), 0.0, 0.0), contains=["log_normal_", "std"]
)
geometric.error("ValueError", lambda s: s(s.array(2), 1.5), contains=["geometric_", "p", "1.5"])
_fill(random_)
_fill(random_to, 5)
_fill(random_from, 2, 5)


random_to.error(
    "ValueError", lambda s: s(s.array(2, dtype="uint8"), 300), contains=["random_", "299", "uint8"]
)
random_to.error("ValueError", lambda s: s(s.array(2), 0), contains=["random_", "to", "0"])
random_from.error("ValueError", lambda s: s(s.array(2), 5, 5), contains=["low", "high", "5"])
bernoulli_tensor.reference(lambda self: self)


@bernoulli_tensor.samples
def _(s):
    yield s(s.array(3, 4), s.array(4, low=0.0, high=1.0))
    yield s(s.array(3, dtype="int64"), s.array(3, dtype="float64", low=0.0, high=1.0))


bernoulli_tensor.error(
    "DTypeError", lambda s: s(s.array(2), s.array(2, dtype="int64")), contains=["p", "int64"]
)
bernoulli_tensor.error(
    "ShapeError", lambda s: s(s.array(2), s.array(3, low=0.0, high=1.0)), contains=["(3,)", "(2,)"]
)
