"""`nn.utils` against torch's on float64: fusion, norms, orthogonal matrices, pruning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.utils import parametrizations as their_parametrizations, prune as their_prune

import plait_autograd as pa
import plait_core as pc
import plait_nn as nn
from plait_nn.utils import parametrizations, prune

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:torch")


def pair(name: str, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """A module of torch's and one of ours with the same state."""
    torch.manual_seed(1)
    theirs = getattr(torch.nn, name)(*args, **kwargs).double()
    for tensor in [*theirs.parameters(), *theirs.buffers()]:
        if tensor.is_floating_point():
            tensor.data = torch.rand_like(tensor) + 0.1
    ours = getattr(nn, name)(*args, **kwargs).double()
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def close(ours: Any, theirs: Any) -> None:
    own, other = ours.detach().numpy(), theirs.detach().numpy()
    np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("name", "args", "norm", "transpose", "affine"),
    [
        ("Conv1d", (2, 4, 3), "BatchNorm1d", False, True),
        ("Conv2d", (2, 4, 3), "BatchNorm2d", False, False),
        ("ConvTranspose2d", (2, 4, 3), "BatchNorm2d", True, True),
        ("Linear", (2, 4), "BatchNorm1d", False, True),  # torch fails without affine
    ],
)
def test_fusion(name: str, args: Any, norm: str, transpose: bool, affine: bool, bias: bool) -> None:
    ours, theirs = pair(name, *args, bias=bias)
    my_norm, their_norm = pair(norm, 4, affine=affine)
    for module in (ours, theirs, my_norm, their_norm):
        module.eval()
    if name == "Linear":
        own = nn.utils.fuse_linear_bn_eval(ours, my_norm)
        other = torch.nn.utils.fuse_linear_bn_eval(theirs, their_norm)
    else:
        own = nn.utils.fuse_conv_bn_eval(ours, my_norm, transpose)
        other = torch.nn.utils.fuse_conv_bn_eval(theirs, their_norm, transpose)
    close(own.weight, other.weight)
    close(own.bias, other.bias)
    assert own.weight.requires_grad == other.weight.requires_grad


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_by_a_hook(dim: int | None) -> None:
    ours, theirs = pair("Linear", 3, 4)
    own, other = nn.utils.weight_norm(ours, dim=dim), torch.nn.utils.weight_norm(theirs, dim=dim)
    assert list(own.state_dict()) == list(other.state_dict())
    with pa.no_grad(), torch.no_grad():
        own.weight_g.mul_(2)
        other.weight_g.mul_(2)
    x = np.random.default_rng(0).standard_normal((2, 3))
    a, b = own(pc.tensor(x)), other(torch.tensor(x))
    close(a, b)
    a.sum().backward()
    b.sum().backward()
    close(own.weight_v.grad, other.weight_v.grad)
    nn.utils.remove_weight_norm(own)
    torch.nn.utils.remove_weight_norm(other)
    assert list(own.state_dict()) == list(other.state_dict())
    close(own.weight, other.weight)
    assert not own._forward_pre_hooks


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ["Conv2d", "ConvTranspose2d"])
def test_spectral_norm_by_a_hook(name: str, training: bool) -> None:
    ours, theirs = pair(name, 2, 4, 3)
    own = nn.utils.spectral_norm(ours, n_power_iterations=2)
    other = torch.nn.utils.spectral_norm(theirs, n_power_iterations=2)
    assert set(own.state_dict()) == set(other.state_dict())
    own.load_state_dict(other.state_dict())
    own.train(training)
    other.train(training)
    x = np.random.default_rng(0).standard_normal((2, 2, 5, 5))
    for _ in range(2):
        a, b = own(pc.tensor(x)), other(torch.tensor(x))
        close(a, b)
    a.square().sum().backward()
    b.square().sum().backward()
    close(own.weight_orig.grad, other.weight_orig.grad)
    close(own.weight_u, other.weight_u)
    close(
        nn.utils.remove_spectral_norm(own).weight,
        torch.nn.utils.remove_spectral_norm(other).weight,
    )


