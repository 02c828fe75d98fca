"""NumPy's names of operators, and those of the namespace `special` for what has a name already."""

from plait_ops.alias import alias
from plait_ops.specs.normalization.softmax import log_softmax, softmax
from plait_ops.specs.pointwise.activations import sigmoid
from plait_ops.specs.pointwise.bessel import i0, i1
from plait_ops.specs.pointwise.error_functions import erf, erfc, erfinv
from plait_ops.specs.pointwise.exponential import exp2, expm1
from plait_ops.specs.pointwise.gamma import (
    digamma,
    gammainc,
    gammaincc,
    lgamma,
    mvlgamma,
    polygamma,
    polygamma_n,
)
from plait_ops.specs.pointwise.hyperbolic import acosh, asinh, atanh
from plait_ops.specs.pointwise.logarithms import inverse_sigmoid, log1p, xlogy
from plait_ops.specs.pointwise.rounding import trunc
from plait_ops.specs.pointwise.trigonometric import acos, asin, atan, atan2, sinc
from plait_ops.specs.reduction.norms import logsumexp

for _name, _operator in {
    "arccos": acos,
    "arcsin": asin,
    "arctan": atan,
    "arctan2": atan2,
    "arccosh": acosh,
    "arcsinh": asinh,
    "arctanh": atanh,
    "fix": trunc,
}.items():
    alias(_name, _operator)

for _name, _operator in {"igamma": gammainc, "igammac": gammaincc}.items():
    # the first argument has no derivative
    alias(_name, _operator).samples(
        lambda s, of=_operator: (each.without_gradient() for each in of.draw())
    )

for _name, _operator in {
    "digamma": digamma,
    "psi": digamma,
    "erf": erf,
    "erfc": erfc,
    "erfinv": erfinv,
    "exp2": exp2,
    "expit": sigmoid,
    "expm1": expm1,
    "gammaln": lgamma,
    "i0": i0,
    "log1p": log1p,
    "log_softmax": log_softmax,
    "logit": inverse_sigmoid,
    "logsumexp": logsumexp,
    "modified_bessel_i0": i0,
    "modified_bessel_i1": i1,
    "multigammaln": mvlgamma,
    "polygamma": polygamma,
    "sinc": sinc,
    "softmax": softmax,
    "xlogy": xlogy,
}.items():
    alias(f"special_{_name}", _operator, method=False)
alias("special_polygamma.n", polygamma_n, method=False)
