"""Attributes and options that are changed after an object was made: which have an effect.

Each attribute of a kind that can be changed without knowledge of its meaning (numbers, bools, pairs
of ints, tensors that are no parameters) is changed in an object of its own.
"""

import warnings

import torch
from torch import distributions, nn
from torch.optim import lr_scheduler
from torch.utils import data

warnings.simplefilter("ignore")
torch.manual_seed(0)
x0, x1, x2 = torch.rand(4, 4), torch.rand(2, 4, 8), torch.rand(2, 4, 8, 8)
x3, label = torch.rand(2, 4, 8, 8, 8), torch.tensor([1, 2, 0, 3])
positive, one = torch.rand(4, 4) + 0.5, torch.ones(4)
matrix = torch.eye(2) + 0.5
LAYERS = {
    "Linear": ((4, 3), x0), "Bilinear": ((4, 4, 3), x0, x0), "Identity": ((), x0),
    "Conv1d": ((4, 4, 3), x1), "Conv2d": ((4, 4, 3), x2), "Conv3d": ((4, 4, 3), x3),
    "ConvTranspose1d": ((4, 4, 3), x1), "ConvTranspose2d": ((4, 4, 3), x2),
    "ConvTranspose3d": ((4, 4, 3), x3), "BatchNorm1d": ((4,), x1), "BatchNorm2d": ((4,), x2),
    "BatchNorm3d": ((4,), x3), "InstanceNorm1d": ((4,), x1), "InstanceNorm2d": ((4,), x2),
    "GroupNorm": ((2, 4), x2), "LayerNorm": ((8,), x1), "RMSNorm": ((8,), x1),
    "LocalResponseNorm": ((2,), x2), "CrossMapLRN2d": ((2,), x2), "Embedding": ((5, 3), label),
    "EmbeddingBag": ((5, 3), label[None]), "RNN": ((8, 3), x1), "LSTM": ((8, 3), x1),
    "GRU": ((8, 3), x1), "RNNCell": ((4, 3), x0), "LSTMCell": ((4, 3), x0),
    "GRUCell": ((4, 3), x0), "MultiheadAttention": ((8, 2), x1, x1, x1),
    "TransformerEncoderLayer": ((8, 2, 4), x1), "TransformerDecoderLayer": ((8, 2, 4), x1, x1),
    "Dropout": ((), x0), "Dropout1d": ((), x1), "Dropout2d": ((), x2), "Dropout3d": ((), x3),
    "AlphaDropout": ((), x0), "FeatureAlphaDropout": ((), x2), "ReLU": ((), x0 - 0.5),
    "ReLU6": ((), 9 * x0), "ELU": ((), x0 - 0.5), "SELU": ((), x0 - 0.5),
    "CELU": ((), x0 - 0.5), "GELU": ((), x0), "SiLU": ((), x0), "Mish": ((), x0),
    "Hardtanh": ((), 3 * x0 - 1.5), "Hardswish": ((), x0), "Hardsigmoid": ((), x0),
    "Hardshrink": ((), x0), "Softshrink": ((), x0), "Softplus": ((), x0),
    "LeakyReLU": ((), x0 - 0.5), "RReLU": ((), x0 - 0.5), "Threshold": ((0.1, 0.2), x0),
    "GLU": ((), x0), "Softmax": ((0,), x0), "LogSoftmax": ((0,), x0), "Softmin": ((0,), x0),
    "MaxPool1d": ((2,), x1), "MaxPool2d": ((2,), x2), "MaxPool3d": ((2,), x3),
    "AvgPool1d": ((2,), x1), "AvgPool2d": ((2,), x2), "AvgPool3d": ((2,), x3),
    "AdaptiveAvgPool1d": ((2,), x1), "AdaptiveAvgPool2d": ((2,), x2),
    "AdaptiveMaxPool2d": ((2,), x2), "LPPool1d": ((2, 2), x1), "LPPool2d": ((2, 2), x2),
    "ConstantPad2d": ((1, 0.5), x2), "ReflectionPad2d": ((1,), x2),
    "ReplicationPad2d": ((1,), x2), "ZeroPad2d": ((1,), x2), "CircularPad2d": ((1,), x2),
    "Upsample": ((None, 2.0), x2), "UpsamplingBilinear2d": ((None, 2), x2),
    "PixelShuffle": ((1,), x2), "PixelUnshuffle": ((1,), x2), "ChannelShuffle": ((1,), x2),
    "Fold": (((9, 9), 2), torch.rand(2, 8, 64)), "Unfold": ((2,), x2), "Flatten": ((), x2),
    "CosineSimilarity": ((), x0, positive), "PairwiseDistance": ((), x0, positive),
    "L1Loss": ((), x0, positive), "MSELoss": ((), x0, positive),
    "SmoothL1Loss": ((), 3 * x0, positive), "HuberLoss": ((), 3 * x0, positive),
    "CrossEntropyLoss": ((), x0, label), "NLLLoss": ((), x0, label),
    "BCELoss": ((), x0, x0), "BCEWithLogitsLoss": ((), x0, x0),
    "KLDivLoss": ((), x0.log(), positive), "PoissonNLLLoss": ((), x0, 9 * positive),
    "GaussianNLLLoss": ((), x0, positive, x0 / 1e6), "SoftMarginLoss": ((), x0, x0.sign()),
    "HingeEmbeddingLoss": ((), x0, -torch.ones(4, 4)), "MultiMarginLoss": ((), x0, label),
    "CosineEmbeddingLoss": ((), x0, positive, -one), "MultiLabelSoftMarginLoss": ((), x0, x0),
    "MarginRankingLoss": ((), x0[0], x0[1], one), "TripletMarginLoss": ((), x0, positive, x0),
    "TripletMarginWithDistanceLoss": ((), x0, positive, x0),
    "CTCLoss": ((), torch.rand(6, 2, 4).log_softmax(2), torch.tensor([[1, 2], [1, 3]]),
                torch.tensor([6, 6]), torch.tensor([2, 2])),
    "AdaptiveLogSoftmaxWithLoss": ((4, 6, [2]), x0, label),
}  # fmt: skip
DISTRIBUTIONS = {
    "Normal": (one, one), "Bernoulli": (one / 3,), "Categorical": (positive,),
    "OneHotCategorical": (positive,), "Uniform": (one, 2 * one), "Gamma": (one, one),
    "Dirichlet": (positive,), "MultivariateNormal": (one[:2], matrix),
    "Poisson": (one,), "Exponential": (one,), "Laplace": (one, one), "Cauchy": (one, one),
    "StudentT": (3 * one,), "Gumbel": (one, one), "Geometric": (one / 3,),
    "Binomial": (3, one / 3), "NegativeBinomial": (3, one / 3), "Multinomial": (3, one / 3),
    "LogNormal": (one, one), "HalfNormal": (one,), "HalfCauchy": (one,), "Pareto": (one, 3 * one),
    "VonMises": (one, one), "Chi2": (one,),
    "FisherSnedecor": (5 * one, 5 * one), "Kumaraswamy": (one, one), "InverseGamma": (one, 3 * one),
    "ContinuousBernoulli": (one / 3,),
}  # fmt: skip
OPTIMIZERS = [
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ASGD",
    "LBFGS",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
]
SCHEDULES = {
    "StepLR": (2,), "MultiStepLR": ([2],), "ConstantLR": (), "LinearLR": (), "CyclicLR": (0.1, 0.2),
    "ExponentialLR": (0.9,), "CosineAnnealingLR": (5,), "CosineAnnealingWarmRestarts": (5,),
    "PolynomialLR": (), "OneCycleLR": (0.1, 20), "ReduceLROnPlateau": (),
}  # fmt: skip
LOADERS = {
    "RandomSampler": lambda: data.RandomSampler(range(6), True, 5),
    "SequentialSampler": lambda: data.SequentialSampler(range(6)),
    "SubsetRandomSampler": lambda: data.SubsetRandomSampler([3, 1, 2]),
    "WeightedRandomSampler": lambda: data.WeightedRandomSampler(one, 5),
    "BatchSampler": lambda: data.BatchSampler(data.SequentialSampler(range(6)), 2, False),
    "DistributedSampler": lambda: data.DistributedSampler(range(5), 2, 0),
    "Subset": lambda: data.Subset(range(6), [1, 2]),
}


