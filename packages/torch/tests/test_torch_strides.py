"""Strides of results are PyTorch's, whatever the order of the operands in memory.

`torch_strides.json` has, for each expression, PyTorch 2.13's strides for all orders, null where
PyTorch refuses the call. Some operators write their result in C order where PyTorch keeps another;
the record lists them.
"""

from __future__ import annotations

import json
import pathlib
import warnings
from typing import Any

_SHAPE = (2, 3, 4, 5)
# of memory; "mixed": the second operand is in C order, the first is channels_last
_ORDERS = ("rows", "columns", "channels_last", "reversed", "expanded", "sliced", "mixed")


def _ordered(values: Any, order: str) -> Any:
    """Return a tensor of the shape and the order; the values matter to no stride."""
    if order == "columns":
        return values.transpose(2, 3).contiguous().transpose(2, 3)
    if order in ("channels_last", "mixed"):
        return values.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    if order == "reversed":
        return values.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    if order == "expanded":
        return values[:, :1].expand(_SHAPE)
    if order == "sliced":
        return values.repeat_interleave(2, 3)[..., ::2]
    return values.clone()


def _operands(torch: Any, order: str) -> dict[str, Any]:
    """Return the names of the expressions, with `x` in an order of memory."""
    values = (torch.arange(120.0) * 7 % 11 / 12 + 0.04).reshape(_SHAPE)
    x = _ordered(values, order)
    y = values.flip(0) if order == "mixed" else _ordered(values.flip(0), order)
    return {
        "torch": torch, "x": x, "y": y, "i": torch.tensor([0, 1]),
        "g": (torch.arange(120) % 3).reshape(_SHAPE), "w": torch.ones(4, 3, 2, 2),
    }  # fmt: skip


def _strides(torch: Any, expression: str, order: str) -> str:
    """Return the strides of the first result, or the kind of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eval(expression, _operands(torch, order))
    while not isinstance(result, torch.Tensor):
        result = result[0]
    return ",".join(map(str, result.stride()))


def test_strides(torch: Any) -> None:
    path = pathlib.Path(__file__).with_name("torch_strides.json")
    record = json.loads(path.read_text("utf-8"))
    wrong, count = [], 0
    for expression, strides in record["strides"].items():
        for order, expected in zip(_ORDERS, strides, strict=True):
            if expected is None:
                continue
            count += 1
            result = _strides(torch, expression, order)
            if expression in record["in C order here"]:
                numbers = [int(each) for each in result.split(",")]
                if numbers == sorted(numbers, reverse=True):
                    continue
            if result != expected:
                wrong.append(f"{expression}, {order}: {result}, not {expected}")
    assert len(record["in C order here"]) < 80  # the list does not grow
    assert count > 3000 and not wrong, "\n".join(wrong)
