"""Costs of calls: the functions of the specs against known formulas, and C++ against Python."""

from __future__ import annotations

import copy
import inspect
import itertools
import math
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from plait_abi import operator
from plait_ops import costs, lower, samples, specs, words
from plait_ops.sampling import Sample
from plait_ops.spec import REGISTRY, Composite, Operator, Pointwise, Reduction, SpecError, View
from plait_ops.words import Meta, check, numel, wrap_dim

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from cost_observer import Cost, Observer

OPERATORS = list(specs.all())
COSTED = [spec for spec in OPERATORS if spec.cost_function is not None]


# ---- in Python -----------------------------------------------------------------------------------
def in_python(
    spec: Operator, values: dict[str, Any], inplace: bool = False, result: Any = None
) -> Cost:
    """Run shape function and cost function on values whose tensors are `Meta`.

    `result` is the result of an operator without a shape function.
    """
    assert spec.cost_function is not None
    if spec.shape_function is None:
        results = [result]
    else:
        cast = copy.deepcopy(values)  # who asks for a cost sees the arguments as they were given
        results = words.infer(spec.shape_function, spec.schema.base, cast)
    if inplace:
        results = [values[spec.schema.arguments[0].name]]
    names = ["result"] if len(results) == 1 else [f"result{i}" for i in range(len(results))]
    known = {**dict(zip(names, results, strict=True)), "inplace": inplace, **values}
    expected = inspect.signature(spec.cost_function).parameters
    cost = spec.cost_function(**{name: known[name] for name in expected})
    return Cost(*cost) if isinstance(cost, tuple) else Cost(cost)


def counted(name: str, *args: Any, inplace: bool = False, **kwargs: Any) -> Cost:
    """The cost of a call in which a tuple stands for a float32 tensor of that shape."""

    def tensor(value: Any) -> Any:
        return Meta(value) if isinstance(value, tuple) else value

    spec = specs.find(name)
    values = spec.schema.bind(
        tuple(tensor(value) for value in args), {key: tensor(v) for key, v in kwargs.items()}
    )
    return in_python(spec, values, inplace)


def operations(name: str, *args: Any, **kwargs: Any) -> int:
    return counted(name, *args, **kwargs).operations


# ---- in C++ --------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def observer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observer]:
    """The observer, at work."""
    with Observer(tmp_path_factory.mktemp("costs")) as result:
        yield result


