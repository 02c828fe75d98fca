"""Invertible maps between spaces, with the logarithms of their Jacobian determinants.

A `TransformedDistribution` is the distribution of transformed samples; `biject_to` and
`transform_to` return a transform from unconstrained numbers to a constraint.

Example:
    >>> import plait_core as pc
    >>> from plait_nn.distributions import transforms
    >>> exp = transforms.ExpTransform()
    >>> exp.inv(exp(pc.tensor(2.0)))
    tensor(2.)
    >>> exp.log_abs_det_jacobian(pc.tensor(2.0), exp(pc.tensor(2.0)))
    tensor(2.)
"""

from plait_nn.distributions._correlation_transform import CorrCholeskyTransform
from plait_nn.distributions._elementwise_transforms import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from plait_nn.distributions._transform import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    _InverseTransform as _InverseTransform,  # a name of PyTorch that libraries import
    identity_transform,
)
from plait_nn.distributions._vector_transforms import (
    CatTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
