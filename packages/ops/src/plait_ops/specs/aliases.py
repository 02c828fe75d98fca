"""Aliases of operators: NumPy's names, and names of the namespace `special`."""

from plait_ops.alias import alias
from plait_ops.specs.normalization.softmax import log_softmax, softmax
from plait_ops.specs.pointwise.activations import sigmoid
from plait_ops.specs.pointwise.arithmetic import neg
from plait_ops.specs.pointwise.bessel import i0, i1
from plait_ops.specs.pointwise.complex_numbers import conj_
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
from plait_ops.specs.pointwise.signs import abs_
from plait_ops.specs.pointwise.trigonometric import acos, asin, atan, atan2, sinc
from plait_ops.specs.reduction.norms import logsumexp

ALIASES = {
    alias(name, of, variants="function function_ method"): of
    for name, of in {
        "arccos": acos,
        "arcsin": asin,
        "arctan": atan,
        "arccosh": acosh,
        "arcsinh": asinh,
        "arctanh": atanh,
        "fix": trunc,
        "negative": neg,
    }.items()
}
ALIASES |= {
    alias(name, of, variants="function method"): of
    for name, of in {"absolute": abs_, "arctan2": atan2}.items()
}
ALIASES |= {
    alias(name, of, variants="function method", inplace=True): of
    for name, of in {"igamma": gammainc, "igammac": gammaincc}.items()
}
# in PyTorch it is computed at once, as here, and `conj` is lazy
ALIASES[alias("conj_physical", conj_, "function function_ method", inplace=True)] = conj_
ALIASES |= {
    alias(name, of): of
    for name, of in {
        "special_digamma": digamma,
        "special_psi": digamma,
        "special_erf": erf,
        "special_erfc": erfc,
        "special_erfinv": erfinv,
        "special_exp2": exp2,
        "special_expit": sigmoid,
        "special_expm1": expm1,
        "special_gammaln": lgamma,
        "special_i0": i0,
        "special_log1p": log1p,
        "special_log_softmax": log_softmax,
        "special_logit": inverse_sigmoid,
        "special_logsumexp": logsumexp,
        "special_modified_bessel_i0": i0,
        "special_modified_bessel_i1": i1,
        "special_multigammaln": mvlgamma,
        "special_polygamma": polygamma,
        "special_sinc": sinc,
        "special_softmax": softmax,
        "special_xlogy": xlogy,
        "special_polygamma.n": polygamma_n,
    }.items()
}
