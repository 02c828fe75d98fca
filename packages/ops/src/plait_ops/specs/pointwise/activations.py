"""Activations: relu, sigmoid, leaky and exponential units, gelu, silu and their approximations."""

from plait_ops import calls as op
from plait_ops.spec import Pointwise
from plait_ops.unary import float_function
from plait_ops.words import is_complex, part

SELU_SCALE = 1.0507009873554805
SELU_ALPHA = 1.6732632423543772
FUNCTIONALS = {"log_sigmoid": "logsigmoid"}  # what has another name in nn.functional


def _activation(
    name,
    text,
    example,
    parameters="",
    dtypes="floating",
    promote="same",
    variants="",
    libm="",
    zero_preserving=False,
    c_order=False,
):
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
        libm=libm,
        zero_preserving=zero_preserving,
        c_order=c_order,
    )

    return operator


def _backward(name, parameters, text, libm=""):
    """Declare the derivative of the activation `name`, linear in `grad`: `text` is its formula."""
    operator = Pointwise(
        f"{name}_backward(Tensor grad, Tensor self{parameters}) -> Tensor",
        doc=f"{text}: the derivative of `{name}`.",
        dtypes="floating",
        internal=True,
        widens=True,
        libm=libm,
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
    zero_preserving=True,
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


@relu.decompose
def _(self):
    return op.where(op.le(self, 0), 0, self)


@relu_backward.decompose
def _(grad, result):
    return op.where(op.le(result, 0), 0.0, grad)


# ---- leaky and exponential units -----------------------------------------------------------------
leaky_relu = _activation(
    "leaky_relu",
    "`self` where it is positive, ``negative_slope * self`` elsewhere (Maas et al. 2013).",
    ("[-100.0, 2.0]", "[-1.0, 2.0]"),
    ", float negative_slope=0.01",
    zero_preserving=True,
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
    libm="wide",
    zero_preserving=True,
)
elu_backward = Pointwise(
    "elu_backward(Tensor grad, Tensor self, float alpha=1.0) -> Tensor",
    doc="`grad` where `self` is positive, ``alpha * exp(self) * grad`` elsewhere: the derivative of `elu`.",
    dtypes="floating",
    internal=True,
    widens=True,
    libm="wide",
)
selu = _activation(
    "selu",
    "``1.0507 * elu(self, 1.6733)``: the constants keep mean 0 and variance 1 (Klambauer et al. 2017).",
    ("[0.0]", "[0.0]"),
    variants="function function_",
    libm="wide",
    zero_preserving=True,
)
selu_backward = _backward(
    "selu",
    "",
    "``1.0507 * grad`` where `self` is positive, ``1.7581 * exp(self) * grad`` elsewhere",
    libm="wide",
)
celu = _activation(
    "celu",
    "`self` where it is positive, ``alpha * (exp(self / alpha) - 1)`` elsewhere (Barron 2017).",
    ("[0.0, 2.0]", "[0.0, 2.0]"),
    ", float alpha=1.0",
    variants="function function_",
    libm="wide",
    zero_preserving=True,
)
celu_backward = _backward(
    "celu",
    ", float alpha=1.0",
    "`grad` where `self` is positive, ``exp(self / alpha) * grad`` elsewhere",
    libm="wide",
)


@leaky_relu.vjp("self")
@leaky_relu_backward.vjp("grad")
def _(g, self, negative_slope):
    return leaky_relu_backward(g, self, negative_slope)


@elu.vjp("self")
@elu_backward.vjp("grad")
def _(g, self, alpha):
    return elu_backward(g, self, alpha)


@elu_backward.vjp("self")
def _(g, grad, self, alpha):
    return op.where(op.ge(self, 0), 0.0, g * grad * (op.exp(self) * alpha))


@selu.vjp("self")
@selu_backward.vjp("grad")
def _(g, self):
    return selu_backward(g, self)


@selu_backward.vjp("self")
def _(g, grad, self):
    return op.where(op.ge(self, 0), 0.0, selu_backward(g * grad, self))


@celu.vjp("self")
@celu_backward.vjp("grad")
def _(g, self, alpha):
    return celu_backward(g, self, alpha)


@celu_backward.vjp("self")
def _(g, grad, self, alpha):
    return op.where(op.ge(self, 0), 0.0, celu_backward(g * grad, self, alpha) / alpha)


@leaky_relu.decompose
def _(self, negative_slope):
    return op.where(op.gt(self, 0), self, self * negative_slope)


@leaky_relu_backward.decompose
def _(grad, self, negative_slope):
    return op.where(op.gt(self, 0), grad, grad * negative_slope)


@elu.decompose
def _(self, alpha):
    return op.where(op.gt(self, 0), self, op.expm1(self) * alpha)


@elu_backward.decompose
def _(grad, self, alpha):
    return op.where(op.gt(self, 0), grad, grad * (op.exp(self) * alpha))


@selu.decompose
def _(self):
    return op.where(op.gt(self, 0), self, op.expm1(self) * SELU_ALPHA) * SELU_SCALE


@selu_backward.decompose
def _(grad, self):
    return grad * op.where(op.gt(self, 0), SELU_SCALE, op.exp(self) * (SELU_SCALE * SELU_ALPHA))


@celu.decompose
def _(self, alpha):
    return op.where(op.gt(self, 0), self, op.expm1(self / alpha) * alpha)


@celu_backward.decompose
def _(grad, self, alpha):
    return op.where(op.gt(self, 0), grad, grad * op.exp(self / alpha))


# ---- silu, mish, softplus and their kin ----------------------------------------------------------
silu = _activation(
    "silu",
    "``self * sigmoid(self)``, also called swish (Elfwing et al. 2018).",
    ("[0.0]", "[0.0]"),
    dtypes="inexact",
    libm="wide",
    zero_preserving=True,
)
silu_backward = Pointwise(
    "silu_backward(Tensor grad, Tensor self) -> Tensor",
    doc="``grad * s * (1 + self * (1 - s))`` with ``s = sigmoid(self)``: the derivative of `silu`.",
    dtypes="floating",
    internal=True,
    widens=True,
    libm="wide",
)
mish = _activation(
    "mish",
    "``self * tanh(softplus(self))`` (Misra 2019).",
    ("[0.0]", "[0.0]"),
    libm="wide",
    zero_preserving=True,
)
mish_backward = _backward(
    "mish",
    "",
    "``grad * (t + self * (1 - t ** 2) * sigmoid(self))`` with ``t = tanh(softplus(self))``",
    libm="wide",
)
softplus = _activation(
    "softplus",
    "``log(1 + exp(beta * self)) / beta``, and `self` itself where ``beta * self`` is above `threshold`.",
    ("[0.0, 30.0]", "[0.6931471824645996, 30.0]"),
    ", float beta=1.0, float threshold=20.0",
    libm="wide",
)
softplus_backward = _backward(
    "softplus",
    ", float beta=1.0, float threshold=20.0",
    "``grad * sigmoid(beta * self)``, and `grad` where ``beta * self`` is above `threshold`",
    libm="wide",
)
log_sigmoid = _activation(
    "log_sigmoid",
    "``log(1 / (1 + exp(-self)))``, without overflow.",
    ("[0.0]", "[-0.6931471824645996]"),
    libm="wide",
    c_order=True,
)
log_sigmoid_backward = _backward("log_sigmoid", "", "``grad * sigmoid(-self)``", libm="wide")
tanhshrink = _activation(
    "tanhshrink",
    "``self - tanh(self)``.",
    ("[0.0]", "[0.0]"),
    dtypes="any",
    promote="float",
    libm="wide",
    zero_preserving=True,
)
tanhshrink_backward = _backward("tanhshrink", "", "``grad * tanh(self) ** 2``", libm="wide")
softsign = _activation(
    "softsign",
    "``self / (1 + abs(self))``.",
    ("[0.0, 1.0, -3.0]", "[0.0, 0.5, -0.75]"),
    dtypes="any",
    promote="float",
    libm="complex",
    zero_preserving=True,
)
softsign_backward = _backward("softsign", "", "``grad / (1 + abs(self)) ** 2``")


@part
def complex_silu_gradient(g, z):
    s = sigmoid(z)
    return g * op.conj(s * (1.0 + z * (1.0 - s)))


@part
def complex_tanhshrink_gradient(g, z):
    t = op.tanh(z)
    return g * op.conj(t * t)


@part
def complex_softsign_gradient(g, z):
    length = op.abs(z)  # the conjugate counts too, as the function is not holomorphic
    whole = length + 1.0
    along = op.real(g * op.conj(z)) / op.masked_fill(length, op.eq(length, 0), 1.0)
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
@mish_backward.vjp("grad")
def _(g, self):
    return mish_backward(g, self)


@mish_backward.vjp("self")
def _(g, grad, self):
    t = op.tanh(softplus(self))
    s = sigmoid(self)
    return g * grad * ((1.0 - t * t) * s * (2.0 + self * (1.0 - s - t * s * 2.0)))


@softplus.vjp("self")
@softplus_backward.vjp("grad")
def _(g, self, beta, threshold):
    return softplus_backward(g, self, beta, threshold)


@softplus_backward.vjp("self")
def _(g, grad, self, beta, threshold):
    scaled = self * beta
    bent = sigmoid_backward(g * grad * beta, sigmoid(scaled))
    return op.where(op.gt(scaled, threshold), 0.0, bent)


@log_sigmoid.vjp("self")
@log_sigmoid_backward.vjp("grad")
def _(g, self):
    return log_sigmoid_backward(g, self)


@log_sigmoid_backward.vjp("self")
def _(g, grad, self):
    return -sigmoid_backward(g * grad, sigmoid(self))


@tanhshrink.vjp("self")
def _(g, self):
    if is_complex(g.dtype):
        return complex_tanhshrink_gradient(g, self)
    return tanhshrink_backward(g, self)


@tanhshrink_backward.vjp("grad")
def _(g, self):
    return tanhshrink_backward(g, self)


@tanhshrink_backward.vjp("self")
def _(g, grad, self):
    t = op.tanh(self)
    return op.tanh_backward(g * grad * t * 2.0, t)


@softsign.vjp("self")
def _(g, self):
    if is_complex(g.dtype):
        return complex_softsign_gradient(g, self)
    return softsign_backward(g, self)


@softsign_backward.vjp("grad")
def _(g, self):
    return softsign_backward(g, self)


@softsign_backward.vjp("self")
def _(g, grad, self):
    return softsign_backward(g * grad * -2.0, self) * op.sign(self) / (op.abs(self) + 1.0)


@silu.decompose
def _(self):
    return self / (op.exp(-self) + 1.0)


@silu_backward.decompose
def _(grad, self):
    s = sigmoid(self)
    return grad * (s * (self * (1.0 - s) + 1.0))


# tanh(log(1 + n)) = w / (w + 2) with n = e^x and w = n (n + 2), which is 1 from x = 20 on
@mish.decompose
def _(self):
    n = op.exp(op.where(op.gt(self, 20.0), 20.0, self))
    w = n * (n + 2.0)
    return self * (w / (w + 2.0))


@mish_backward.decompose
def _(grad, self):
    large = op.gt(self, 20.0)
    n = op.exp(op.where(large, 20.0, self))
    w = n * (n + 2.0)
    whole = w + 2.0
    rest = op.where(large, 0.0, n * (n + 1.0) * 4.0)
    return grad * ((w * whole + self * rest) / (whole * whole))


@softplus.decompose
def _(self, beta, threshold):
    y = self * beta
    soft = (op.where(op.lt(y, 0), 0.0, y) + op.log1p(op.exp(-op.abs(y)))) / beta
    return op.where(op.gt(y, threshold), self, soft)


@softplus_backward.decompose
def _(grad, self, beta, threshold):
    y = self * beta
    return op.where(op.gt(y, threshold), grad, grad * sigmoid(y))


@log_sigmoid.decompose
def _(self):
    return op.where(op.gt(self, 0), 0.0, self) - op.log1p(op.exp(-op.abs(self)))


@log_sigmoid_backward.decompose
def _(grad, self):
    return grad * sigmoid(-self)


@tanhshrink.decompose
def _(self):
    return self - op.tanh(self)


@tanhshrink_backward.decompose
def _(grad, self):
    t = op.tanh(self)
    return grad * t * t


@softsign.decompose
def _(self):
    return self / (op.abs(self) + 1.0)


@softsign_backward.decompose
def _(grad, self):
    size = op.abs(self) + 1.0
    return grad / size / size + (self - self)  # nan at infinity; the square may overflow


# ---- pieces of straight lines --------------------------------------------------------------------
hardtanh = _activation(
    "hardtanh",
    "`self` clamped to [`min_val`, `max_val`].",
    ("[-2.0, 0.5, 2.0]", "[-1.0, 0.5, 1.0]"),
    ", float min_val=-1.0, float max_val=1.0",
)
hardtanh_backward = _backward(
    "hardtanh",
    ", float min_val=-1.0, float max_val=1.0",
    "`grad` where `self` is between `min_val` and `max_val` or nan, 0 elsewhere",
)
relu6 = _activation(
    "relu6",
    "`self` clamped to [0, 6].",
    ("[-1.0, 3.0, 9.0]", "[0.0, 3.0, 6.0]"),
    dtypes="numeric",
    zero_preserving=True,
)
hardsigmoid = _activation(
    "hardsigmoid",
    "``relu6(self + 3) / 6``: straight lines in place of `sigmoid` (Howard et al. 2019).",
    ("[-3.0, 0.0, 3.0]", "[0.0, 0.5, 1.0]"),
)
hardsigmoid_backward = _backward(
    "hardsigmoid", "", "``grad / 6`` where `self` is between -3 and 3, 0 elsewhere"
)
hardswish = _activation(
    "hardswish",
    "``self * relu6(self + 3) / 6``: straight lines in place of `silu` (Howard et al. 2019).",
    ("[0.0, 3.0]", "[0.0, 3.0]"),
    zero_preserving=True,
)
hardswish_backward = _backward(
    "hardswish",
    "",
    "``grad * (self / 3 + 1 / 2)`` where `self` is between -3 and 3, 0 up to -3, `grad` elsewhere",
)


@hardtanh.vjp("self")  # not from the result: programs write into it
def _(g, self, min_val, max_val):
    return hardtanh_backward(g, self, min_val, max_val)


@hardtanh_backward.vjp("grad")
def _(g, self, min_val, max_val):
    return hardtanh_backward(g, self, min_val, max_val)


@relu_backward.vjp("result")
@leaky_relu_backward.vjp("self")
@hardtanh_backward.vjp("self")
def _(g):
    return op.zeros_like(g)


@relu6.vjp("self")
def _(g, self):
    return hardtanh_backward(g, self, 0.0, 6.0)


@hardsigmoid.vjp("self")
@hardsigmoid_backward.vjp("grad")
def _(g, self):
    return hardsigmoid_backward(g, self)


@hardsigmoid_backward.vjp("self")
def _(g):
    return op.zeros_like(g)


@hardswish.vjp("self")
@hardswish_backward.vjp("grad")
def _(g, self):
    return hardswish_backward(g, self)


@hardswish_backward.vjp("self")
def _(g, grad, self):
    return hardsigmoid_backward(g * grad, self) * 2.0  # a third between -3 and 3


@hardtanh.decompose
def _(self, min_val, max_val):
    high = op.where(op.lt(self, min_val), min_val, self)
    return op.where(op.gt(high, max_val), max_val, high)


@hardtanh_backward.decompose
def _(grad, self, min_val, max_val):
    return op.where(op.logical_or(op.le(self, min_val), op.ge(self, max_val)), 0.0, grad)


@relu6.decompose
def _(self):
    high = op.where(op.lt(self, 0), 0, self)
    return op.where(op.gt(high, 6), 6, high)


@part
def _between_0_and_6(x):
    high = op.where(op.lt(x, 0), 0.0, x)
    return op.where(op.gt(high, 6), 6.0, high)


@hardsigmoid.decompose
def _(self):
    return _between_0_and_6(self + 3.0) / 6.0


@hardsigmoid_backward.decompose
def _(grad, self):
    return op.where(op.logical_and(op.gt(self, -3.0), op.lt(self, 3.0)), grad / 6.0, 0.0)


@hardswish.decompose
def _(self):
    return self * _between_0_and_6(self + 3.0) / 6.0


@hardswish_backward.decompose
def _(grad, self):
    inside = op.where(op.ge(self, 3.0), grad, grad * (self / 3.0 + 0.5))
    return op.where(op.le(self, -3.0), 0.0, inside)


sigmoid = float_function(
    "sigmoid",
    "The logistic function ``1 / (1 + exp(-self))``.",
    0.0,
    0.5,
    variants="function function_ method",
    libm="wide",
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
        return g * op.conj(result * (1.0 - result))
    return sigmoid_backward(g, result)


@sigmoid_backward.vjp("grad")
def _(g, result):
    return sigmoid_backward(g, result)


@sigmoid_backward.vjp("result")
def _(g, grad, result):
    return g * grad * (1.0 - 2.0 * result)


@sigmoid_backward.decompose
def _(grad, result):
    return grad * (1.0 - result) * result
