"""Convolutions by cuDNN: what goes to the library, and what it is told (on its stand-in)."""

from __future__ import annotations

import ctypes
import importlib.util
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from emulation_control import run_program
from on_both import check, random

import plait_core as pc
import plait_cuda
from plait_abi import operator
from plait_cuda import cudnn

FLOATS = [pc.float32, pc.float64, pc.float16, pc.bfloat16]
BY_INPUT, BY_WEIGHT = operator("conv2d_backward_input"), operator("conv2d_backward_weight")
PLAIN = [[1, 1], [1, 1], [1, 1], 1]
TENSOR_CORE = 1  # the bit of that note

Check = Callable[..., None]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def library() -> Iterator[Any]:
    folder = pathlib.Path(plait_cuda.__file__).parent
    stand_in = ctypes.CDLL(str(folder / "emulation" / "libcudnn.so.9"))
    yield stand_in
    stand_in.plait_cudnn_refuse_graphs(ctypes.c_int64(0))
    stand_in.plait_cudnn_fail_calls(ctypes.c_int64(0))


@pytest.fixture
def by_library(library: Any) -> Check:
    """Compare a convolution with that of the CPU, and check that cuDNN has computed it."""

    def compare(*arguments: Any, **words: Any) -> None:
        before = library.plait_cudnn_calls()
        check(*arguments, **words)
        assert library.plait_cudnn_calls() == before + 1

    return compare


def check_all_passes(by_library: Check, x: Any, weight: Any, rest: list[Any]) -> None:
    by_library(operator("conv2d"), x, weight, None, *rest)
    y = operator("conv2d")(x, weight, None, *rest)
    # a gradient in the format of the images
    grad = pc.ones_like(y) * 0.5 if x.is_contiguous() else y / 16
    if not x.is_contiguous():
        grad = grad.contiguous(memory_format=pc.channels_last)
    by_library(BY_INPUT, grad, weight, list(x.shape), *rest)
    by_library(BY_WEIGHT, grad, x, list(weight.shape), *rest)


