"""Binaries of torchvision and torchaudio: `load_library` finds plait's operators by their names."""

from __future__ import annotations

import itertools
import math
import pathlib
import sys
from typing import Any

import numpy as np
import pytest

import plait

DIGITS = {"rtol": 1e-5, "atol": 1e-5}


def binary(folder: pathlib.Path, *parts: str) -> pathlib.Path:
    """Return the path of a file of that name; nothing of it is read."""
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


@pytest.fixture
def vision(torch: Any, tmp_path: pathlib.Path) -> Any:
    torch.ops.load_library(binary(tmp_path, "torchvision", "_C.so"))
    return torch.ops.torchvision


@pytest.fixture
def audio(torch: Any, tmp_path: pathlib.Path) -> Any:
    torch.ops.load_library(str(binary(tmp_path, "torchaudio", "lib", "libtorchaudio.abi3.so")))
    return torch.ops.torchaudio


@pytest.mark.parametrize(
    "parts",
    [
        ("torchvision", "_D.so"),
        ("other", "_C.so"),
        ("torchvision.egg", "_C.so"),
        ("torchvision", "libtorchaudio.so"),
        ("_C.so",),
        ("torchvision",),
    ],
)
def test_other_binaries_are_refused(
    torch: Any, tmp_path: pathlib.Path, parts: tuple[str, ...]
) -> None:
    path = tmp_path.joinpath(*parts)
    with pytest.raises(OSError, match=r"load_library: .*PyTorch's binary.*plait_abi\.build"):
        torch.ops.load_library(path)
    assert str(path) not in torch.ops.loaded_libraries


def test_a_file_name_may_have_a_tag(torch: Any, tmp_path: pathlib.Path) -> None:
    path = binary(tmp_path, "torchvision", "_C.cpython-312-x86_64-linux-gnu.so")
    torch.ops.load_library(path)
    assert torch.ops.torchvision._cuda_version() == -1
    assert str(path) in torch.ops.loaded_libraries
    assert torch.ops.torchvision.nms.default is torch.ops.torchvision.nms


def test_what_a_library_registers_beside_has_no_effect(torch: Any, vision: Any) -> None:
    """torchvision registers shapes, derivatives and casts in Python, for PyTorch's dispatcher."""
    library = torch.library.Library("torchvision", "IMPL", "Meta")
    library.impl(vision.nms.default, len)
    torch.library.Library("torchvision", "IMPL").impl("nms", len, "AutocastCPU")
    torch.library.register_autograd("torchvision::nms", len, setup_context=len)
    boxes = plait.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9], [2.0, 2.0, 3.0, 3.0]])
    assert vision.nms(boxes, plait.tensor([0.1, 0.2, 0.3]), 0.5).tolist() == [2, 1]


def test_quantized_forms_are_refused_by_name(vision: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"torchvision\.qnms.*quantized"):
        vision.qnms(plait.zeros(1, 4), plait.zeros(1), 0.5)


ROIS = [[0.0, 0.5, 0.25, 3.5, 3.0], [1.0, -1.0, 1.0, 2.5, 4.5]]


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("roi_align", (2, True)),
        ("roi_pool", ()),
        ("ps_roi_align", (2,)),
        ("ps_roi_pool", ()),
    ],
)
def test_pooling_and_its_derivative(vision: Any, name: str, rest: tuple[Any, ...]) -> None:
    rng = plait.Generator().manual_seed(0)
    images = plait.randn(2, 8, 5, 6, generator=rng, requires_grad=True)
    rois = plait.tensor(ROIS)
    result = getattr(vision, name)(images, rois, 1.0, 2, 2, *rest)
    parts = result if isinstance(result, tuple) else (result,)
    assert parts[0].shape == (2, 2 if name.startswith("ps") else 8, 2, 2)
    grad = plait.randn(*parts[0].shape, generator=rng)
    parts[0].backward(grad)
    middle = [part for part in parts[1:] if part.dtype == plait.int32]
    assert len(middle) == (name != "roi_align")
    size = tuple(images.shape)
    ends = {"roi_align": (*size, *rest), "ps_roi_align": (*rest, *size)}.get(name, size)
    back = getattr(vision, f"_{name}_backward")(grad, rois, *middle, 1.0, 2, 2, *ends)
    assert back.shape == images.shape
    np.testing.assert_array_equal(back.numpy(), images.grad.numpy())
    assert back.numpy().any()


