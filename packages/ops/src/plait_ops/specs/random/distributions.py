"""Filling with numbers of a distribution: exponential, Cauchy, log-normal, geometric, whole numbers of a range."""

import math

from plait_ops import calls as op
from plait_ops.costs import nbytes
from plait_ops.fills import random_fill
from plait_ops.specs.random import random
from plait_ops.specs.random.random import bounds_fit
from plait_ops.words import (
    check,
    float64,
    in_range,
    part,
    require,
    wide_dtype,
)

PI = math.pi
SMALLEST = 2.0**-24  # of uniform numbers in float32, and of float16
SMALLEST_64 = 2.0**-53
BEFORE = random  # overloads must come after the operator


exponential = random_fill(
    "exponential_",
    ", float lambd=1",
    "Write numbers drawn from the exponential distribution of rate `lambd`: density ``lambd * exp(-lambd * x)`` for x above 0.",
    "bool((pc.zeros(100).exponential_() > 0).all())",
    libm="wide",
)
cauchy = random_fill(
    "cauchy_",
    ", float median=0, float sigma=1",
    "Write numbers drawn from the Cauchy distribution: density ``sigma / (pi * (sigma ** 2 + (x - median) ** 2))``.",
    "bool(pc.zeros(100).cauchy_().isfinite().all())",
    libm="wide",
)
normal_logarithm = random_fill(
    "log_normal_",
    ", float mean=1, float std=2",
    "Write ``exp`` of numbers drawn from the normal distribution with this `mean` and standard deviation.",
    "bool((pc.zeros(100).log_normal_() > 0).all())",
    libm="wide",
)
geometric = random_fill(
    "geometric_",
    ", float p",
    "Write numbers drawn from the geometric distribution, the number of trials of probability `p` up to and including the first success: k with probability ``(1 - p) ** (k - 1) * p``.",
    "bool((pc.zeros(100).geometric_(0.5) >= 1).all())",
    dtypes="all",
    libm="all",
)


@exponential.shape
def _(self, lambd):
    require("self", self.dtype, "floating")
    check(lambd > 0.0, f"`lambd` must be above 0; got {lambd}", "ValueError")
    return self


@cauchy.shape
def _(self, sigma):
    require("self", self.dtype, "floating")
    check(sigma > 0.0, f"`sigma` must be above 0; got {sigma}", "ValueError")
    return self


@normal_logarithm.shape
def _(self, std):
    require("self", self.dtype, "floating")
    check(std > 0.0, f"`std` must be above 0; got {std}", "ValueError")
    return self


@geometric.shape
def _(self, p):
    require("self", self.dtype, "all")
    check(0.0 < p < 1.0, f"`p` must be in (0, 1); got {p}", "ValueError")
    return self


@part
def _uniform(self, generator):
    """Uniform numbers of [0, 1), of at least the precision of float32."""
    return op.uniform_(
        op.empty(self.shape, dtype=wide_dtype(self.dtype), device=self.device), generator=generator
    )


@exponential.decompose
def _(self, lambd, generator):
    # 0 is no number of this distribution
    drawn = op.log1p(-_uniform(self, generator)) / -lambd
    return op.copy_(self, op.clamp_min(drawn, SMALLEST_64 if self.dtype == float64 else SMALLEST))


@cauchy.decompose
def _(self, median, sigma, generator):
    angle = (_uniform(self, generator) - 0.5) * PI
    return op.copy_(self, op.tan(angle) * sigma + median)


@normal_logarithm.decompose
def _(self, mean, std, generator):
    drawn = op.empty(self.shape, dtype=wide_dtype(self.dtype), device=self.device)
    return op.copy_(self, op.exp(op.normal_(drawn, mean, std, generator=generator)))


@geometric.decompose
def _(self, p, generator):
    drawn = op.empty(self.shape, dtype=float64, device=self.device)
    rate = op.log1p(op.full([], -p, dtype=float64, device=self.device))
    trials = op.ceil(op.log1p(-op.uniform_(drawn, generator=generator)) / rate)
    return op.copy_(self, op.clamp_min(trials, 1.0))


random_ = random_fill(
    "random_",
    "",
    "Write whole numbers drawn uniformly from 0 to the largest number of the dtype; for a floating-point dtype, to the largest n"
    " such that the dtype holds all whole numbers up to n.",
    "bool((pc.zeros(100, dtype=pc.int8).random_() >= 0).all())",
    dtypes="all",
)
random_to = random_fill(
    "random_.to",
    ", int to",
    "Write whole numbers drawn uniformly from [0, to).",
    "bool((pc.zeros(100).random_(3) < 3).all())",
    dtypes="all",
)
random_from = random_fill(
    "random_.from",
    ", int low|from, int? high|to",
    "Write whole numbers drawn uniformly from [low, high); `high` None: up to the largest number of the dtype.",
    "bool((pc.zeros(100).random_(2, 5) >= 2).all())",
    dtypes="all",
)


@random_.shape
def _(self):
    require("self", self.dtype, "all")
    return self


@random_to.shape
def _(self, to):
    require("self", self.dtype, "all")
    check(to > 0, f"`to` must be positive; got {to}", "ValueError")
    bounds_fit(0, to, self.dtype)
    return self


@random_from.shape
def _(self, low, high):
    require("self", self.dtype, "all")
    if high is not None:
        check(low < high, f"`low` must be below `high`; got {low} and {high}", "ValueError")
        bounds_fit(low, high, self.dtype)
    else:
        in_range("low", low, self.dtype)
    return self


@random_.decompose
def _(self, generator):
    return random_from(self, 0, None, generator=generator)


@random_to.decompose
def _(self, to, generator):
    return random_from(self, 0, to, generator=generator)


bernoulli_tensor = random_fill(
    "bernoulli_.Tensor",
    ", Tensor p",
    "Write 1 with the probability that each element of `p` gives, else 0; `p` broadcasts to the shape of `self`.",
    "pc.zeros(2).bernoulli_(pc.tensor([0.0, 1.0])).tolist() == [0.0, 1.0]",
    dtypes="all",
)


@bernoulli_tensor.cost
def _(self, p):
    return 0, nbytes(p), nbytes(self)


@bernoulli_tensor.shape
def _(self, p):
    require("self", self.dtype, "all")
    require("p", p.dtype, "floating")
    return self


@bernoulli_tensor.decompose
def _(self, p, generator):
    return op.copy_(self, op.bernoulli(op.expand(p, self.shape), generator=generator))


bernoulli_tensor.constant("p")