def on_meta(array: np.ndarray[Any, Any]) -> Any:
    strides = [step // array.itemsize for step in array.strides]
    result = operator("empty")((1,), dtype=array.dtype.name, device="meta")
    return operator("as_strided")(result, array.shape, strides)


def as_meta(array: np.ndarray[Any, Any]) -> Meta:
    steps = tuple(step // array.itemsize for step in array.strides)
    return Meta(array.shape, array.dtype.name, steps)


def agrees(observer: Observer, spec: Operator, sample: Sample, inplace: bool = False) -> None:
    """Check that C++ and Python give the same cost for a call."""
    name = spec.name
    if inplace:
        base, dot, overload = name.partition(".")
        name = f"{base}_{dot}{overload}"
    call, output = sample.mapped(on_meta), sample.mapped(as_meta)
    result = operator(name)(*call.args, **call.kwargs)
    seen, got = observer.last()
    assert seen == spec.name
    shape = Meta(tuple(result.shape)) if hasattr(result, "shape") else None
    want = in_python(spec, spec.schema.bind(output.args, output.kwargs), inplace, shape)
    assert got.operations == want.operations, sample
    assert got.read == (got.read if want.read is None else want.read), sample
    assert got.written == (got.written if want.written is None else want.written), sample


@pytest.mark.parametrize("spec", COSTED, ids=lambda spec: spec.name)
def test_the_function_in_cpp_agrees(observer: Observer, spec: Operator) -> None:
    for sample in samples.draw(spec):
        agrees(observer, spec, sample)


@pytest.mark.parametrize(
    "name", ["scatter", "scatter.value", "scatter_add", "scatter_reduce", "index_add"]
)
def test_the_function_in_cpp_agrees_in_place(observer: Observer, name: str) -> None:
    spec = specs.find(name)
    for sample in samples.draw(spec):
        agrees(observer, spec, sample, inplace=True)


def on_meta_of(*shape: int, dtype: str = "float32") -> Any:
    return operator("empty")(shape, dtype=dtype, device="meta")


def test_what_the_runtime_counts_stays(observer: Observer) -> None:
    x = on_meta_of(3, 4)
    operator("add")(x, x)
    assert observer.last() == ("add", Cost(12, 96, 48))
    operator("mm")(x, on_meta_of(4, 5))
    assert observer.last() == ("mm", Cost(2 * 3 * 4 * 5, 4 * (12 + 20), 4 * 15))
    operator("transpose")(x, 0, 1)
    assert observer.last() == ("transpose", Cost(0, 0, 0))
    operator("sort")(x)
    assert observer.last() == ("sort", Cost(0, 48, 48 + 96))


def test_large_sizes(observer: Observer) -> None:
    """Counts that fit 64 bits are exact; larger ones are not counted."""
    n = 2**20
    operator("mm")(on_meta_of(n, n), on_meta_of(n, n))
    assert observer.last()[1] == Cost(2**61, 2**43, 2**42)
    operator("mm")(on_meta_of(2**21, 2**21), on_meta_of(2**21, 2**21))
    assert observer.last()[1].operations == 0
    wide = operator("expand")(on_meta_of(1, 1), (2**31, 2**31))
    operator("sum")(wide)  # one element in memory
    assert observer.last()[1] == Cost(2**62, 4, 4)
    operator("linalg_svdvals")(on_meta_of(2**21, 2**21))
    assert observer.last()[1] == Cost(0, 2**44, 2**23)


def test_sizes_of_0(observer: Observer) -> None:
    for name, args in (
        ("mm", ((0, 3), (3, 2))),
        ("mm", ((2, 0), (0, 3))),
        ("conv2d", ((0, 3, 5, 5), (4, 3, 2, 2))),
        ("softmax", ((0,), 0)),
        ("linalg_inv", ((0, 0),)),
        ("linalg_qr", ((0, 3),)),
        ("embedding", ((4, 3), (0,))),
    ):
        arguments = [
            on_meta_of(*each, dtype="int64" if name == "embedding" and i else "float32")
            if isinstance(each, tuple)
            else each
            for i, each in enumerate(args)
        ]
        operator(name)(*arguments)
        assert observer.last()[1].operations == 0, name


# ---- which operators have one --------------------------------------------------------------------
def test_views_cost_nothing() -> None:
    assert not [spec.name for spec in COSTED if isinstance(spec, View)]


@pytest.mark.parametrize(
    "spec", [spec for spec in COSTED if isinstance(spec, Composite)], ids=lambda spec: spec.name
)
def test_a_composite_costs_the_sum_of_its_parts(observer: Observer, spec: Operator) -> None:
    """But for terms of lower order, and for numbers that scale the parts of `baddbmm`."""
    for sample in samples.draw(spec):
        call = sample.mapped(on_meta)
        result = operator(spec.name)(*call.args, **call.kwargs)
        want, parts = observer.last()[1].operations, observer.parts()
        assert parts > 0 or want == 0
        if spec.name == "baddbmm":
            assert want <= parts <= want + 4 * math.prod(result.shape)
        elif spec.name in ("batch_norm", "batch_norm_by", "batch_norm_activation"):
            channels = call.args[0].shape[1] if len(call.args[0].shape) > 1 else 0
            assert abs(parts - want) <= math.prod(result.shape) + 10 * channels
        else:
            assert want == parts, sample


def test_reductions_count_each_element_at_least_once() -> None:
    for spec in OPERATORS:
        if isinstance(spec, Reduction):
            assert in_python(spec, {"self": Meta((3, 4))}).operations >= 12, spec.name


NOTHING_COMPUTED = {
    *("clone", "dense", "cast", "copy_", "fill_", "zero_", "cat", "tril", "triu", "eye"),
    *("full", "full_like", "zeros", "ones", "zeros_like", "ones_like", "arange", "arange.start"),
    *("linspace", "logspace", "linspace.tensors", "logspace.tensors", "pad", "pad_end"),
    *("sort", "topk", "argsort_rows", "kthvalue", "median", "nanmedian", "median.dim"),
    *("nanmedian.dim", "mode", "search_sorted", "nonzero", "nonzero_rows", "lu_unpack"),
    *("masked_values", "masked_write_"),
    *("embedding", "gather", "index_select", "index_tensors", "scatter", "scatter.value"),
    *("multinomial", "poisson", "_standard_gamma", "binomial_draw", "diag_embed"),
    *("select_scatter", "slice_scatter", "diagonal_scatter"),
}
"""Operators that move, order, draw or make numbers: 0 operations."""
BY_PARTS = {
    *("index_backward", "extreme_backward", "index_tensors_backward", "select_backward"),
    *("slice_backward", "diagonal_backward", "unfold_backward", "linalg_pinv"),
    *("dirichlet_sample", "bincount", "histc", "masked_scatter", "masked_scatter_"),
    *("masked_select", "nms"),
    *("repeat_interleave.tensor", "repeat_interleave.counts", "unravel_index"),
}
"""Operators that no backend here has a kernel of: those that they call are counted."""


def test_every_operator_has_a_cost_or_a_reason() -> None:
    others = {
        spec.name
        for spec in OPERATORS
        if not spec.random
        and spec.cost_function is None
        and not isinstance(spec, (View, Composite, Pointwise))
    }
    assert others <= NOTHING_COMPUTED | BY_PARTS
    for name in NOTHING_COMPUTED | BY_PARTS:
        assert isinstance(specs.find(name), Operator)


# ---- formulas ------------------------------------------------------------------------------------
def test_matrix_products() -> None:
    assert operations("mm", (3, 4), (4, 5)) == 2 * 3 * 4 * 5
    assert operations("bmm", (7, 3, 4), (7, 4, 5)) == 7 * 2 * 3 * 4 * 5
    assert operations("mv", (3, 4), (4,)) == 2 * 3 * 4
    assert operations("dot", (9,), (9,)) == 18
    assert operations("addmm", (5,), (3, 4), (4, 5)) == 2 * 3 * 4 * 5
    for bias in (None, (5,)):
        assert operations("linear", (2, 3, 4), (5, 4), bias) == 2 * 6 * 4 * 5


CONVOLUTIONS = list(
    itertools.product(
        [(2, 4, 9, 7)], [(6, 3, 2), (4, 3, 3)], [1, 2], [1, [2, 3]], [0, 1], [1, [2, 1]]
    )
)


@pytest.mark.parametrize(
    ("images", "filters", "groups", "stride", "padding", "dilation"), CONVOLUTIONS
)
def test_convolutions(
    images: tuple[int, ...],
    filters: tuple[int, ...],
    groups: int,
    stride: Any,
    padding: int,
    dilation: Any,
) -> None:
    """Against the steps of the loops that define a convolution; derivatives have as many."""
    n, c, h, w = images
    o, kh, kw = filters
    (sh, sw), (dh, dw) = (
        [each] * 2 if isinstance(each, int) else each for each in (stride, dilation)
    )
    rows = range(0, h + 2 * padding - dh * (kh - 1), sh)
    columns = range(0, w + 2 * padding - dw * (kw - 1), sw)
    per_group = n * (o // groups) * (c // groups) * kh * kw
    want = 2 * groups * per_group * len(rows) * len(columns)
    weight, result = (o, c // groups, kh, kw), (n, o, len(rows), len(columns))
    rest = ([sh, sw], [padding, padding], [dh, dw], groups)
    assert operations("conv2d", images, weight, (o,), *rest) == want
    assert operations("conv2d_backward_input", result, weight, list(images), *rest) == want
    assert operations("conv2d_backward_weight", result, images, list(weight), *rest) == want


def test_attention() -> None:
    b, h, length, keys, e, v = 2, 3, 5, 7, 4, 6
    query, key, value = (b, h, length, e), (b, h, keys, e), (b, h, keys, v)
    by_e, by_v = (
        operations("bmm", (b * h, length, e), (b * h, e, keys)),
        2 * b * h * length * keys * v,
    )
    assert operations("attention_forward", query, key, value, None, False, 1.0) == by_e + by_v
    result = (b, h, length, v)
    args = (result, query, key, value, None, result, (b, h, length), False, 1.0)
    assert operations("attention_backward", *args) == 3 * by_e + 2 * by_v


@pytest.mark.parametrize(("name", "gates"), [("lstm", 4), ("gru", 3)])
def test_recurrent_networks(name: str, gates: int) -> None:
    """The products with the weight, and some operations for each element of the states."""
    sizes, hidden = [4, 3, 1], 5
    rows, states = sum(sizes), (4, hidden)
    x, weight = (rows, gates * hidden), (gates * hidden, hidden)
    product = 2 * rows * hidden * gates * hidden
    other = [states] if name == "lstm" else []
    bias = [] if name == "lstm" else [(gates * hidden,)]
    forward = operations(f"{name}_forward", x, states, *other, weight, *bias, sizes, False)
    assert forward - product == rows * hidden * {"lstm": 9, "gru": 10}[name]
    output = (rows, hidden)
    if name == "lstm":
        args = [output, states, states, x, states, states, weight, output, output, x]
    else:
        args = [output, states, x, states, weight, *bias, output, (rows, 4 * hidden)]
    backward = operations(f"{name}_backward", *args, sizes, False)
    assert backward - 2 * product == rows * hidden * {"lstm": 24, "gru": 19}[name]


def test_each_element() -> None:
    """Operators whose cost is some operations for each element of one tensor."""
    x, n = (6, 4, 5), 120
    for name, args, each in (
        ("sum", (x,), 1),
        ("mean", (x, [1]), 1),
        ("amax", (x, [0, 2]), 1),
        ("max.dim", (x, 1), 1),
        ("argmin", (x, None), 1),
        ("var", (x,), 4),
        ("var_mean", (x, [0]), 4),
        ("norm", (x, 2.0), 2),
        ("logsumexp", (x, [1]), 4),
        ("cumsum", (x, 0), 1),
        ("cummax", (x, 0), 1),
        ("logcumsumexp", (x, 0), 5),
        ("linear_recurrence", (x, x, 0, False), 2),
        ("softmax", (x, 1), 5),
        ("log_softmax", (x, 1), 5),
        ("softmax_backward", (x, x, 1), 4),
        ("log_softmax_backward", (x, x, 1), 4),
        ("native_batch_norm", (x, None, None, 1e-5), 6),
        ("native_batch_norm", (x, (4,), (4,), 1e-5), 7),
        ("batch_norm_backward", (x, x, (4,), (4,), None, 1e-5), 9),
        ("native_layer_norm", (x, [5], None, None, 1e-5), 6),
        ("native_layer_norm", (x, [5], (5,), (5,), 1e-5), 8),
        ("layer_norm_backward", (x, x, (6, 4, 1), (6, 4, 1), None, [5]), 12),
        ("layer_norm_backward_input", (x, x, (6, 4, 1), (6, 4, 1), [5]), 9),
        ("layer_norm_backward", (x, x, (6, 4, 1), (6, 4, 1), (5,), [5]), 13),
        ("native_dropout", (x, 0.5), 1),
        ("max_pool2d_with_indices", ((6, 8, 10), 2), 4),
        ("avg_pool2d", ((6, 8, 10), 2), 4),
        ("avg_pool2d_backward", (x, [6, 8, 10], [2, 2], [2, 2], [0, 0], False, True), 4),
    ):
        assert operations(name, *args) == each * n, name


def test_losses() -> None:
    target = Meta((6,), "int64")
    assert operations("nll_loss", (6, 10), target) == 12
    assert operations("cross_entropy_forward", (6, 10), target, None, "mean", -100) == 240
    args = ((), (6, 10), (6,), target, None, "mean", -100)
    assert operations("cross_entropy_backward", *args) == 180


def test_fourier_transforms() -> None:
    z = Meta((3, 8, 16), "complex64")
    want = 5 * 3 * 8 * 16 * (3 + 4)
    assert operations("fft_c2c", z, [1, 2], "backward", True) == want
    assert operations("fft_r2c", (3, 8, 16), [1, 2], "backward", True) == want // 2
    half = Meta((3, 8, 9), "complex64")
    assert operations("fft_c2r", half, [1, 2], "backward", 16) == want // 2


def test_linear_algebra() -> None:
    n, k, batch = 30, 7, 4
    a, b, square = (batch, n, n), (batch, n, k), batch * n**3
    pivots = Meta((batch, n), "int32")
    for name, args, want in (
        ("linalg_cholesky", (a,), square // 3),
        ("cholesky_solve", (b, a), 2 * batch * n * n * k),
        ("cholesky_inverse", (a,), 2 * square // 3),
        ("linalg_lu_factor", (a,), 2 * square // 3),
        ("linalg_lu_factor", ((n, k),), n * k * k - k**3 // 3),
        ("linalg_det", (a,), 2 * square // 3),
        ("linalg_inv", (a,), 2 * square),
        ("linalg_solve_ex", (a, b), 2 * square // 3 + 2 * batch * n * n * k),
        ("linalg_solve_ex", ((n, n), (n,)), 2 * n**3 // 3 + 2 * n * n),
        ("regular_factors", (a,), 2 * square // 3),
        ("solve_by_factors", (a, a, pivots, b, True, False), 2 * batch * n * n * k),
        ("linalg_qr", (a,), 8 * square // 3),
        ("symmetric_eigenvalues", (a, "L", False), 4 * square // 3),
        ("linalg_eigh", (a,), 9 * square),
        ("linalg_matrix_exp", (a,), 44 * square // 3),
        ("singular_values", (a, False), 4 * square),
        ("linalg_svd", (a,), 26 * square),
        ("linalg_svd", ((n, k), False), 6 * n * k * k + 20 * k**3),
    ):
        assert abs(operations(name, *args) - want) <= batch, name  # thirds are rounded down
    tri = operations("linalg_solve_triangular", a, b, upper=False)
    assert tri == batch * n * n * k
    r = operations("linalg_qr", (n, k), "r")
    assert abs(r - (2 * n * k * k - 2 * k**3 / 3)) < 1
    assert operations("linalg_qr", (n, k)) - r == pytest.approx(2 * n * k * k - 2 * k**3 / 3, abs=2)


def test_parts() -> None:
    for n in (*range(70), 2**40, 2**40 + 1):
        assert costs.log2(n) == (math.ceil(math.log2(n)) if n else 0)
    assert costs.nbytes(Meta((3, 4), "complex64", (0, 1))) == 4 * 8
    assert costs.nbytes(Meta((0, 4), "float64", (0, 1))) == 0


# ---- bytes ---------------------------------------------------------------------------------------
def test_what_an_index_selects_is_read() -> None:
    index = Meta((3, 5), "int64")
    for name, args in (
        ("embedding", ((1000, 8), index)),
        ("index_tensors", ((1000, 8), [index])),
        ("index_select", ((1000, 8), 0, Meta((15,), "int64"))),
        ("gather", ((1000, 8), 0, Meta((15, 1), "int64"))),
    ):
        rows = 15 * 4 if name == "gather" else 15 * 8 * 4
        assert counted(name, *args) == Cost(0, 15 * 8 + rows, rows), name


def test_what_an_index_changes_is_written() -> None:
    index, x = Meta((3, 2), "int64"), 1000 * 2 * 4
    at, moved = 6 * 8, 6 * 4
    calls = {
        "scatter": ((1000, 2), 0, index, (3, 2)),
        "scatter.value": ((1000, 2), 0, index, 1.0),
        "scatter_add": ((1000, 2), 0, index, (3, 2)),
        "index_add": ((1000, 2), 0, Meta((3,), "int64"), (3, 2)),
    }
    assert counted("scatter", *calls["scatter"], inplace=True) == Cost(0, at + moved, moved)
    assert counted("scatter", *calls["scatter"]) == Cost(0, at + moved + x, moved + x)
    assert counted("scatter.value", *calls["scatter.value"], inplace=True) == Cost(0, at, moved)
    added = counted("scatter_add", *calls["scatter_add"], inplace=True)
    assert added == Cost(6, at + 2 * moved, moved)
    added = counted("index_add", *calls["index_add"], inplace=True)
    assert added == Cost(6, at // 2 + 2 * moved, moved)


@pytest.mark.parametrize(
    ("shape", "indices"),
    [
        ((10, 4), [(3,)]),
        ((10, 4), [(3,), (3,)]),
        ((10, 4), [(3, 1), (1, 5)]),
        ((10, 4), [None, (2, 2)]),
        ((10, 4, 6), [(3,), None, (1,)]),
        ((10, 4), [(0,)]),
        ((10, 4), [()]),
    ],
)
@pytest.mark.parametrize("accumulate", [False, True])
def test_elements_named_by_indices(
    shape: tuple[int, ...], indices: list[tuple[int, ...] | None], accumulate: bool
) -> None:
    array = np.zeros(shape, "float32")
    arrays = [None if each is None else np.zeros(each, "int64") for each in indices]
    picked = array[tuple(slice(None) if each is None else each for each in arrays)]
    metas = [None if each is None else Meta(each, "int64") for each in indices]
    at = sum(each.nbytes for each in arrays if each is not None)
    got = counted("index_put_tensors_", Meta(shape), metas, 1.0, accumulate)
    read = at + (picked.nbytes if accumulate else 0)
    assert got == Cost(picked.size if accumulate else 0, read, picked.nbytes)


def test_what_is_filled_is_not_read() -> None:
    assert counted("fill_", (3, 4), 1.0) == Cost(0, 0, 48)
    assert counted("normal_", (3, 4)) == Cost(0, 0, 48)
    assert counted("copy_", (3, 4), Meta((4,), "float64")) == Cost(0, 32, 48)
    assert counted("zeros_like", (3, 4), dtype="float64") == Cost(0, 0, 96)


# ---- what the language refuses -------------------------------------------------------------------
SCHEMA = "made_up(Tensor self, Tensor|Scalar other, float p=1.0, int n=0) -> Tensor"


@pytest.mark.usefixtures("scratch")
def test_what_a_cost_function_cannot_do() -> None:
    def by_number(p):  # type: ignore[no-untyped-def]
        return int(p)

    def by_operand(other):  # type: ignore[no-untyped-def]
        return int(float(other) * 1.0)

    def by_value(self):  # type: ignore[no-untyped-def]
        return numel(self * 2)

    def failing(self, n):  # type: ignore[no-untyped-def]
        wrap_dim("n", n, self.shape)
        return 1

    def checking(n):  # type: ignore[no-untyped-def]
        check(n > 0, "so")
        return n

    def pair(n):  # type: ignore[no-untyped-def]
        return n, n

    def unknown(missing):  # type: ignore[no-untyped-def]
        return 1

    def real(n):  # type: ignore[no-untyped-def]
        return n * 0.5

    for function, text in (
        (by_number, "a cost depends on sizes and integers alone; it reads `p`"),
        (by_operand, "it reads a number that is given for a tensor"),
        (by_value, "a cost function sees no values of tensors"),
        (failing, "`wrap_dim` may fail, which a cost function cannot"),
        (checking, "`check` may fail, which a cost function cannot"),
        (pair, r"a cost is the number of operations, or \(operations, read, written\)"),
        (unknown, "cost asks for `missing`"),
        (real, "`n \\* 0.5` is float, int is required"),
    ):
        spec = Operator(SCHEMA, doc="x")
        spec.cost(function)
        with pytest.raises(SpecError, match=text):
            lower.cost(spec)
        del REGISTRY["made_up"]
