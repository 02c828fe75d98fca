"""Gamma and Dirichlet samples with derivatives for their parameters."""

from plait_ops import calls as op
from plait_ops.spec import Operator, Pointwise
from plait_ops.specs.pointwise.gamma import gammainc, gammaincc
from plait_ops.specs.random.sampling import standard_gamma
from plait_ops.words import check, dense_strides, float64, require, result_as, to_dtype

gamma_sample_grad = Pointwise(
    "gamma_sample_grad(Tensor self, Tensor output) -> Tensor",
    doc="""
    The derivative of samples `output` of the gamma distribution with respect to its shape parameter `self`, at constant
    cumulative probability ``F = gammainc(self, output)``: ``-(dF / dself) / density`` (Figurnov, Mohamed and Mnih 2018,
    "Implicit reparameterization gradients"). It is itself differentiable with respect to `output` only.

    >>> import plait_abi, plait_core as pc
    >>> round(plait_abi.operator("gamma_sample_grad")(pc.tensor([2.0]), pc.tensor([1.5])).item(), 4)
    0.895
    """,
    dtypes="floating",
    internal=True,
    domain=(1.2, 6.0),
    widens=True,
    libm="all",
)
beta_sample_grad = Pointwise(
    "beta_sample_grad(Tensor x, Tensor alpha, Tensor beta) -> Tensor",
    doc="""
    The derivative of samples `x` of the beta distribution with respect to `alpha`, at constant cumulative probability,
    divided by ``1 - x``. The other shares of a Dirichlet sample shrink by this factor.

    >>> import plait_abi, plait_core as pc
    >>> gradient = plait_abi.operator("beta_sample_grad")
    >>> round(gradient(pc.tensor([0.25]), pc.tensor([1.0]), pc.tensor([1.0])).item(), 4)
    0.4621
    """,
    dtypes="floating",
    internal=True,
    domain=(0.15, 0.85),
    libm="all",
)

dirichlet_sample = Operator(
    "dirichlet_sample(Tensor self, *, Generator? generator=None) -> Tensor",
    doc="""
    Shares drawn from the Dirichlet distribution with the concentrations in the last dimension of `self`: gamma samples
    divided by their sum. The gradient is that of the marginal beta distributions, which has the least variance.

    Dtypes: floating; the result has the dtype of `self`. Raises: ShapeError if `self` is 0-d.

    >>> import plait_abi, plait_core as pc
    >>> shares = plait_abi.operator("dirichlet_sample")(pc.tensor([1.0, 2.0, 3.0]))
    >>> bool((shares.sum() - 1).abs() < 1e-6)
    True
    """,
    kernel="optional: without a kernel other operators compute it; in[0] holds concentrations along its last dimension; the result is dense in the order of its dimensions.",
    random=True,
    dtypes="floating",
    internal=True,
)
dirichlet_sample.batch("code")


@dirichlet_sample.shape
def _(self):
    require("self", self.dtype, "floating")
    check(self.ndim > 0, f"`self` must have a dimension of concentrations; got shape {self.shape}")
    return result_as(self.shape, self.dtype, dense_strides(self))


@gamma_sample_grad.vjp("output")
def _(g, self, output, result):
    # of -F_a / p, with F_ax = p_a and log p = (a - 1) log x - x - lgamma(a)
    return g * (op.digamma(self) - op.log(output) - result * ((self - 1.0) / output - 1.0))


@standard_gamma.vjp("self")
def _(g, self, result):
    return g * gamma_sample_grad(self, result)


@gammainc.vjp("self")
def _(g, self, other):
    x = op.add(op.zeros_like(self), other)
    density = op.exp(op.xlogy(self - 1.0, x) - x - op.lgamma(self))
    slope = -(g * gamma_sample_grad(op.add(op.zeros_like(x), self), x) * density)
    return op.where(op.eq(x, 0), 0.0, slope)  # 0 for every shape parameter


@gammaincc.vjp("self")
def _(g, self, other):
    x = op.add(op.zeros_like(self), other)
    density = op.exp(op.xlogy(self - 1.0, x) - x - op.lgamma(self))
    slope = g * gamma_sample_grad(op.add(op.zeros_like(x), self), x) * density
    return op.where(op.eq(x, 0), 0.0, slope)


@dirichlet_sample.decompose
def _(self, generator):
    # In float64, whose gamma samples of small shapes underflow later, so shares are never 0.
    made = standard_gamma(to_dtype(self, float64), generator=generator)
    shares = made / op.clamp_min(op.sum(made, [-1], True), 1e-300)
    least = 2.3e-308 if self.dtype == float64 else 1.2e-38
    most = 1.0 - 2.0**-53 if self.dtype == float64 else 1.0 - 2.0**-24
    return to_dtype(op.clamp(shares, least, most), self.dtype)


@dirichlet_sample.vjp("self")
def _(g, self, result):
    # The other concentrations' sum is a difference, in float64 as it may be relatively small.
    wide = to_dtype(self, float64)
    rest = to_dtype(op.sum(wide, [-1], True) - wide, self.dtype)
    moved = beta_sample_grad(result, self, rest)
    return moved * (g - op.sum(result * g, [-1], True))