# what describes the parameters: plait refuses some of these that PyTorch does not look at
SIZES = {"bias", "hidden_size", "in_features", "input_size"}


def changed(value):
    """Return another value of the same kind, or None for a kind that is left alone."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 0.5 + 0.25
    if isinstance(value, tuple) and value and all(isinstance(each, int) for each in value):
        return tuple(each + 1 for each in value)
    if isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter):
        return value * 0.5 + 0.25 if value.is_floating_point() else None
    return None


def flat(result):
    """Return a result as a list of numbers."""
    if isinstance(result, torch.Tensor):
        return [*result.shape, *result.detach().flatten().tolist()]
    if isinstance(result, (tuple, list)):
        return [number for each in result for number in flat(each)]
    return [] if result is None else [float(result)]


def outcome(make, put, use):
    torch.manual_seed(1)
    result = make()
    try:
        put(result)
        torch.manual_seed(2)
        return str(flat(use(result)))
    except (RuntimeError, ValueError, TypeError, AssertionError, LookupError, AttributeError):
        return "refused"


def show(label, make, members, use):
    """Print which changes have an effect, and which are refused."""
    torch.manual_seed(1)
    plain, entry = outcome(make, lambda output: None, use), {"effect": [], "refused": []}
    assert plain != "refused", label
    for name, (value, put) in members(make()).items():
        other = changed(value)
        if other is None:
            continue
        result = outcome(make, lambda output, put=put, other=other: put(output, other), use)
        if result != plain:
            entry["refused" if result == "refused" else "effect"].append(name)
    print(label, *(f"{kind}: {' '.join(sorted(names))};" for kind, names in entry.items()))


def attributes(result):
    """Return the public attributes of an object; of a distribution its parameters."""
    names = getattr(result, "arg_constraints", None) or vars(result)
    return {
        name: (getattr(result, name), lambda result, value, name=name: setattr(result, name, value))
        for name in sorted(names)
        if not name.startswith("_") and name not in SIZES
    }


def options(result):
    """Return the options of an optimizer's group."""
    return {
        name: (value, lambda result, value, name=name: result.param_groups[0].update({name: value}))
        for name, value in result.param_groups[0].items()
        if name not in ("params", "capturable", "differentiable", "fused", "foreach")
    }


