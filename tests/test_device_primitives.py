"""A device that has kernels for primitives alone: all other operators are computed by them."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from plugins import EXAMPLES, compiled

import plait
import plait.nn.functional as F
import plait_abi
from plait_conformance._cases import Case, map_arrays
from plait_conformance._checks import (
    HOST,
    as_arrays,
    assert_same,
    check_inplace,
    check_out,
    check_unpredictable,
)
from plait_conformance._device import Device
from plait_ops import specs
from plait_ops.emit.primitives import primitives
from plait_ops.samples import draw
from plait_ops.spec import Composite, Operator, View

DECOMPOSED = [
    each
    for each in specs.all()
    if each.decompose_function is not None and not isinstance(each, (Composite, View))
]
HALVES = {"float16": 1e-2, "bfloat16": 4e-2}
ROUNDING = {"attention_forward", "attention_backward", "lstm_backward", "gru_backward"}
"""Operators of many steps, each of which rounds halves; the CPU rounds the results alone."""


@pytest.fixture(scope="module")
def library() -> Iterator[ctypes.CDLL]:
    path = compiled(EXAMPLES / "device.c", "-DEXAMPLE_PRIMITIVES_ALONE")
    plait_abi.load(str(path))
    yield ctypes.CDLL(str(path))
    gc.collect()
    plait.accelerator.synchronize()
    plait_abi.detach("example-device")


@pytest.fixture
def device(library: ctypes.CDLL) -> Iterator[Device]:
    made = Device("ext")
    yield made
    made.synchronize()


def launches(library: ctypes.CDLL, call: Callable[[], Any]) -> int:
    """Return how many kernels a call puts into streams."""
    count = library.example_device_get
    count.argtypes, count.restype = [ctypes.c_char_p], ctypes.c_int64
    before = count(b"launches")
    call()
    return int(count(b"launches") - before)


def run(case: Case, place: Any) -> list[Any]:
    sample = case.fresh()
    args, kwargs = map_arrays(place.put, sample.args), map_arrays(place.put, sample.kwargs)
    return list(place.take(place.call(case.operator, args, kwargs)))


def for_each(operators: list[Operator]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("operator", operators, ids=lambda each: each.name)


def test_it_has_kernels_for_primitives_alone(library: ctypes.CDLL) -> None:
    x = plait.tensor([[1.0, 2.0], [3.0, 4.0]]).to("ext")
    assert launches(library, x.exp) == 1
    assert launches(library, lambda: x.softmax(0)) > 4
    assert launches(library, x.isnan) == 1
    named = {each.name for each in primitives(specs.all())}
    assert "exp" in named and not named & {each.name for each in DECOMPOSED}


@for_each([each for each in DECOMPOSED if not each.unpredictable])
def test_results_are_those_of_the_cpu(device: Device, operator: Operator) -> None:
    for number, sample in enumerate(draw(operator)):
        case = Case(operator, number, sample)
        assert_same(case, run(case, device), run(case, HOST), "on the device")
        check_out(case, device)
        check_inplace(case, device)


@for_each([each for each in DECOMPOSED if each.unpredictable])
def test_random_numbers_follow_the_seed(device: Device, operator: Operator) -> None:
    for number, sample in enumerate(draw(operator)):
        check_unpredictable(Case(operator, number, sample), device)


@pytest.mark.parametrize(
    ("fill", "mean", "spread"),
    [
        (lambda x: x.exponential_(2.0), 0.5, 0.5),
        (lambda x: x.log_normal_(0.0, 0.5), np.exp(0.125), 0.604),
        (lambda x: x.geometric_(0.25), 4.0, np.sqrt(12.0)),
        (lambda x: x.bernoulli_(0.25), 0.25, np.sqrt(0.1875)),
        (lambda x: x.cauchy_(3.0, 2.0).sub(3.0).abs().lt(2.0).to("float32"), 0.5, 0.5),
    ],
    ids=["exponential", "log_normal", "geometric", "bernoulli", "cauchy"],
)
def test_random_numbers_have_their_distribution(
    device: Device, fill: Callable[[Any], Any], mean: float, spread: float
) -> None:
    plait.manual_seed(0)
    drawn = fill(plait.zeros(20000, device="ext")).cpu().numpy().astype("float64")
    assert np.isfinite(drawn).all()
    assert abs(drawn.mean() - mean) < 5 * spread / np.sqrt(drawn.size)
    assert abs(drawn.std() - spread) < 0.1 * spread


NAN, INF = float("nan"), float("inf")
ROWS = np.array([[NAN, 1, 2], [INF, 1, NAN], [-INF, -INF, -INF], [-INF, 0, INF], [2, 2, -0.0]])
NUMBERS = [
    ROWS,
    ROWS.astype("float32").T,
    np.zeros((0, 3)),
    np.zeros((2, 0)),
    np.array(2.0),
    np.array([[1 + 2j, NAN], [INF, -1j]]),
    np.array([[1 + 2j, 3], [-2, -1j]], "complex64"),
    np.array([[True, False], [False, False]]),
    np.array([[-128, 127], [0, 0]], "int8"),
    np.array([[-(2**63), 2**63 - 1], [5, 5]]),
    np.array([[0, 255], [7, 7]], "uint8"),
]
MATRICES = [
    np.zeros((0, 0)),
    np.zeros((0, 2, 2)),
    np.zeros((2, 0, 0)),
    np.array([[2.0, 1.0], [1.0, 2.0]]),
    np.array([[[0.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]], "float32"),
    np.array([[2, 1j], [-1j, 3]]),
]
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        *((name, (dim,)) for name in ("softmax", "log_softmax") for dim in (0, -1)),
        *((name, (dim,)) for name in ("mean", "var", "std", "var_mean") for dim in (None, 0, [-1])),
        *((name, rest) for name in ("any", "all", "prod", "max", "min") for rest in ((), (0,))),
        *((name, ([],)) for name in ("any.dim", "all.dim")),
        *((name, (-1, keep)) for name in ("max.dim", "min.dim") for keep in (False, True)),
        *((name, (-1, keep)) for name in ("median.dim", "nanmedian.dim") for keep in (False, True)),
        *(("kthvalue", (k, 0)) for k in (1, 2)),
        *(("topk", (k, 0, largest)) for k in (0, 1, 2) for largest in (False, True)),
        *((name, (k,)) for name in ("tril", "triu") for k in (0, 1, -1, 2**62, -(2**62))),
        *(("index_select", (0, np.array(index, "int64"))) for index in ([], [-1, 0], [0, 0, 1])),
        *(("scatter.value", (0, np.array([[0, 1]]), value)) for value in (1, True)),
        *((name, ()) for name in ("argsort_rows", "isnan", "isfinite", "isreal", "sgn", "angle")),
        *((name, ()) for name in ("square", "reciprocal", "softsign", "sinc", "exp2")),
        *((name, ()) for name in ("linalg_det", "linalg_slogdet", "linalg_inv_ex")),
        *((name, ()) for name in ("linalg_eigvalsh", "linalg_svdvals", "linalg_cholesky")),
        ("fft_r2c", ([0, 1], "ortho", True)),
    ],
)
def test_special_values(device: Device, name: str, rest: tuple[Any, ...]) -> None:
    """nan, infinities, no elements, all kinds of dtypes: the results and errors of the CPU."""
    call = plait_abi.operator(name)
    compared = 0
    for array in [*(MATRICES if "linalg" in name else NUMBERS)]:
        outcomes = []
        for place in ("cpu", "ext"):
            args = [
                plait.from_numpy(np.array(each)).to(place) if isinstance(each, np.ndarray) else each
                for each in (array, *rest)
            ]
            try:
                results = call(*args)
                results = results if isinstance(results, tuple) else (results,)
                outcomes.append([as_arrays(each.cpu())[0] for each in results])
            except Exception as error:
                outcomes.append([type(error).__name__])
        for a, b in zip(*outcomes, strict=True):
            if isinstance(a, str) or isinstance(b, str):
                assert a == b, f"{array}"
                continue
            compared += 1
            assert a.dtype == b.dtype and a.shape == b.shape
            wide = 2e-5 if a.dtype in ("float32", "complex64") else 1e-10
            np.testing.assert_allclose(b, a, rtol=wide, atol=wide, err_msg=f"{array}")
    assert compared > 1


def test_singular_matrices(device: Device) -> None:
    x = plait.from_numpy(np.stack([SINGULAR, np.eye(2)]))
    for name in ("linalg_det", "linalg_slogdet", "linalg_inv_ex"):
        want = plait_abi.operator(name)(x)
        got = plait_abi.operator(name)(x.to("ext"))
        if name == "linalg_inv_ex":  # an inverse that does not exist has any elements
            assert got.info.tolist() == want.info.tolist() == [2, 0]
            want, got = want.inverse[1], got.inverse[1]
        both = (each if isinstance(each, tuple) else (each,) for each in (want, got))
        for a, b in zip(*both, strict=True):
            np.testing.assert_allclose(b.cpu().numpy(), a.numpy(), rtol=1e-12, atol=1e-12)


def as_halves(value: Any, dtype: str) -> Any:
    """The arguments with float32 arrays as tensors of halves."""
    return map_arrays(
        lambda each: (
            plait.from_numpy(each.copy()).to(dtype)
            if each.dtype == np.float32
            else plait.from_numpy(each.copy())
        ),
        value,
    )


def to_device(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(to_device(each) for each in value)
    return value.to("ext") if isinstance(value, plait.Tensor) else value


@pytest.mark.parametrize("dtype", HALVES)
@for_each([each for each in DECOMPOSED if not each.unpredictable and each.name not in ROUNDING])
def test_halves_are_rounded_as_on_the_cpu(device: Device, operator: Operator, dtype: str) -> None:
    call = plait_abi.operator(operator.name)
    for sample in draw(operator):
        if sample.kwargs.get("dtype") or not any(
            isinstance(each, np.ndarray) and each.dtype == np.float32 for each in sample.args
        ):
            continue
        args, kwargs = as_halves(sample.args, dtype), sample.kwargs
        want, got = call(*args, **kwargs), call(*to_device(args), **kwargs)
        wants, gots = (each if isinstance(each, tuple) else (each,) for each in (want, got))
        for one, other in zip(wants, gots, strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape
            a, b = (as_arrays(each.cpu().to("float64")) for each in (other, one))
            np.testing.assert_allclose(a[0], b[0], rtol=HALVES[dtype], atol=HALVES[dtype])


def regular(n: int) -> Any:
    return plait.eye(n) * n + plait.arange(float(n * n)).reshape(n, n) / n


@pytest.mark.parametrize(
    ("call", "make"),
    [
        (lambda x: x.softmax(1), lambda: plait.randn(3, 4)),
        (lambda x: x.log_softmax(0), lambda: plait.randn(3, 4)),
        (lambda x: x.var(1), lambda: plait.randn(3, 4)),
        (lambda x: x.std(0, correction=0), lambda: plait.randn(3, 4)),
        (lambda x: x.mean(1) * x.amax(1), lambda: plait.randn(3, 4)),
        (lambda x: x.max(1).values, lambda: plait.randn(3, 4)),
        (lambda x: x.median(0).values, lambda: plait.randn(3, 4)),
        (lambda x: x.topk(2).values, lambda: plait.randn(3, 4)),
        (lambda x: x.tril() + x.triu(1) * 2, lambda: plait.randn(3, 4)),
        (lambda x: x.square() + x.rsqrt(), lambda: plait.rand(3, 4) + 0.5),
        (F.elu, lambda: plait.randn(3, 4)),
        (F.mish, lambda: plait.randn(3, 4)),
        (F.gelu, lambda: plait.randn(3, 4)),
        (F.softplus, lambda: plait.randn(3, 4)),
        (lambda x: plait.logaddexp(x, x * 2), lambda: plait.randn(3, 4)),
        (lambda x: x.clamp(-0.5, 0.5), lambda: plait.randn(3, 4)),
        (plait.linalg.inv, lambda: regular(3)),
        (plait.linalg.det, lambda: regular(3)),
        (lambda x: plait.linalg.solve(x, x.sum(0)), lambda: regular(3)),
        (lambda x: plait.linalg.cholesky(x @ x.T), lambda: regular(3)),
        (lambda x: plait.fft.rfft(x).abs(), lambda: plait.randn(3, 4)),
    ],
)
def test_gradients_are_those_of_the_cpu(
    device: Device, call: Callable[[Any], Any], make: Callable[[], Any]
) -> None:
    plait.manual_seed(0)
    x = make()
    gradients = []
    for place in ("cpu", "ext"):
        leaf = x.to(place).detach().requires_grad_()
        y = call(leaf)
        (y * y).sum().backward()
        gradients.append(leaf.grad.cpu().numpy())
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: plait.linalg.inv(x), r"`A` at batch index \(1,\) is singular: the pivot in col"),
        (lambda x: plait.linalg.solve(x, x), r"`A` at batch index \(1,\) is singular"),
        (lambda x: plait.linalg.solve(x[1], x[0]), r"`A` is singular: the pivot in column 1"),
        (lambda x: x.cholesky(), r"cholesky: `self` at batch index \(1,\) is not positive def"),
        (lambda x: x[1].cholesky(), r"cholesky: `self` is not positive definite"),
    ],
)
def test_a_matrix_without_a_result_is_named(
    device: Device, call: Callable[[Any], Any], text: str
) -> None:
    x = plait.stack([plait.eye(2), plait.zeros(2, 2)])
    for place in ("cpu", "ext"):
        with pytest.raises(RuntimeError, match=text):
            call(x.to(place))


def kernels_of_the_cpu(operator: Operator) -> list[plait_abi.Probe]:
    owners = {
        each.provider
        for each in plait_abi.records()
        # those of plait_torch serve calls while PyTorch's generator is in force
        if each.kind == "kernel" and each.name == operator.name and each.provider != "plait_torch"
    }
    probes = []
    for owner in owners:
        try:
            probes.append(plait_abi.Probe(operator.name, owner))
        except ValueError:  # it is one of another device
            continue
    return probes


OWN = [
    each
    for each in DECOMPOSED
    if (each.vjps or getattr(each, "promote", "") == "bool" or each.kind == "reduction")
]


@for_each(OWN)
def test_the_cpu_runs_its_own_kernel_also_if_gradients_are_wanted(operator: Operator) -> None:
    probes = kernels_of_the_cpu(operator)
    if not probes:
        pytest.skip("the CPU has no kernel of its own")

    def with_gradient(each: np.ndarray[Any, Any]) -> Any:
        made = plait.from_numpy(each.copy())
        return made.requires_grad_() if each.dtype.kind in "fc" else made

    sample = next(iter(draw(operator)))
    try:
        writes = any(each.writes for each in operator.schema.arguments)
        args = sample.args if writes else map_arrays(with_gradient, sample.args)
        plait_abi.operator(operator.name)(*args, **sample.kwargs)
        assert sum(each.counts.accepted for each in probes) == 1
    finally:
        for each in probes:
            each.close()


def test_on_meta_results_are_those_of_the_shape_function() -> None:
    x = plait.empty(2, 3, 4, device="meta")
    assert x.transpose(0, 1).tril().stride() == plait.empty(3, 2, 4).stride()
    assert plait.linalg.solve(plait.empty(3, 3, device="meta"), x).shape == (2, 3, 4)
    assert plait.empty(2, 2, device="meta").cholesky().shape == (2, 2)
