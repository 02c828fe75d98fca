"""Functions that only PyTorch names: copies of views, windows, and those its own modules call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("alias", ()),
        ("as_strided", ((2, 2), (1, 2))),
        ("detach", ()),
        ("diagonal", ()),
        ("expand", ((4, 3, 3),)),
        ("permute", ((1, 0),)),
        ("select", (0, 1)),
        ("squeeze", ()),
        ("squeeze", (0,)),
        ("t", ()),
        ("transpose", (0, 1)),
        ("unfold", (0, 2, 1)),
        ("unsqueeze", (1,)),
        ("view", ((9,),)),
        ("view_as_complex", ()),
    ],
)
def test_a_copy_has_the_view_s_elements_and_memory_of_its_own(
    torch: Any, name: str, args: tuple[Any, ...]
) -> None:
    x = torch.arange(9.0).reshape(3, 3)
    if name == "view_as_complex":
        x = torch.arange(8.0).reshape(4, 2)
    views = {"alias": lambda x: x, "view_as_complex": torch.view_as_complex}
    expected = views.get(name, lambda x, *args: getattr(x, name)(*args))(x, *args).clone()
    result = getattr(torch, f"{name}_copy")(x, *args)
    assert result.is_contiguous() and torch.equal(result, expected)
    out = torch.empty(0, dtype=expected.dtype)
    assert getattr(torch, f"{name}_copy")(x, *args, out=out) is out and torch.equal(out, expected)
    x.fill_(-1)
    assert torch.equal(result, expected)


def test_copies_of_several_views(torch: Any) -> None:
    x = torch.arange(6.0).reshape(3, 2)
    for result in (
        torch.unbind_copy(x),
        torch.split_copy(x, 1),
        torch.split_with_sizes_copy(x, [1, 1, 1]),
    ):
        assert [part.flatten().tolist() for part in result] == [[0, 1], [2, 3], [4, 5]]
        assert all(part.data_ptr() != x[i].data_ptr() for i, part in enumerate(result))
    out = [torch.empty(1, 2), torch.empty(2, 2)]
    assert torch.split_with_sizes_copy(x, [1, 2], out=out) is None
    assert [part.tolist() for part in out] == [[[0, 1]], [[2, 3], [4, 5]]]
    assert torch.slice_copy(x, 0, 1, None, 1).tolist() == [[2, 3], [4, 5]]
    assert torch.slice_copy(x, -1, 1).tolist() == [[1], [3], [5]]


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8])
def test_windows(torch: Any, count: int) -> None:
    windows = torch.signal.windows
    n = np.arange(count)
    half = (count - 1) / 2
    for expected, result in (
        (np.bartlett(count), windows.bartlett(count, dtype=torch.float64)),
        (np.hanning(count), windows.hann(count, dtype=torch.float64)),
        (np.hamming(count), windows.hamming(count, dtype=torch.float64)),
        (np.blackman(count), windows.blackman(count, dtype=torch.float64)),
        (np.kaiser(count, 5.0), windows.kaiser(count, beta=5.0, dtype=torch.float64)),
        (
            np.exp(-(((n - half) / 2) ** 2) / 2),
            windows.gaussian(count, std=2.0, dtype=torch.float64),
        ),
        (
            np.exp(-np.abs(n - half) / 3),
            windows.exponential(count, tau=3.0, dtype=torch.float64),
        ),
        (
            np.sin((n + 0.5) * np.pi / count) if count else n,
            windows.cosine(count, dtype=torch.float64),
        ),
    ):
        np.testing.assert_allclose(result, expected, atol=1e-12)
    if count > 1:  # one point less of the next larger window
        result = windows.hann(count, sym=False)
        np.testing.assert_allclose(result, np.hanning(count + 1)[:-1], atol=1e-6)
        nuttall = windows.nuttall(2 * count + 1, dtype=torch.float64)
        assert nuttall[count] == pytest.approx(1) and nuttall[0] == pytest.approx(0.0003628)
    with pytest.raises(RuntimeError, match="bartlett: `M`"):
        windows.bartlett(-1)
    with pytest.raises(RuntimeError, match="kaiser: `dtype`"):
        windows.kaiser(count, dtype=torch.int64)


def test_normalisations_with_their_statistics(torch: Any) -> None:
    x, weight, bias = torch.randn(2, 4, 3, 3), torch.randn(4), torch.randn(4)
    y, mean, deviation = torch.native_group_norm(x, weight, bias, 2, 4, 9, 2, 1e-5)
    assert torch.equal(y, torch.nn.functional.group_norm(x, 2, weight, bias, 1e-5))
    groups = x.numpy().reshape(2, 2, -1)
    np.testing.assert_allclose(mean, groups.mean(-1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(deviation, 1 / np.sqrt(groups.var(-1) + 1e-5), rtol=1e-4)
    with pytest.raises(RuntimeError, match="native_group_norm"):
        torch.native_group_norm(x, weight, bias, 2, 4, 8, 2, 1e-5)
    y, mean, deviation = torch.native_layer_norm(x, (3, 3), None, None, 1e-5)
    assert torch.equal(y, torch.nn.functional.layer_norm(x, (3, 3)))
    assert mean.shape == deviation.shape == (2, 4, 1, 1)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("weight", [None, "float32", "half"])
def test_statistics_have_the_dtype_of_the_weight(torch: Any, half: str, weight: Any) -> None:
    x = torch.randn(2, 4, 4).to(getattr(torch, half))
    arguments = (None, None)
    if weight is not None:
        dtype = torch.float32 if weight == "float32" else x.dtype
        arguments = (torch.ones(4, dtype=dtype), torch.zeros(4, dtype=dtype))
    for result in (
        torch.native_layer_norm(x, (4,), *arguments, 1e-5),
        torch.native_group_norm(x, *arguments, 2, 4, 4, 2, 1e-5),
        torch.native_batch_norm(x, *arguments, None, None, True, 0.1, 1e-5),
    ):
        expected = x.dtype if arguments[0] is None else arguments[0].dtype
        assert [each.dtype for each in result] == [x.dtype, expected, expected]


def test_grid_sampler_by_numbers(torch: Any) -> None:
    x, grid = torch.randn(1, 2, 4, 4), torch.rand(1, 3, 3, 2) * 3 - 1.5
    for i, mode in enumerate(("bilinear", "nearest", "bicubic")):
        for k, padding in enumerate(("zeros", "border", "reflection")):
            expected = torch.nn.functional.grid_sample(x, grid, mode, padding, True)
            assert torch.equal(torch.grid_sampler_2d(x, grid, i, k, True), expected)


def test_empty_permuted(torch: Any) -> None:
    result = torch.empty_permuted((2, 3, 4), (2, 0, 1), dtype=torch.float64)
    assert result.shape == (2, 3, 4) and result.stride() == (3, 1, 6)
    assert result.dtype == torch.float64
    with pytest.raises(RuntimeError, match="empty_permuted"):
        torch.empty_permuted((2, 3), (0, 0))


def test_refused_values_are_both_errors(torch: Any) -> None:
    for kind in (ValueError, RuntimeError, plait.ArgumentError):
        with pytest.raises(kind, match="repeat"):
            torch.ones(2).repeat(-1)
        with pytest.raises(kind, match="device"):
            torch.device("nowhere")
