"""Probability distributions: differentiable sampling, densities, entropies and divergences.

Names, arguments and defaults are PyTorch's. `sample` draws, `rsample` draws so that gradients reach
the parameters (a variational autoencoder), ``log_prob(action)`` is what a policy gradient needs
(REINFORCE). The parts are modules too, such as `plait.nn.distributions.transforms`.

Example:
    >>> import plait_core as pc
    >>> from plait_nn.distributions import Categorical, Normal, kl_divergence
    >>> policy = Categorical(logits=pc.zeros(4))
    >>> policy.log_prob(policy.sample())
    tensor(-1.3863)
    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5000)
"""

from plait_nn.distributions import constraints, kl as kl, transforms
from plait_nn.distributions.bernoulli import Bernoulli
from plait_nn.distributions.beta import Beta
from plait_nn.distributions.binomial import Binomial
from plait_nn.distributions.categorical import Categorical
from plait_nn.distributions.cauchy import Cauchy
from plait_nn.distributions.chi2 import Chi2
from plait_nn.distributions.constraint_registry import biject_to, transform_to
from plait_nn.distributions.continuous_bernoulli import ContinuousBernoulli
from plait_nn.distributions.dirichlet import Dirichlet
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.exp_family import ExponentialFamily
from plait_nn.distributions.exponential import Exponential
from plait_nn.distributions.fishersnedecor import FisherSnedecor
from plait_nn.distributions.gamma import Gamma
from plait_nn.distributions.generalized_pareto import GeneralizedPareto
from plait_nn.distributions.geometric import Geometric
from plait_nn.distributions.gumbel import Gumbel
from plait_nn.distributions.half_cauchy import HalfCauchy
from plait_nn.distributions.half_normal import HalfNormal
from plait_nn.distributions.independent import Independent
from plait_nn.distributions.inverse_gamma import InverseGamma
from plait_nn.distributions.kl import kl_divergence, register_kl
from plait_nn.distributions.kumaraswamy import Kumaraswamy
from plait_nn.distributions.laplace import Laplace
from plait_nn.distributions.lkj_cholesky import LKJCholesky
from plait_nn.distributions.log_normal import LogNormal
from plait_nn.distributions.logistic_normal import LogisticNormal
from plait_nn.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from plait_nn.distributions.mixture_same_family import MixtureSameFamily
from plait_nn.distributions.multinomial import Multinomial
from plait_nn.distributions.multivariate_normal import MultivariateNormal
from plait_nn.distributions.negative_binomial import NegativeBinomial
from plait_nn.distributions.normal import Normal
from plait_nn.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from plait_nn.distributions.pareto import Pareto
from plait_nn.distributions.poisson import Poisson
from plait_nn.distributions.relaxed_bernoulli import RelaxedBernoulli
from plait_nn.distributions.relaxed_categorical import RelaxedOneHotCategorical
from plait_nn.distributions.studentT import StudentT
from plait_nn.distributions.transformed_distribution import TransformedDistribution
from plait_nn.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from plait_nn.distributions.uniform import Uniform
from plait_nn.distributions.von_mises import VonMises
from plait_nn.distributions.weibull import Weibull
from plait_nn.distributions.wishart import Wishart

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "ContinuousBernoulli",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "identity_transform",
    "kl",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]
