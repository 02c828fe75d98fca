"""Activations: relu, sigmoid, leaky and exponential units, gelu, silu and their approximations."""

from plait_ops.calls import abs as abs_
from plait_ops.calls import (
    conj,
    eq,
    exp,
    ge,
    gt,
    le,
    logical_and,
    logical_or,
    lt,
    masked_fill,
    where,
    zeros_like,
)
from plait_ops.calls import real as real_
from plait_ops.calls import tanh as tanh_
from plait_ops.spec import Pointwise
from plait_ops.unary import float_function
from plait_ops.words import conjugate, is_complex, part

SELU_SCALE = 1.0507009873554805
SELU_ALPHA = 1.6732632423543772
FUNCTIONALS = {"log_sigmoid": "logsigmoid"}  # what has another name in nn.functional


def _activation(name, text, example, parameters="", dtypes="floating", promote="same", variants=""):
    """Declare an activation; `example` is an argument and its value.

    Most are functions of `plait.nn.functional` alone, and have no variant.
    """
    if "function" in variants:
        module, call = "plait_core as pc", f"pc.{name}"
    else:
        module, call = (
            "plait_core as pc, plait_nn.functional as F",
            f"F.{FUNCTIONALS.get(name, name)}",
        )
    operator = Pointwise(
        f"{name}(Tensor self{parameters}) -> Tensor",
        doc=f"""
    {text}

    >>> import {module}
    >>> {call}(pc.tensor({example[0]})).tolist()
    {example[1]}
    """,
        dtypes=dtypes,
        promote=promote,
        variants=variants,
    )

    return operator


# ---- relu ----------------------------------------------------------------------------------------
relu = Pointwise(
    "relu(Tensor self) -> Tensor",
    doc="""
    ``maximum(self, 0)``; nan stays nan. The gradient at 0 is 0.

    >>> import plait_core as pc
    >>> pc.relu(pc.tensor([-1.0, 0.0, 2.0])).tolist()
    [0.0, 0.0, 2.0]
    """,
    dtypes="numeric",
    variants="function function_ method",
)
relu_backward = Pointwise(
    "relu_backward(Tensor grad, Tensor result) -> Tensor",
    doc="`grad` where `result` is not 0, 0 elsewhere: the derivative of `relu`.",
    dtypes="floating",
    internal=True,
)


@relu.vjp("self")
@relu_backward.vjp("grad")
def _(g, result):
    return relu_backward(g, result)


@relu_backward.vjp("result")
def _(g):
    return zeros_like(g)


# ---- leaky and exponential units -----------------------------------------------------------------
leaky_relu = _activation(
    "leaky_relu",
    "`self` where it is positive, ``negative_slope * self`` elsewhere (Maas et al. 2013).",
    ("[-100.0, 2.0]", "[-1.0, 2.0]"),
    ", float negative_slope=0.01",
)
leaky_relu_backward = Pointwise(
    "leaky_relu_backward(Tensor grad, Tensor self, float negative_slope=0.01) -> Tensor",
    doc="`grad` where `self` is positive, ``negative_slope * grad`` elsewhere: the derivative of `leaky_relu`.",
    dtypes="floating",
    internal=True,
)
elu = _activation(
    "elu",
    "`self` where it is positive, ``alpha * (exp(self) - 1)`` elsewhere (Clevert et al. 2016).",
    ("[0.0, 2.0]", "[0.0, 2.0]"),
    ", float alpha=1.0",
)
elu_backward = Pointwise(
    "elu_backward(Tensor grad, Tensor self, float alpha=1.0) -> Tensor",
    doc="`grad` where `self` is positive, ``alpha * exp(self) * grad`` elsewhere: the derivative of `elu`.",
    dtypes="floating",
    internal=True,
)
selu = _activation(
    "selu",
    "``1.0507 * elu(self, 1.6733)``: the constants keep mean 0 and variance 1 (Klambauer et al. 2017).",
    ("[0.0]", "[0.0]"),
    variants="function function_",
)
celu = _activation(
    "celu",
    "`self` where it is positive, ``alpha * (exp(self / alpha) - 1)`` elsewhere (Barron 2017).",
    ("[0.0, 2.0]", "[0.0, 2.0]"),
    ", float alpha=1.0",
    variants="function function_",
)


@leaky_relu.vjp("self")
def _(g, self, negative_slope):
    return leaky_relu_backward(g, self, negative_slope)


@leaky_relu_backward.vjp("grad")
def _(g, self, negative_slope):
    return leaky_relu_backward(g, self, negative_slope)


@leaky_relu_backward.vjp("self")
def _(g):
    return zeros_like(g)


@elu.vjp("self")
def _(g, self, alpha):
    return elu_backward(g, self, alpha)


@elu_backward.vjp("grad")
def _(g, self, alpha):
    return elu_backward(g, self, alpha)


@elu_backward.vjp("self")
def _(g, grad, self, alpha):
    return where(gt(self, 0), 0.0, g * grad * (exp(self) * alpha))


@selu.vjp("self")
def _(g, self):
    return elu_backward(g, self, SELU_ALPHA) * SELU_SCALE


@celu.vjp("self")
def _(g, self, alpha):
    return elu_backward(g, self / alpha, 1.0)


