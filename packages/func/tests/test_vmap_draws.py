"""Random numbers in `vmap`: every operator that draws, in all its forms, and what is made of them.

Under "error" it is refused, under "same" all samples have the same numbers, under "different" each
has others.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc
import plait_nn as nn
import plait_nn.distributions as D
import plait_nn.functional as F
from plait_abi import operator
from plait_func import vmap
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.spec import Operator

DRAWS = [spec for spec in specs.all() if spec.random]
SIZE = 4


def results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def are_equal(value: Any) -> bool:
    return bool((value == value[:1]).all() | (value != value).all())


def are_different(value: Any) -> bool:
    rows = value.reshape(value.shape[0], -1)
    return all(bool((a != b).any()) for a, b in itertools.combinations(rows, 2))


def check(function: Callable[..., Any], args: list[Any], selection: set[int], varies: bool) -> None:
    """Check a function that draws in all modes, with some of its arguments mapped.

    All samples of an argument are the same, so that only the draws differ.
    """
    dummy = pc.zeros(SIZE)
    arguments = [
        x.unsqueeze(0).expand(SIZE, *x.shape).clone() if i in selection else x
        for i, x in enumerate(args)
    ]
    dims = (0, *(0 if i in selection else None for i in range(len(args))))

    def call(_: Any, *rest: Any) -> Any:
        return function(*rest)

    with pytest.raises(RuntimeError, match=r"vmap: \w+ draws random numbers; pass randomness="):
        vmap(call, dims)(dummy, *arguments)
    result = vmap(call, dims, randomness="same")(dummy, *arguments)
    assert all(map(are_equal, results(result)))
    result = vmap(call, dims, randomness="same", chunk_size=3)(dummy, *arguments)
    assert all(map(are_equal, results(result)))
    for kwargs in ({}, {"chunk_size": 3}):
        several = vmap(call, dims, randomness="different", **kwargs)  # type: ignore[arg-type]
        result = (results(several(dummy, *arguments))[0] for _ in range(20 if varies else 1))
        # few numbers of a small range are the same by chance
        assert any(map(are_different, result)) or not varies


def subsets(count: int) -> list[set[int]]:
    return [set(s) for n in range(count + 1) for s in itertools.combinations(range(count), n)]


def calls_of(spec: Operator) -> list[tuple[Callable[..., Any], list[Any], bool]]:
    """Return calls of an operator of tensors, and whether their results vary surely."""
    entries = []
    for sample in draw(spec):
        tensor_sample = sample.mapped(pc.from_numpy)
        names = [*range(len(tensor_sample.args)), *tensor_sample.kwargs]
        values = [*tensor_sample.args, *tensor_sample.kwargs.values()]
        at = [i for i, each in enumerate(values) if pc.is_tensor(each)]

        def call(
            *tensors: Any, names: Any = names, values: Any = values, at: Any = at, **kwargs: Any
        ) -> Any:
            full = list(values)
            for i, x in zip(at, tensors, strict=True):
                full[i] = x
            pairs = dict(zip(names, full, strict=True))
            args = [pairs[i] for i in range(len(pairs)) if i in pairs]
            named = {key: each for key, each in pairs.items() if isinstance(key, str)}
            return operator(spec.name)(*args, **named, **kwargs)

        tensors = [values[i] for i in at]
        rows = [results(call(*(x.clone() for x in tensors)))[0] for _ in range(12)]
        if not rows[0].ndim and not rows[0].numel():
            continue
        entries.append((call, tensors, rows[0].numel() > 0 and are_different(pc.stack(rows))))
    return entries


@pytest.mark.parametrize("spec", DRAWS, ids=lambda spec: spec.name)
def test_operators(spec: Operator) -> None:
    pc.manual_seed(0)
    writes = spec.name.partition(".")[0].endswith("_")
    for call, tensors, varies in calls_of(spec):
        if spec.name in ("dropout", "rrelu") and not varies:
            continue  # they may be off, and then draw nothing
        for choice in subsets(len(tensors)):
            if not writes:
                check(call, tensors, choice, varies)
                continue

            def fresh(x: Any, *rest: Any, call: Any = call) -> Any:
                return call(pc.empty_like(x), *rest)

            def own(x: Any, *rest: Any, call: Any = call) -> Any:
                return call(x.clone(), *rest)

            for function in (fresh, own):
                check(function, tensors, choice, varies)


@pytest.mark.parametrize("spec", [s for s in DRAWS if s.out], ids=lambda spec: spec.name)
def test_operators_with_out(spec: Operator) -> None:
    pc.manual_seed(0)
    for call, tensors, varies in calls_of(spec):
        if spec.name in ("dropout", "rrelu") and not varies:
            continue
        blank = [pc.empty_like(each) for each in results(call(*tensors))]

        def into(*arguments: Any, call: Any = call, blank: Any = blank) -> Any:
            out = [pc.empty_like(each) for each in blank]
            call(*arguments, out=out[0] if len(out) == 1 else tuple(out))
            return out

        for choice in subsets(len(tensors)):
            check(into, tensors, choice, varies)


def test_what_all_samples_share_is_not_filled_with_other_numbers() -> None:
    shared, x = pc.zeros(3), pc.zeros(SIZE)
    for fill in (
        lambda a: shared.normal_() + a, lambda a: shared[1:].uniform_() + a,
        lambda a: pc.randn(3, out=shared) + a, lambda a: nn.init.normal_(shared) + a,
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"vmap: \w+: a tensor that all samples share"):
            vmap(fill, randomness="different")(x)
        assert shared.tolist() == [0, 0, 0]
        assert are_equal(vmap(fill, randomness="same")(x))
        shared.zero_()


def test_a_view_taken_before_the_draw_has_its_numbers() -> None:
    def f(a: Any) -> Any:
        z = pc.zeros(2, 3)
        column, flat = z[:, 1], z.view(-1)
        z.normal_()
        return pc.cat([column, flat, z.t().reshape(-1)]) + a

    result = vmap(f, randomness="different")(pc.zeros(SIZE))
    assert are_different(result)
    assert (result[:, :2] == result[:, [3, 6]]).all() and (
        result[:, 2:4] == result[:, [8, 10]]
    ).all()


INITS = {
    name: getattr(nn.init, name)
    for name in nn.init.__all__
    if name.endswith("_")
    and not name.startswith("_")
    and name not in ("constant_", "dirac_", "eye_", "ones_", "zeros_", "sparse_")
}
INITS["sparse_"] = lambda tensor: nn.init.sparse_(tensor, 0.5)


@pytest.mark.parametrize("name", INITS)
def test_initializers(name: str) -> None:
    check(lambda: INITS[name](pc.empty(6, 6)), [], set(), True)
    check(lambda a: INITS[name](a.new_empty(6, 6)), [pc.zeros(1)], {0}, True)


LAYERS: dict[str, tuple[Callable[[], nn.Module], Any]] = {
    "linear": (lambda: nn.Linear(3, 4), pc.ones(2, 3)),
    "bilinear": (lambda: nn.Bilinear(3, 3, 2), None),
    "conv": (lambda: nn.Conv2d(1, 2, 3, groups=1), pc.ones(1, 1, 4, 4)),
    "conv_transpose": (lambda: nn.ConvTranspose1d(1, 2, 3), pc.ones(1, 1, 4)),
    "embedding": (lambda: nn.Embedding(5, 3, padding_idx=0), pc.tensor([1, 2])),
    "gru": (lambda: nn.GRUCell(3, 2), pc.ones(1, 3)),
    "attention": (lambda: nn.MultiheadAttention(4, 2), None),
    "encoder": (lambda: nn.TransformerEncoderLayer(4, 2, 8), pc.ones(2, 1, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_that_are_made_inside(name: str) -> None:
    make, x = LAYERS[name]

    def call() -> Any:
        layer = make()
        if x is not None:
            return layer(x)
        return pc.cat([each.reshape(-1) for each in layer.parameters()])

    with pa.no_grad():
        check(call, [], set(), True)


def test_the_gradient_of_a_layer_that_is_made_inside() -> None:
    from plait_func import grad

    def f(a: Any) -> Any:
        layer = nn.Linear(3, 1)
        return grad(lambda x: layer(x).sum())(a) - layer.weight.detach()[0]

    assert (vmap(f, randomness="different")(pc.ones(SIZE, 3)).abs() < 1e-6).all()


PIXELS = pc.arange(360.0).reshape(1, 20, 18)
DROPOUTS: dict[str, Callable[[Any], Any]] = {
    "dropout": F.dropout,
    "in place": lambda x: F.dropout(x.clone(), inplace=True),
    "alpha": lambda x: F.alpha_dropout(x, 0.5, True),
    "feature_alpha": lambda x: F.feature_alpha_dropout(x, 0.5, True),
    "one": lambda x: F.dropout1d(x[0]),
    "two": lambda x: F.dropout2d(x.unsqueeze(0).transpose(1, 2)),
    "three": lambda x: F.dropout3d(x.transpose(0, 1).unsqueeze(-1)),
    "layer": lambda x: nn.Dropout()(x),
    "gumbel": lambda x: F.gumbel_softmax(x.flatten(), hard=False),
    "rrelu": lambda x: F.rrelu(-x, training=True),
    "rrelu_": lambda x: F.rrelu_(-x, training=True),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
    "pool": lambda x: F.fractional_max_pool2d(PIXELS * x[0, 0, 0], 2, output_size=(6, 6)),
}


@pytest.mark.parametrize("name", DROPOUTS)
def test_functions_of_layers(name: str) -> None:
    pc.manual_seed(0)
    x = pc.rand(2, 40, 6) + 1
    for choice in (set(), {0}):
        check(DROPOUTS[name], [x], choice, True)


def test_a_layer_that_is_off_draws_nothing() -> None:
    x = pc.ones(3, 2)
    for off in (lambda a: F.dropout(a, training=False), lambda a: F.rrelu(a, training=False)):
        assert (vmap(off)(x) == x).all()


EYE, P = pc.eye(3), pc.tensor([0.2, 0.3, 0.5])
ONE = ["Bernoulli", "Categorical", "Chi2", "ContinuousBernoulli", "Dirichlet", "Exponential",
       "Geometric", "HalfCauchy", "HalfNormal", "OneHotCategorical",
       "OneHotCategoricalStraightThrough"]  # fmt: skip
TWO = ["Beta", "Cauchy", "FisherSnedecor", "Gamma", "Gumbel", "InverseGamma", "Kumaraswamy",
       "Laplace", "LogNormal", "LogisticNormal", "Normal", "Pareto", "VonMises",
       "Weibull"]  # fmt: skip


def _same_for_all(name: str, count: int, a: Any) -> Any:
    return getattr(D, name)(*[a] * count)


DISTRIBUTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: functools.partial(_same_for_all, name, 1) for name in ONE},
    **{name: functools.partial(_same_for_all, name, 2) for name in TWO},
    "Binomial": lambda a: D.Binomial(pc.tensor(50.0), a),
    "GeneralizedPareto": lambda a: D.GeneralizedPareto(a, a, a),
    "Independent": lambda a: D.Independent(D.Normal(a, a), 1),
    "LKJCholesky": lambda a: D.LKJCholesky(3, a.mean()),
    "LowRankMultivariateNormal": lambda a: D.LowRankMultivariateNormal(a, a[:, None], a),
    "MixtureSameFamily": lambda a: D.MixtureSameFamily(D.Categorical(a), D.Normal(a, a)),
    "Multinomial": lambda a: D.Multinomial(50, a),
    "MultivariateNormal": lambda a: D.MultivariateNormal(a, EYE * (a.mean() + 1)),
    "NegativeBinomial": lambda a: D.NegativeBinomial(pc.tensor(50.0), a),
    "Poisson": lambda a: D.Poisson(a * 100),
    "RelaxedBernoulli": lambda a: D.RelaxedBernoulli(pc.tensor(0.4), a),
    "RelaxedOneHotCategorical": lambda a: D.RelaxedOneHotCategorical(pc.tensor(0.4), a),
    "StudentT": lambda a: D.StudentT(a, a, a),
    "TransformedDistribution": lambda a: D.TransformedDistribution(
        D.Normal(a, a), [D.transforms.ExpTransform()]),
    "Uniform": lambda a: D.Uniform(a * 0, a),
    "Wishart": lambda a: D.Wishart(a.mean() * 0 + 4.0, EYE),
}  # fmt: skip


def test_all_distributions_are_here() -> None:
    ours = {
        name
        for name, each in vars(D).items()
        if isinstance(each, type) and issubclass(each, D.Distribution)
    }
    assert ours == {*DISTRIBUTIONS, "Distribution", "ExponentialFamily"}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(name: str) -> None:
    pc.manual_seed(0)
    make = DISTRIBUTIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way in ("sample", "rsample") if make(P).has_rsample else ("sample",):
            for choice in (set(), {0}):
                check(lambda a, way=way: getattr(make(a), way)((30,)), [P], choice, True)  # type: ignore[misc]
        values = make(P).sample((2,))
        rows = pc.stack([P, P.flip(0)])

        def log_prob(a: Any) -> Any:
            return make(a).log_prob(values)

        try:
            expected = pc.stack(list(map(log_prob, rows)))
        except ValueError:  # the values are outside of the other sample's support
            with pytest.raises(ValueError, match="must lie within the support"):
                vmap(log_prob)(rows)
            return
        assert pc.allclose(vmap(log_prob)(rows), expected, 1e-4, 1e-5, equal_nan=True)


def test_a_parameter_that_is_wrong_in_one_sample_is_refused() -> None:
    rates = pc.tensor([1.0, -1.0, 2.0])
    with pytest.raises(ValueError, match="`rate` must satisfy"):
        vmap(lambda r: D.Exponential(r).mean)(rates)
    assert vmap(lambda r: D.Exponential(r, validate_args=False).mean)(rates).shape == (3,)


MODES = ("different", "same")
DEEP: list[Callable[[Any], Any]] = [
    lambda a: pc.rand(3), pc.rand_like, lambda a: pc.empty(3).normal_(),
    lambda a: a.clone().normal_(), F.dropout, lambda a: pc.normal(a, 1.0),
    lambda a: pc.randperm(20), lambda a: nn.init.uniform_(pc.empty(3)),
    lambda a: D.Gamma(a, a).sample(), lambda a: D.Gamma(P, P).sample(),
    lambda a: pc.empty(3).bernoulli_(pc.full((3,), 0.5)).cumsum(0) + pc.rand(1),
    lambda a: pc.randn(3, out=pc.empty(3)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(DEEP)))
@pytest.mark.parametrize("modes", [(a, b) for a in MODES for b in MODES], ids=str)
@pytest.mark.parametrize("mapped", [(0, 0), (0, None), (None, 0)], ids=str)
def test_nested_calls_decide_one_after_the_other(
    number: int, modes: tuple[str, str], mapped: tuple[Any, Any]
) -> None:
    pc.manual_seed(0)
    x = pc.ones(20) / 2
    outer, inner = mapped
    dummy = pc.zeros(SIZE)

    def function(a: Any, _: Any) -> Any:
        return DEEP[number](a)

    if outer == 0:
        x = x.expand(SIZE, 20)
    if inner == 0:
        x = x.unsqueeze(-2).expand(*x.shape[:-1], 3, 20)
    whole = vmap(vmap(function, (inner, 0), randomness=modes[1]), (outer, 0), randomness=modes[0])
    result = whole(x, dummy[:, None].expand(SIZE, 3))
    assert result.shape[:2] == (SIZE, 3)
    for along, mode in ((result, modes[0]), (result.transpose(0, 1), modes[1])):
        assert are_equal(along) if mode == "same" else are_different(along)
    rows = result if modes == ("different", "different") else result[:, :1]
    if modes[0] == "different":
        assert are_different(rows.reshape(-1, *result.shape[2:]))


def test_the_same_numbers_for_containers_that_are_taken_apart() -> None:
    class Pair:
        def __init__(self, x: Any) -> None:
            self.x = x

        def _add_batch_dim(self, *_: Any) -> None: ...

        @property
        def shape(self) -> Any:
            return self.x.shape

        def dim(self) -> int:
            return int(self.x.ndim)

        def __getitem__(self, key: Any) -> Pair:
            return Pair(self.x[key])

    pairs = [Pair(pc.zeros(SIZE, 2))]

    def f(argument: Any) -> Any:
        return argument[0].x + pc.rand(2)

    assert are_equal(vmap(f, randomness="same")(pairs))
    assert are_different(vmap(f, randomness="different")(pairs))
    with pytest.raises(RuntimeError, match="rand draws random numbers"):
        vmap(f)(pairs)


def test_a_tuple_of_one_dimension_is_that_of_one_result() -> None:
    x = pc.arange(6.0).reshape(3, 2)

    class Row:
        def __init__(self, x: Any) -> None:
            self.x = x

        def _add_batch_dim(self, *_: Any) -> None: ...

        shape, dim = property(lambda self: self.x.shape), lambda self: self.x.dim()

        def __getitem__(self, key: Any) -> Row:
            return Row(self.x[key])

    for dims in ((1,), 1):
        for result in (
            vmap(lambda x: 2 * x, 0, dims)(x),
            vmap(lambda x: 2 * x, 0, dims, chunk_size=2)(x),
            vmap(lambda row: 2 * row.x, 0, dims)(Row(x)),
        ):
            assert pc.equal(result, 2 * x.T)