def optimizer(name):
    parameter = nn.Parameter(torch.rand(3, 2))
    return getattr(torch.optim, name)([parameter], lr=0.1)


def three_steps(result):
    parameter = result.param_groups[0]["params"][0]

    def loss():
        result.zero_grad()
        value = (parameter**2 + parameter).sum()
        value.backward()
        return value

    for _ in range(3):
        loss()
        result.step(loss if type(result).__name__ == "LBFGS" else None)
    return parameter


def rates(result):
    values = []
    for epoch in range(8):
        result.optimizer.step()
        if isinstance(result, lr_scheduler.ReduceLROnPlateau):
            result.step(1.0 + (epoch > 5))
            values.append(result.num_bad_epochs)
        else:
            result.step()
        values.append(result.optimizer.param_groups[0]["lr"])
    return values


def uses(result):
    point = result.sample()
    values = [point, result.log_prob(point)]
    for name in ("mean", "variance", "entropy"):
        try:
            value = getattr(result, name)
            values.append(value() if callable(value) else value)
        except NotImplementedError:
            pass
    return values


for kind, (arguments, *inputs) in LAYERS.items():
    show(
        f"nn.{kind}",
        lambda kind=kind, arguments=arguments: getattr(nn, kind)(*arguments),
        attributes,
        lambda made, inputs=inputs: made(*(each.clone() for each in inputs)),
    )
for kind in OPTIMIZERS:
    show(f"optim.{kind}", lambda kind=kind: optimizer(kind), options, three_steps)
for kind, arguments in SCHEDULES.items():
    show(
        f"lr_scheduler.{kind}",
        lambda kind=kind, a=arguments: getattr(lr_scheduler, kind)(optimizer("SGD"), *a),
        attributes,
        rates,
    )
for kind, arguments in DISTRIBUTIONS.items():
    show(
        f"distributions.{kind}",
        lambda kind=kind, a=arguments: getattr(distributions, kind)(*a, validate_args=False),
        attributes,
        uses,
    )
for kind, make in LOADERS.items():
    show(f"data.{kind}", make, attributes, lambda made: [[made[i] for i in range(len(made))]
         if isinstance(made, data.Subset) else list(made), len(made)])  # fmt: skip