def test_channel_mapping(vision: Any) -> None:
    images = plait.arange(2 * 8 * 16.0).reshape(2, 8, 4, 4)
    _, channels = vision.ps_roi_pool(images, plait.tensor(ROIS), 1.0, 2, 2)
    assert channels.dtype == plait.int32
    assert channels[0].tolist() == channels[1].tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    _, none = vision.ps_roi_align(images, plait.zeros(0, 5), 1.0, 2, 2, 2)
    assert none.shape == (0, 2, 2, 2)


@pytest.mark.parametrize("use_mask", [False, True])
def test_deformable_convolution_and_its_derivative(vision: Any, use_mask: bool) -> None:
    rng = plait.Generator().manual_seed(1)

    def draw(*shape: int) -> Any:
        return plait.randn(*shape, generator=rng, requires_grad=True)

    mask = draw(1, 8, 2, 3) if use_mask else plait.zeros(1, 1).requires_grad_()
    arguments = (draw(1, 4, 3, 4), draw(6, 2, 2, 2), draw(1, 16, 2, 3), mask, draw(6))
    rest = (1, 1, 0, 0, 1, 1, 2, 2, use_mask)
    result = vision.deform_conv2d(*arguments, *rest)
    grad = plait.randn(*result.shape, generator=rng)
    result.backward(grad)
    back = vision._deform_conv2d_backward(grad, *arguments, *rest)
    for each, x in zip(back, arguments, strict=True):
        assert each.shape == x.shape
        want = plait.zeros_like(x) if x.grad is None else x.grad
        np.testing.assert_array_equal(each.numpy(), want.numpy())
    plain = plait.nn.functional.conv2d(arguments[0], arguments[1], arguments[4], groups=2)
    whole = plait.zeros(1, 16, 2, 3)
    ones = plait.ones_like(mask)
    same = vision.deform_conv2d(arguments[0], arguments[1], whole, ones, arguments[4], *rest)
    np.testing.assert_allclose(same.detach().numpy(), plain.detach().numpy(), **DIGITS)


# ---- pictures
@pytest.fixture
def images(torch: Any, tmp_path: pathlib.Path) -> Any:
    torch.ops.load_library(binary(tmp_path, "torchvision", "image.so"))
    return torch.ops.image


