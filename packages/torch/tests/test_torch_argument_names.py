"""Functions called with all arguments by PyTorch's names, from a table of its signatures."""

from __future__ import annotations

import json
import pathlib
import warnings
from typing import Any

import pytest

MODULES = json.loads(
    pathlib.Path(__file__).with_name("torch_argument_names.json").read_text(encoding="utf-8")
)


def _values(torch: Any) -> dict[str, Any]:
    """Return a value for each letter of the table."""
    tensor = torch.ones(2, 2)
    return {
        "t": tensor, "c": tensor > 0, "l": (tensor,), "s": (1,), "n": (1.0,), "N": None,
        "b": False, "i": 1, "f": 0.5, "w": "mean",
    }  # fmt: skip


def _calls(signature: str) -> list[list[str]]:
    """Return the required arguments, ``name:letter``, and these with each optional one."""
    words = signature.split()
    required = [word for word in words if ":" in word]
    return [required, *([*required, word.replace("?", ":")] for word in words if "?" in word)]


@pytest.mark.parametrize("module", MODULES)
def test_names(torch: Any, module: str) -> None:
    """A value may be refused, but no name: errors of values are no plain TypeError."""
    values, refused, count = _values(torch), [], 0
    namespace = eval(module, {"torch": torch})
    for names, signatures in MODULES[module].items():
        for name in names.split():
            function = getattr(namespace, name)
            for signature in signatures.split("; "):
                for call in _calls(signature):
                    keywords = dict(word.split(":") for word in call)
                    keywords = {key: values[letter] for key, letter in keywords.items()}
                    args = (torch.ones(2, 2),) if module == "torch.Tensor" else ()
                    count += 1
                    try:
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            function(*args, **keywords)
                    except TypeError as error:
                        if not isinstance(error, RuntimeError):
                            refused.append(f"{name}({', '.join(call)}): {error}")
                    except Exception:
                        pass
    assert count > 30 and not refused, "\n".join(refused)


def test_values_by_other_names(torch: Any) -> None:
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    assert torch.where(condition=x > 1, input=x, other=y).tolist() == [3.0, 2.0]
    assert torch.where(x > 1, input=x, other=7).tolist() == [7.0, 2.0]
    assert torch.sub(x1=x, x2=y).tolist() == torch.sub(a=x, other=y).tolist() == [-2.0, -3.0]
    assert torch.cumsum(x=x, axis=0).tolist() == [1.0, 3.0]
    assert torch.any(x[None] > 1, keepdim=True).tolist() == [[True]]
    assert torch.linalg.vector_norm(input=y, ord=1).item() == 8.0
    assert x.new(size=(2, 3)).shape == (2, 3) and x.new(other=y).tolist() == [3.0, 5.0]
    assert torch.zeros(4).resize_(size=(2, 2)).shape == (2, 2)
    with pytest.raises(TypeError, match="size"):
        x.resize_(2, size=(2,))
    with pytest.raises(TypeError, match=r"twice|unexpected|no form"):
        torch.add(x, input=x, other=y)


def test_arguments_of_operators(torch: Any) -> None:
    x = torch.tensor([[1.0, 3.0], [5.0, 9.0]])
    functional = torch.nn.functional
    normed = torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    assert torch.equal(normed, functional.batch_norm(x, None, None, training=True))
    assert torch.equal(
        torch.layer_norm(x, (2,), None, None, 1e-5, False), torch.layer_norm(x, (2,))
    )
    assert torch.equal(torch.group_norm(x, 1, None, None, 1e-5, False), torch.group_norm(x, 1))
    rows = torch.tensor([1, 0])
    weight = x.clone().requires_grad_()
    torch.embedding(weight, rows, -1, False, True).sum().backward()
    assert weight.grad.is_sparse
    assert torch.nuclear_norm(torch.eye(3)[None], dim=(1, 2)).tolist() == [3.0]
    LU, pivots = torch.linalg.lu_factor(x)
    P, L, U = torch.lu_unpack(LU, pivots)
    assert torch.allclose(P @ L @ U, x)
    parts = torch.lu_unpack(LU_data=LU, LU_pivots=pivots, unpack_pivots=False)
    assert parts.P.numel() == 0 and torch.equal(parts.U, U)
