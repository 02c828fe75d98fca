"""Members of datasets, samplers, distributions and tracers that are overridden: their calls."""

import copy
import inspect
import warnings

import torch
from torch import distributions as dist, fx, nn
from torch.utils import data

warnings.simplefilter("ignore")
torch.manual_seed(0)
seen = []
ERRORS = (RuntimeError, ValueError, TypeError, AssertionError, LookupError)


def subclass(base, name):
    """Return a subclass that notes the uses of a member."""
    static, plain = inspect.getattr_static(base, name, None), getattr(base, name, None)
    if isinstance(static, property):
        member = property(lambda self: (seen.append(name), static.fget(self))[1])
    elif isinstance(static, classmethod):
        member = classmethod(lambda cls, *args: (seen.append(name), static.__func__(cls, *args))[1])
    else:

        def member(self, *args, **kwargs):
            seen.append(name)
            return plain(self, *args, **kwargs)

    return type("Own", (base,), {name: member})


class Items(data.Dataset):
    def __getitem__(self, index):
        return index

    def __getitems__(self, indices):
        return [self[index] for index in indices]

    def __len__(self):
        return 4


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.factor = nn.Parameter(torch.ones(2))
        self.inner = nn.Sequential(nn.ReLU())

    def forward(self, x):
        return self.inner(self.layer(x)) * self.factor + torch.relu(x).sum()


def loads(sampler):
    """Return uses of a sampler of indices."""
    loader = data.DataLoader(range(5), sampler=sampler)
    return [lambda: list(loader), lambda: len(loader), lambda: list(sampler)]


one, traced = torch.ones(2), fx.symbolic_trace(Small())
DISTRIBUTION = (
    "cdf entropy enumerate_support expand icdf log_prob mean mode perplexity rsample sample "
    "sample_n variance"
)
TRANSFORM = (
    "_call _inverse log_abs_det_jacobian inv with_cache forward_shape inverse_shape _inv_call "
    "__eq__"
)
STEPS = "call_function call_method call_module get_attr output placeholder run run_node "


def uses_of_distribution(made):
    mapped = dist.TransformedDistribution(made, [dist.ExpTransform()])
    independent = dist.Independent(made, 0)
    return [
        made.sample, lambda: made.sample((2,)), lambda: made.rsample((2,)), made.entropy,
        lambda: made.log_prob(made.sample()), lambda: made.mean, lambda: made.variance,
        lambda: made.mode, lambda: made.cdf(one / 2), lambda: made.icdf(one / 2), made.perplexity,
        lambda: made.enumerate_support(), lambda: made.sample_n(2), lambda: made.expand((3, 2)),
        lambda: independent.log_prob(made.sample()), lambda: independent.mean, independent.sample,
        lambda: dist.kl_divergence(made, made), lambda: mapped.log_prob(2 * one), mapped.sample,
        lambda: dist.MixtureSameFamily(dist.Categorical(one), made).log_prob(one[0]),
    ]  # fmt: skip


def uses_of_transform(made):
    mapped = dist.TransformedDistribution(dist.Normal(one, one), [made])
    return [
        lambda: made(one), lambda: made.inv(one / 3), lambda: made.inv(made(one)),
        lambda: made.log_abs_det_jacobian(one, made(one)), lambda: made.with_cache(1),
        mapped.sample, lambda: mapped.log_prob(made(one)), lambda: mapped.cdf(made(one)),
        lambda: dist.ComposeTransform([made, made])(one), lambda: made == made,
        lambda: dist.ComposeTransform([made, dist.ExpTransform()]).log_abs_det_jacobian(one, one),
    ]  # fmt: skip


def uses_of_items(made):
    return [
        lambda: list(data.DataLoader(made, 2)), lambda: (made + made)[5],
        lambda: data.Subset(made, [0])[0], lambda: data.random_split(made, [2, 2])[0][0],
        lambda: list(data.DataLoader(data.Subset(made, [1, 2]), 2)), lambda: len(made),
    ]  # fmt: skip


SAMPLER = "__iter__ __len__"
# classes, names of members, arguments, and uses
CASES = [
    (Items, "__add__ __getitem__ __getitems__ __len__", (), uses_of_items),
    (data.TensorDataset, "__add__ __getitem__ __len__", (torch.arange(4.0),), uses_of_items),
    (data.Subset, "__getitems__ __len__", (range(5), [0, 1, 2, 3]), uses_of_items),
    (data.ConcatDataset, "__getitem__", ([[1, 2], [3, 4]],), uses_of_items),
    (data.ChainDataset, "__iter__", ([],), lambda m: [lambda: list(data.DataLoader(m, 2))]),
    (data.RandomSampler, SAMPLER, (range(5),), loads),
    (data.SequentialSampler, SAMPLER, (range(5),), loads),
    (data.WeightedRandomSampler, SAMPLER, ([1.0, 2.0], 2), loads),
    (data.SubsetRandomSampler, SAMPLER, ([1, 2],), loads),
    (data.DistributedSampler, SAMPLER + " set_epoch", (range(5), 2, 0), loads),
    (data.BatchSampler, SAMPLER, (range(5), 2, False), loads),
    *(
        (getattr(dist, name), DISTRIBUTION, arguments, uses_of_distribution)
        for name, arguments in {
            "Normal": (one, one), "Categorical": (one,), "Bernoulli": (one / 2,),
            "Gamma": (one, one), "Beta": (one, one), "Dirichlet": (one,), "Poisson": (one,),
            "MultivariateNormal": (one, torch.eye(2)), "Uniform": (0 * one, one),
            "LogNormal": (one, one), "Exponential": (one,), "StudentT": (3 * one,),
            "Geometric": (one / 2,), "Binomial": (3, one / 2), "HalfNormal": (one,),
            "NegativeBinomial": (3, one / 2), "OneHotCategorical": (one,), "Laplace": (one, one),
        }.items()
    ),
    *(
        (getattr(dist, name), TRANSFORM, arguments, uses_of_transform)
        for name, arguments in {
            "ExpTransform": (), "AffineTransform": (0.0, 2.0), "TanhTransform": (),
            "SigmoidTransform": (), "SoftmaxTransform": (), "StickBreakingTransform": (),
        }.items()
    ),
    (
        fx.Tracer,
        "call_module create_arg create_node create_proxy getattr is_leaf_module path_of_module "
        "proxy trace keys iter to_bool create_args_for_root",
        (),
        lambda made: [lambda: made.trace(Small())],
    ),
    (
        fx.Interpreter,
        STEPS + "fetch_attr fetch_args_kwargs_from_env map_nodes_to_values",
        (traced,),
        lambda made: [lambda: made.run(torch.ones(1, 2))],
    ),
    (fx.Transformer, STEPS + "transform", (traced,), lambda made: [made.transform]),
    (
        fx.GraphModule,
        "recompile train __deepcopy__ print_readable forward",
        (Small(), traced.graph),
        lambda made: [
            lambda: made(torch.ones(1, 2)), made.train, made.eval, made.recompile,
            lambda: copy.deepcopy(made), lambda: setattr(made, "graph", made.graph),
        ],
    ),
]  # fmt: skip
for base, names, arguments, uses in CASES:
    for name in names.split():
        seen.clear()
        made = subclass(base, name)(*arguments)
        called = ["made"] if seen else []
        for i, use in enumerate(uses(made)):
            seen.clear()
            try:
                use()
            except ERRORS:
                called.append("refused")
            if seen:
                called.append(str(i))
        print(base.__name__, name, *called)