def test_files_and_pictures(images: Any, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("PIL")
    colours = (plait.arange(3 * 4 * 5) * 4).reshape(3, 4, 5).to(plait.uint8)
    data = images.encode_png(colours, 6)
    assert data.dtype == plait.uint8 and data.ndim == 1
    images.write_file(str(tmp_path / "a.png"), data)
    again = images.read_file(str(tmp_path / "a.png"))
    for decode in (images.decode_png, images.decode_image):
        assert decode(again).tolist() == colours.tolist()
    assert images.decode_png(again, 1).shape == (1, 4, 5)
    assert images.decode_png(again, 4)[3].tolist() == [[255] * 5] * 4
    grey = images.decode_jpeg(images.encode_jpeg(plait.full((1, 8, 8), 7, dtype=plait.uint8), 90))
    assert grey.shape == (1, 8, 8) and abs(int(grey.max()) - 7) <= 2
    with pytest.raises(RuntimeError, match="decode_jpeg"):
        images.decode_jpeg(again)
    with pytest.raises(RuntimeError, match=r"encode_png.*\(2, 4, 5\)"):
        images.encode_png(colours[:2], 6)
    with pytest.raises(NotImplementedError, match="decode_jpegs_cuda"):
        images.decode_jpegs_cuda([again], 0, "cuda")


def test_pictures_without_pillow(images: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    data = plait.zeros(4, dtype=plait.uint8)
    with pytest.raises(ModuleNotFoundError, match=r"decode_image: it needs Pillow"):
        images.decode_image(data)


# ---- torchaudio
def test_both_binaries_of_torchaudio(torch: Any, tmp_path: pathlib.Path) -> None:
    torch.ops.load_library(binary(tmp_path, "torchaudio", "lib", "_torchaudio.abi3.so"))
    assert torch.ops._torchaudio.cuda_version() is None
    assert torch.ops._torchaudio.is_align_available() is True


@pytest.mark.parametrize("began", [False, True])
def test_recursive_filter(audio: Any, began: bool) -> None:
    rng = np.random.default_rng(0)
    signal, factors = rng.standard_normal((2, 3, 9)), rng.uniform(-0.3, 0.3, (3, 4))
    factors[:, -1] = 1
    padded = np.zeros((2, 3, 12))
    if began:
        padded[:, :, :3] = rng.standard_normal((2, 3, 3))
    want = padded.copy()
    for t in range(9):
        want[:, :, t + 3] = signal[:, :, t] - (want[:, :, t : t + 3] * factors[:, :3]).sum(-1)
    result = plait.from_numpy(padded)
    tensor_signal = plait.from_numpy(signal)
    assert audio._lfilter_core_loop(tensor_signal, plait.from_numpy(factors), result) is result
    np.testing.assert_allclose(result.numpy(), want, atol=1e-12)
    np.testing.assert_array_equal(tensor_signal.numpy(), signal)
    with pytest.raises(RuntimeError, match=r"_lfilter_core_loop.*\(2, 3, 9\).*\(2, 3, 11\)"):
        audio._lfilter_core_loop(tensor_signal, plait.from_numpy(factors), result[:, :, :11])


def test_overdrive(audio: Any) -> None:
    rng = np.random.default_rng(1)
    waveform, temp = rng.standard_normal((2, 2, 50))
    before, after = rng.standard_normal((2, 2))
    output = plait.zeros(2, 50, dtype=plait.float64)
    states = [plait.from_numpy(each.copy()) for each in (before, after)]
    audio._overdrive_core_loop(plait.from_numpy(waveform), plait.from_numpy(temp), *states, output)
    want = np.zeros((2, 50))
    for t in range(50):
        after = temp[:, t] - before + 0.995 * after
        before = temp[:, t]
        want[:, t] = waveform[:, t] * 0.5 + after * 0.75
    np.testing.assert_allclose(output.numpy(), want, atol=1e-12)
    for state, end in zip(states, (before, after), strict=True):
        np.testing.assert_allclose(state.numpy(), end, atol=1e-12)


def transducer_cost(scores: Any, target: list[int], blank: int) -> float:
    """Minus the logarithm of the sum over all paths of one sequence, each of them written out."""
    steps, total = len(scores), 0.0
    for ups in itertools.combinations(range(steps + len(target) - 1), len(target)):
        t = u = 0
        logarithm = 0.0
        for move in range(steps + len(target) - 1):
            if move in ups:
                logarithm += scores[t, u, target[u]]
                u += 1
            else:
                logarithm += scores[t, u, blank]
                t += 1
        total += math.exp(logarithm + scores[t, u, blank])
    return -math.log(total)


@pytest.mark.parametrize("fused", [True, False])
def test_transducer_loss(audio: Any, fused: bool) -> None:
    rng = np.random.default_rng(2)
    logits = rng.standard_normal((2, 4, 3, 5)).astype("float32")
    targets, times, places = np.array([[1, 2], [3, 0]]), [4, 3], [2, 1]
    ints = {"dtype": plait.int32}
    rest = (
        plait.tensor(targets.tolist(), **ints), plait.tensor(times, **ints),
        plait.tensor(places, **ints), 4,
    )  # fmt: skip

    def costs(values: Any) -> list[float]:
        scores = values.astype("float64")
        if fused:
            scores = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
        return [
            transducer_cost(scores[b, : times[b]], targets[b, : places[b]].tolist(), 4)
            for b in range(2)
        ]

    result, gradient = audio.rnnt_loss_forward(plait.from_numpy(logits), *rest, -1.0, fused)
    np.testing.assert_allclose(result.numpy(), costs(logits), rtol=1e-5)
    assert gradient.dtype == result.dtype == plait.float32 and not result.requires_grad
    direction = rng.standard_normal(logits.shape)
    up, down = (sum(costs(logits + sign * 1e-3 * direction)) for sign in (1, -1))
    want = (up - down) / 2e-3
    assert float((gradient.numpy() * direction).sum()) == pytest.approx(want, rel=1e-3)
    assert not gradient[1, 3].numpy().any() and not gradient[1, :, 2].numpy().any()
    with plait.no_grad():  # as in the forward of a `Function`
        clamped = audio.rnnt_loss_forward(plait.from_numpy(logits), *rest, 0.01, fused)[1]
    np.testing.assert_array_equal(clamped.numpy(), gradient.numpy().clip(-0.01, 0.01))
    with pytest.raises(RuntimeError, match=r"rnnt_loss.*\(2, 4, 3, 5\).*blank 5"):
        audio.rnnt_loss_forward(plait.from_numpy(logits), *rest[:3], 5, -1.0, fused)


@pytest.mark.parametrize("labels", [[1], [1, 2], [2, 2], [3, 1, 3]])
def test_forced_alignment(audio: Any, labels: list[int]) -> None:
    scores = np.random.default_rng(len(labels)).standard_normal((1, 5, 4)).astype("float32")

    def merged(path: tuple[int, ...]) -> list[int]:
        return [k for i, k in enumerate(path) if k and (i == 0 or k != path[i - 1])]

    paths = [path for path in itertools.product(range(4), repeat=5) if merged(path) == labels]
    best = max(paths, key=lambda path: sum(scores[0, t, k] for t, k in enumerate(path)))
    targets = plait.tensor([labels], dtype=plait.int32)
    lengths = plait.tensor([5]), plait.tensor([len(labels)])
    result, again = audio.forced_align(plait.from_numpy(scores), targets, *lengths, 0)
    assert result.tolist() == [list(best)] and result.dtype == plait.int32
    assert again.shape == scores.shape


def test_alignments_that_do_not_fit(audio: Any) -> None:
    scores = plait.zeros(1, 3, 4)
    for labels, steps, blank, text in (
        ([1, 1, 2], 3, 0, "1 repeats are too long for 3 steps"),
        ([1, 4], 3, 0, r"must be in \[0, 4\)"),
        ([1], 3, 4, r"must be in \[0, 4\)"),
        ([1], 2, 0, "lengths must be those"),
    ):
        targets, lengths = plait.tensor([labels]), plait.tensor([len(labels)])
        with pytest.raises(RuntimeError, match=text):
            audio.forced_align(scores, targets, plait.tensor([steps]), lengths, blank)


# ---- extensions in C++
def test_errors_of_extensions_name_the_replacement(torch: Any) -> None:
    from torch.utils import cpp_extension

    assert cpp_extension.CUDA_HOME is None and cpp_extension.is_ninja_available() in (True, False)
    for name in ("load", "load_inline", "CppExtension", "CUDAExtension", "include_paths"):
        text = rf"cpp_extension\.{name} .*plait_abi\.build.*writing-an-operator"
        with pytest.raises(NotImplementedError, match=text):
            getattr(cpp_extension, name)(name="mine", sources=["mine.cpp"])
    command = cpp_extension.BuildExtension.with_options(no_python_abi_suffix=True)
    with pytest.raises(NotImplementedError, match="BuildExtension"):
        command()