# images, filters, window, stride, padding, dilation, groups
CASES = [
    ((2, 16, 12, 12), 20, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 12, 13, 11), 24, (3, 2), (2, 1), (1, 2), (1, 2), 2),
    ((2, 32, 14, 14), 32, (3, 3), (1, 1), (1, 1), (1, 1), 32),
    ((3, 20, 16, 16), 36, (1, 1), (2, 2), (0, 0), (1, 1), 1),
    ((40, 1, 16, 16), 8, (5, 5), (1, 1), (0, 0), (1, 1), 1),
]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("filters_last", [False, True])
@pytest.mark.parametrize("images_last", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_formats(
    rng: np.random.Generator,
    by_library: Check,
    case: Any,
    images_last: bool,
    filters_last: bool,
    dtype: Any,
) -> None:
    images, filters, window, *more = case
    rest = [list(each) for each in more[:-1]] + [more[-1]]
    x = random(rng, *images, dtype=dtype)
    weight = random(rng, filters, images[1] // more[-1], *window, dtype=dtype) / 4
    if images_last:
        x = x.contiguous(memory_format=pc.channels_last)
    if filters_last:
        weight = weight.contiguous(memory_format=pc.channels_last)
    check_all_passes(by_library, x, weight, rest)


def test_any_strides_and_addresses(rng: np.random.Generator, by_library: Check) -> None:
    wide = random(rng, 2, 16, 12, 26)[..., 1::2]
    weight = random(rng, 3, 3, 20, 16).permute(2, 3, 0, 1)
    by_library(operator("conv2d"), wide, weight, None, *PLAIN)
    moved = random(rng, 2 * 16 * 12 * 13 + 1)[1:].view(2, 16, 12, 13)  # at 4 bytes, not at 16
    by_library(operator("conv2d"), moved, weight.contiguous(), None, *PLAIN)
    by_library(operator("conv2d"), moved[:, :, :1].expand(2, 16, 12, 13), weight, None, *PLAIN)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    ("images", "filters"), [((2, 16, 12, 12), 20), ((70, 16, 5, 5), 3), ((2, 16, 9, 13), 30)]
)
def test_bias_and_activation(
    rng: np.random.Generator, by_library: Check, images: Any, filters: int, dtype: Any
) -> None:
    x = random(rng, *images, dtype=dtype)
    weight = random(rng, filters, images[1], 3, 3, dtype=dtype) / 16
    bias = random(rng, 2 * filters, dtype=dtype)[::2]
    tolerance = {"float16": 4e-3, "bfloat16": 3e-2}.get(str(dtype).rpartition(".")[2])
    by_library(operator("conv2d"), x, weight, bias, *PLAIN, tolerance=tolerance)
    for name in ("relu", "hardtanh", "leaky_relu", "silu", "hardswish"):
        rest = [*PLAIN, name, -0.5, 0.7, 0.1]
        function = operator("conv2d_activation")
        by_library(function, x, weight, bias, *rest, tolerance=tolerance)
        by_library(function, x, weight, None, *rest, tolerance=tolerance)


def test_how_is_asked_once(rng: np.random.Generator, library: Any, by_library: Check) -> None:
    x, weight = random(rng, 3, 17, 12, 12), random(rng, 21, 17, 3, 3)
    before = library.plait_cudnn_choices()
    for _ in range(3):
        by_library(operator("conv2d"), x, weight, None, *PLAIN)
    # float32 without TF32 is among the last recommendations
    assert library.plait_cudnn_choices() == before + 2
    by_library(operator("conv2d"), x[:2], weight, None, *PLAIN)
    assert library.plait_cudnn_choices() == before + 4


def test_tf32_is_a_setting(rng: np.random.Generator, library: Any) -> None:
    x, weight = random(rng, 2, 16, 12, 12), random(rng, 20, 16, 3, 3)
    want = pc.conv2d(x, weight, None, *PLAIN).numpy()

    def error(*, tf32: bool) -> float:
        pc.accelerator.set_tf32(convolutions=tf32)
        try:
            got = pc.conv2d(x.cuda(), weight.cuda(), None, *PLAIN).cpu().numpy()
        finally:
            pc.accelerator.set_tf32(convolutions=False)
        assert library.plait_cudnn_last_notes() == (TENSOR_CORE if tf32 else 0)
        return float(np.abs(got - want).max())

    assert 1e-3 < error(tf32=True) < 1e-1
    assert error(tf32=False) < 2e-4


@pytest.mark.parametrize("deterministic", [False, True])
def test_engines_are_deterministic(
    rng: np.random.Generator, library: Any, by_library: Check, deterministic: bool
) -> None:
    pc.accelerator.set_deterministic(deterministic)
    try:
        for dtype, notes in (
            (pc.float16, TENSOR_CORE),
            (pc.bfloat16, TENSOR_CORE),
            (pc.float64, 0),
        ):
            x, weight = (random(rng, *s, dtype=dtype) for s in ((2, 16, 9, 9), (20, 16, 3, 3)))
            by_library(operator("conv2d"), x, weight, None, *PLAIN, tolerance=5e-2)
            assert library.plait_cudnn_last_notes() == notes
    finally:
        pc.accelerator.set_deterministic(False)


def test_what_the_library_refuses_is_computed_by_our_kernels(
    rng: np.random.Generator, library: Any
) -> None:
    x, weight = random(rng, 2, 16, 10, 15), random(rng, 20, 16, 3, 3)
    library.plait_cudnn_refuse_graphs(ctypes.c_int64(1))
    before = library.plait_cudnn_calls(), library.plait_cudnn_choices()
    for _ in range(2):
        check(operator("conv2d"), x, weight, random(rng, 20), *PLAIN)
    # the refusal is remembered
    assert (library.plait_cudnn_calls(), library.plait_cudnn_choices()) == before


def test_an_error_names_the_operator_and_shapes(rng: np.random.Generator, library: Any) -> None:
    x, weight = random(rng, 2, 16, 10, 14).cuda(), random(rng, 20, 16, 3, 3).cuda()
    library.plait_cudnn_fail_calls(ctypes.c_int64(1))
    with pytest.raises(
        RuntimeError,
        match=r"conv2d: cuDNN failed \(CUDNN_STATUS_EXECUTION_FAILED: the call was told to fail\) "
        r"for images of shape \(2, 16, 10, 14\) and a weight of shape \(20, 16, 3, 3\)",
    ):
        pc.conv2d(x, weight, None, *PLAIN)
    check(operator("conv2d"), x.cpu(), weight.cpu(), None, *PLAIN)


def test_what_does_not_go_to_the_library(rng: np.random.Generator, library: Any) -> None:
    x, weight = random(rng, 2, 16, 12, 12), random(rng, 20, 16, 3, 3)
    before = library.plait_cudnn_calls()
    cudnn.set_enabled(False)
    try:
        assert not cudnn.is_enabled()
        check(operator("conv2d"), x, weight, None, *PLAIN)
    finally:
        cudnn.set_enabled(True)
    pc.set_batch_invariant(True)
    try:
        whole = pc.conv2d(x.cuda(), weight.cuda(), None, *PLAIN).cpu()
        one = pc.conv2d(x[1:].cuda(), weight.cuda(), None, *PLAIN).cpu()
    finally:
        pc.set_batch_invariant(False)
    assert one.equal(whole[1:])
    check(operator("conv2d"), random(rng, 1, 1, 5, 5), random(rng, 1, 1, 3, 3), None, *PLAIN)
    check(operator("conv2d"), random(rng, 2, 0, 9, 9), random(rng, 9, 0, 3, 3), None, *PLAIN)
    assert library.plait_cudnn_calls() == before


def test_layers_of_all_dimensions(rng: np.random.Generator, library: Any) -> None:
    nn = pytest.importorskip("plait_nn")
    layers = [
        (nn.Conv1d(8, 32, 5, stride=2, groups=2), (3, 8, 60)),
        (nn.Conv2d(8, 16, 3, padding="same"), (2, 8, 14, 15)),
        (nn.Conv3d(4, 8, 3, padding=1), (2, 4, 5, 9, 9)),
        (nn.ConvTranspose1d(8, 32, 5, stride=2, output_padding=1), (3, 8, 60)),
        (nn.ConvTranspose2d(8, 16, 3, stride=2, padding=1, groups=4), (2, 8, 14, 15)),
        (nn.ConvTranspose3d(4, 8, 3, padding=1), (2, 4, 5, 9, 9)),
    ]
    for layer, shape in layers:
        x = random(rng, *shape)
        before = library.plait_cudnn_calls()

        def run(x: Any, layer: Any = layer) -> Any:
            layer.to(x.device)
            layer.zero_grad()
            x = x.detach().requires_grad_()
            y = layer(x)
            (y * y).mean().backward()
            return [y.detach(), x.grad, *(each.grad.clone() for each in layer.parameters())]

        check(run, x, tolerance=1e-4)
        assert library.plait_cudnn_calls() >= before + 3


def test_a_graph_records_the_library(rng: np.random.Generator, library: Any) -> None:
    x, weight, bias = random(rng, 2, 16, 12, 12), random(rng, 20, 16, 3, 3), random(rng, 20)
    there = [each.cuda() for each in (x, weight, bias)]
    pc.conv2d(*there, *PLAIN)
    before = library.plait_cudnn_calls()
    graph = pc.cuda.CUDAGraph()
    with pc.cuda.graph(graph):
        y = pc.conv2d(*there, *PLAIN)
    assert library.plait_cudnn_calls() == before + 1
    for factor in (1.0, -3.0):
        there[0].copy_(x * factor)
        graph.replay()
        want = pc.conv2d(x * factor, weight, bias, *PLAIN)
        np.testing.assert_allclose(y.cpu().numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


def test_a_graph_that_comes_first_records_our_kernels() -> None:
    run_program("""
        import ctypes, pathlib, plait_cuda
        folder = pathlib.Path(plait_cuda.__file__).parent
        library = ctypes.CDLL(str(folder / "emulation" / "libcudnn.so.9"))
        plait.accelerator.set_tf32(convolutions=False)
        x, weight = plait.randn(2, 16, 12, 12), plait.randn(20, 16, 3, 3)
        there = x.cuda(), weight.cuda()
        graph = plait.cuda.CUDAGraph()
        with plait.cuda.graph(graph):
            y = plait.conv2d(*there)
        assert library.plait_cudnn_calls() == 0
        graph.replay()
        assert plait.allclose(y.cpu(), plait.conv2d(x, weight), atol=1e-4)
        plait.conv2d(*there)
        assert library.plait_cudnn_calls() == 1
    """)


def test_threads_and_streams(rng: np.random.Generator) -> None:
    x, weight = random(rng, 2, 16, 12, 12), random(rng, 20, 16, 3, 3)
    want = pc.conv2d(x * 5, weight, None, *PLAIN).numpy()
    wrong: list[int] = []

    def work(number: int) -> None:
        with pc.cuda.stream(pc.cuda.Stream()):
            there, filters = x.cuda(), weight.cuda()
            for _ in range(5):
                y = pc.conv2d(there * 5, filters, None, *PLAIN)
                if not np.allclose(y.cpu().numpy(), want, rtol=1e-4, atol=1e-3):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_version() -> None:
    assert cudnn.is_available() and cudnn.is_enabled()
    assert cudnn.version() == 91300


def test_the_environment_refuses_the_library() -> None:
    run_program(
        """
        from plait_cuda import cudnn
        assert cudnn.version() is None and not cudnn.is_available()
        x, weight = plait.randn(2, 16, 12, 12), plait.randn(20, 16, 3, 3)
        y = plait.conv2d(x.cuda(), weight.cuda())
        assert plait.allclose(y.cpu(), plait.conv2d(x, weight), atol=1e-4)
        """,
        PLAIT_CUDA_CUDNN="0",
    )


@pytest.mark.skipif(not importlib.util.find_spec("plait_torch"), reason="needs plait_torch")
def test_the_flags_of_pytorch() -> None:
    run_program("""
        from plait_cuda import cudnn as library
        from plait_torch._backends import cudnn
        assert cudnn.is_available() and cudnn.version() == 91300 and cudnn.enabled is True
        x = plait.zeros(2, device="cuda")
        assert cudnn.is_acceptable(x)
        assert not cudnn.is_acceptable(x.cpu()) and not cudnn.is_acceptable(x.to(plait.int32))
        with cudnn.flags(enabled=False, allow_tf32=False, deterministic=True, benchmark=True):
            assert not library.is_enabled() and not cudnn.enabled and not cudnn.is_acceptable(x)
            assert plait.accelerator.uses_tf32() == (False, False) and not cudnn.allow_tf32
            assert plait.accelerator.is_deterministic() and cudnn.deterministic
            assert cudnn.benchmark is True
        assert library.is_enabled() and cudnn.enabled and cudnn.allow_tf32
        assert not cudnn.deterministic and not cudnn.benchmark
    """)
    run_program(
        """
        from plait_torch._backends import cudnn
        assert not cudnn.is_available() and cudnn.version() is None and cudnn.enabled is True
        assert not cudnn.is_acceptable(plait.zeros(2, device="cuda"))
        """,
        PLAIT_CUDA_CUDNN="0",
    )