@pytest.mark.parametrize("trivialized", [True, False])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_orthogonal(shape: tuple[int, int], kind: str | None, trivialized: bool) -> None:
    ours, theirs = pair("Linear", *shape)
    if not trivialized and kind is None:
        kind = "householder"
    if not trivialized and kind != "householder":
        with pytest.raises(NotImplementedError):
            parametrizations.orthogonal(ours, "weight", kind, use_trivialization=False)
        return
    own = parametrizations.orthogonal(ours, "weight", kind, use_trivialization=trivialized)
    other = their_parametrizations.orthogonal(
        theirs, "weight", kind, use_trivialization=trivialized
    )
    assert list(own.state_dict()) == list(other.state_dict())
    if shape[0] == shape[1] or not trivialized:  # else the base is completed at random
        close(own.weight, other.weight)
    own.load_state_dict(other.state_dict())
    with pa.no_grad(), torch.no_grad():
        step = np.random.default_rng(0).standard_normal(tuple(own.weight.shape)) * 0.3
        own.parametrizations.weight.original.add_(pc.tensor(step).tril(-1))
        other.parametrizations.weight.original.add_(torch.tensor(step).tril(-1))
    close(own.weight, other.weight)
    expected = np.random.default_rng(1).standard_normal(tuple(own.weight.shape))
    (own.weight * pc.tensor(expected)).sum().backward()
    (other.weight * torch.tensor(expected)).sum().backward()
    gradients = [m.parametrizations.weight.original.grad for m in (own, other)]
    close(*gradients)


def test_orthogonal_of_complex_matrices() -> None:
    layer = nn.Linear(3, 3, dtype=pc.complex128)
    result = parametrizations.orthogonal(layer)
    q = result.weight
    assert ((q.mH @ q - pc.eye(3, dtype=pc.complex128)).abs() < 1e-12).all()


PRUNINGS: list[tuple[str, tuple[Any, ...]]] = [
    ("identity", ()),
    ("l1_unstructured", (0.4,)),
    ("l1_unstructured", (5,)),
    ("l1_unstructured", (0,)),
    ("ln_structured", (1, 2, 0)),
    ("ln_structured", (0.5, 1, 1)),
    ("ln_structured", (1, float("inf"), -1)),
]


@pytest.mark.parametrize("second", [None, *PRUNINGS], ids=str)
@pytest.mark.parametrize("first", PRUNINGS, ids=str)
def test_prunings(first: Any, second: Any) -> None:
    ours, theirs = pair("Linear", 4, 3)
    for each in filter(None, (first, second)):
        getattr(prune, each[0])(ours, "weight", *each[1])
        getattr(their_prune, each[0])(theirs, "weight", *each[1])
    assert list(ours.state_dict()) == list(theirs.state_dict())
    close(ours.weight_mask, theirs.weight_mask)
    x = np.random.default_rng(0).standard_normal((2, 4))
    a, b = ours(pc.tensor(x)), theirs(torch.tensor(x))
    a.sum().backward()
    b.sum().backward()
    close(a, b)
    close(ours.weight_orig.grad, theirs.weight_orig.grad)
    assert prune.is_pruned(ours)
    prune.remove(ours, "weight")
    their_prune.remove(theirs, "weight")
    assert list(ours.state_dict()) == list(theirs.state_dict())
    close(ours.weight, theirs.weight)
    assert not prune.is_pruned(ours)


def test_global_pruning() -> None:
    ours, theirs = pair("Bilinear", 2, 3, 4)
    more, their_more = pair("Linear", 5, 5)
    prune.l1_unstructured(more, "bias", 2)
    their_prune.l1_unstructured(their_more, "bias", 2)
    for lib, modules in ((prune, (ours, more)), (their_prune, (theirs, their_more))):
        pairs = [(modules[0], "weight"), (modules[1], "weight"), (modules[1], "bias")]
        lib.global_unstructured(pairs, lib.L1Unstructured, amount=0.3)  # type: ignore[attr-defined]
    for own, other in ((ours, theirs), (more, their_more)):
        assert list(own.state_dict()) == list(other.state_dict())
        for a, b in zip(own.buffers(), other.buffers(), strict=True):
            close(a, b)


@pytest.mark.parametrize("amount", [1.5, -1, 100, "half", True])
def test_amounts_are_refused_alike(amount: Any) -> None:
    ours, theirs = pair("Linear", 4, 3)
    kinds = (ValueError, TypeError)
    with pytest.raises(kinds):
        prune.l1_unstructured(ours, "weight", amount)
    if amount is not True:  # torch counts it as one
        with pytest.raises(kinds):
            their_prune.l1_unstructured(theirs, "weight", amount)
    assert sorted(ours.state_dict()) == ["bias", "weight"]


def test_no_public_function_is_missing() -> None:
    import torch.nn.utils.parametrizations as a
    import torch.nn.utils.parametrize as b

    def names(module: Any) -> set[str]:
        public = (name for name in dir(module) if not name.startswith("_"))
        home = "torch.nn.utils"
        return {
            name
            for name in public
            if str(getattr(getattr(module, name), "__module__", "")).startswith(home)
        }

    assert names(torch.nn.utils) <= set(dir(nn.utils))
    assert names(a) <= set(dir(parametrizations)) | {"parametrize"}
    assert names(b) <= set(dir(nn.utils.parametrize))
    assert names(their_prune) <= set(dir(prune))