# ---- silu, mish, softplus and their kin ----------------------------------------------------------
silu = _activation(
    "silu",
    "``self * sigmoid(self)``, also called swish (Elfwing et al. 2018).",
    ("[0.0]", "[0.0]"),
    dtypes="inexact",
)
silu_backward = Pointwise(
    "silu_backward(Tensor grad, Tensor self) -> Tensor",
    doc="``grad * s * (1 + self * (1 - s))`` with ``s = sigmoid(self)``: the derivative of `silu`.",
    dtypes="floating",
    internal=True,
)
mish = _activation(
    "mish",
    "``self * tanh(softplus(self))`` (Misra 2019).",
    ("[0.0]", "[0.0]"),
)
softplus = _activation(
    "softplus",
    "``log(1 + exp(beta * self)) / beta``, and `self` itself where ``beta * self`` is above `threshold`.",
    ("[0.0, 30.0]", "[0.6931471824645996, 30.0]"),
    ", float beta=1.0, float threshold=20.0",
)
log_sigmoid = _activation(
    "log_sigmoid",
    "``log(1 / (1 + exp(-self)))``, without overflow.",
    ("[0.0]", "[-0.6931471824645996]"),
)
tanhshrink = _activation(
    "tanhshrink",
    "``self - tanh(self)``.",
    ("[0.0]", "[0.0]"),
    dtypes="any",
    promote="float",
)
softsign = _activation(
    "softsign",
    "``self / (1 + abs(self))``.",
    ("[0.0, 1.0, -3.0]", "[0.0, 0.5, -0.75]"),
    dtypes="any",
    promote="float",
)


@part
def complex_silu_gradient(g, z):
    s = sigmoid(z)
    return g * conj(s * (1.0 + z * (1.0 - s)))


@part
def complex_softsign_gradient(g, z):
    length = abs_(z)  # the conjugate counts too, as the function is not holomorphic
    whole = length + 1.0
    along = real_(g * conj(z)) / masked_fill(length, eq(length, 0), 1.0)
    return g / whole - z * along / (whole * whole)


@silu.vjp("self")
def _(g, self):
    if is_complex(g.dtype):
        return complex_silu_gradient(g, self)
    return silu_backward(g, self)


@silu_backward.vjp("grad")
def _(g, self):
    return silu_backward(g, self)


@silu_backward.vjp("self")
def _(g, grad, self):
    s = sigmoid(self)
    return g * grad * (s * (1.0 - s) * (self * (1.0 - s * 2.0) + 2.0))


@mish.vjp("self")
def _(g, self):
    t = tanh_(softplus(self))
    return g * (t + self * (1.0 - t * t) * sigmoid(self))


@softplus.vjp("self")
def _(g, self, beta, threshold):
    scaled = self * beta
    return where(gt(scaled, threshold), g, g * sigmoid(scaled))


@log_sigmoid.vjp("self")
def _(g, self):
    return g * sigmoid(-self)


@tanhshrink.vjp("self")
def _(g, self):
    t = tanh_(self)
    return g * conjugate(t * t)


@softsign.vjp("self")
def _(g, self):
    if is_complex(g.dtype):
        return complex_softsign_gradient(g, self)
    size = where(ge(self, 0), self, -self) + 1.0
    return g / (size * size)


# ---- pieces of straight lines --------------------------------------------------------------------
hardtanh = _activation(
    "hardtanh",
    "`self` clamped to [`min_val`, `max_val`].",
    ("[-2.0, 0.5, 2.0]", "[-1.0, 0.5, 1.0]"),
    ", float min_val=-1.0, float max_val=1.0",
)
relu6 = _activation(
    "relu6",
    "`self` clamped to [0, 6].",
    ("[-1.0, 3.0, 9.0]", "[0.0, 3.0, 6.0]"),
    dtypes="numeric",
)
hardsigmoid = _activation(
    "hardsigmoid",
    "``relu6(self + 3) / 6``: straight lines in place of `sigmoid` (Howard et al. 2019).",
    ("[-3.0, 0.0, 3.0]", "[0.0, 0.5, 1.0]"),
)
hardswish = _activation(
    "hardswish",
    "``self * relu6(self + 3) / 6``: straight lines in place of `silu` (Howard et al. 2019).",
    ("[0.0, 3.0]", "[0.0, 3.0]"),
)


@hardtanh.vjp("self")
def _(g, self, min_val, max_val):
    return where(logical_or(le(self, min_val), ge(self, max_val)), 0.0, g)  # nan stays nan


@relu6.vjp("self")
def _(g, self):
    return where(logical_or(le(self, 0.0), ge(self, 6.0)), 0.0, g)


@hardsigmoid.vjp("self")
def _(g, self):
    return where(logical_and(gt(self, -3.0), lt(self, 3.0)), g / 6.0, 0.0)


@hardswish.vjp("self")
def _(g, self):
    inside = where(lt(self, 3.0), g * (self / 3.0 + 0.5), g)
    return where(le(self, -3.0), 0.0, inside)


sigmoid = float_function(
    "sigmoid",
    "The logistic function ``1 / (1 + exp(-self))``.",
    0.0,
    0.5,
    variants="function function_ method",
)


sigmoid_backward = Pointwise(
    "sigmoid_backward(Tensor grad, Tensor result) -> Tensor",
    doc="``grad * result * (1 - result)``: the derivative of `sigmoid`.",
    dtypes="floating",
    internal=True,
)


@sigmoid.vjp("self")
def _(g, result):
    if is_complex(g.dtype):
        return g * conj(result * (1.0 - result))
    return sigmoid_backward(g, result)


@sigmoid_backward.vjp("grad")
def _(g, result):
    return sigmoid_backward(g, result)


@sigmoid_backward.vjp("result")
def _(g, grad, result):
    return g * grad * (1.0 - 2.0 * result)
