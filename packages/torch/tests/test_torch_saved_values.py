"""The attributes `_saved_*` of nodes: what programs for PyTorch read of the graph."""

from __future__ import annotations

from typing import Any

import pytest


def _saved(node: Any) -> dict[str, Any]:
    return {each: getattr(node, each) for each in dir(node) if each.startswith("_saved_")}


def test_arguments_are_the_tensors_themselves(torch: Any) -> None:
    x, y = torch.ones(2, 3, requires_grad=True), torch.full((2, 3), 2.0)
    product = x * y
    assert _saved(product.grad_fn) == {"_saved_self": None, "_saved_other": y}
    assert (x * x).grad_fn._saved_self is x and (x + y).grad_fn._saved_alpha == 1
    power = product.pow(2)
    assert power.grad_fn._saved_exponent == 2 and power.grad_fn._saved_self is product
    picked = torch.cat([x, y])[torch.tensor([0, 3])]
    assert [each.tolist() for each in picked.grad_fn._saved_indices] == [[0, 3]]


def test_results_have_their_history(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    result = y.grad_fn._saved_result
    assert torch.equal(result, y) and result.grad_fn == y.grad_fn
    (again,) = torch.autograd.grad(result.sum(), x, retain_graph=True)
    assert torch.equal(again, y)


def test_numbers_and_shapes(torch: Any) -> None:
    F = torch.nn.functional
    x, image = torch.ones(2, 3, requires_grad=True), torch.ones(1, 1, 4, 4, requires_grad=True)
    weight = torch.ones(1, 1, 2, 2)
    expected = {
        x.sum(-1): {"dim": (2**64 - 1,), "keepdim": False, "self_sym_sizes": (2, 3)},
        x[:, 1:]: {"dim": 1, "end": 2**63 - 1, "start": 1, "step": 1, "self_sym_sizes": (2, 3)},
        x.mean(): {"self_sym_numel": 6, "self_sym_sizes": (2, 3)},
        x.softmax(0).sum(0).view(3, 1): {"self_sym_sizes": (3,)},
        torch.fft.irfft(x * 1j): {"dim": (1,), "normalization": 2},
        x.var().reshape(1): {"self_sym_sizes": ()},
    }
    for result, values in expected.items():
        assert _saved(result.grad_fn) == {f"_saved_{each}": v for each, v in values.items()}
    convolution = _saved(F.conv2d(image, weight, stride=2).grad_fn)
    assert convolution.pop("_saved_weight") is weight
    assert convolution == {
        "_saved_input": None, "_saved_bias_sym_sizes_opt": (0,), "_saved_dilation": (1, 1),
        "_saved_groups": 1, "_saved_output_padding": (0, 0), "_saved_padding": (0, 0),
        "_saved_stride": (2, 2), "_saved_transposed": False,
    }  # fmt: skip


def test_after_a_pass_they_are_gone(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.cumprod(0).softmax(0)
    y.sum().backward(retain_graph=True)
    assert torch.equal(y.grad_fn._saved_result, y)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have already"):
        _ = y.grad_fn._saved_result
    assert y.grad_fn._saved_dim == 0
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.sum().backward()


def test_writes_are_seen(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        _ = y.grad_fn.next_functions[0][0]._saved_result


def test_hooks_unpack_what_is_read(torch: Any) -> None:
    x = torch.full((2,), 3.0, requires_grad=True)
    calls: list[str] = []

    def pack(tensor: Any) -> Any:
        calls.append("pack")
        return tensor.tolist()

    def unpack(values: Any) -> Any:
        calls.append("unpack")
        return torch.tensor(values)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * (x + 1)
    assert calls == ["pack", "pack"]
    assert y.grad_fn._saved_self.tolist() == [3.0, 3.0] and calls[2:] == ["unpack"]
    assert y.grad_fn._saved_other.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 7.0] and calls[2:] == ["unpack"] * 4
