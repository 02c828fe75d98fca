"""Invertible maps between spaces, with the logarithm of how they stretch volumes.

A `TransformedDistribution` is a distribution seen through them; `biject_to` and `transform_to`
choose one that reaches a constraint from unconstrained numbers.

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
