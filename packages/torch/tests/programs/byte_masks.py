"""Masks of uint8, the dtype that masks had before there was bool."""

import itertools

import numpy as np
import torch


def byte(*values):
    return torch.tensor(values, dtype=torch.uint8)


x, table = torch.tensor([10.0, 20.0, 30.0]), torch.arange(6.0).reshape(2, 3)
mask, rows = byte(0, 1, 1), byte(1, 0)
square = torch.tensor([[1, 0, 2], [0, 0, 7]], dtype=torch.uint8)
KEYS = {
    "mask": mask, "rows": rows, "square": square, "large": byte(1, 2, 0), "none": byte(0, 0, 0),
    "pair": (rows, mask), "column": (slice(None), mask), "dots": (..., mask), "row": (0, mask),
    "new": (None, slice(None), mask), "with index": (rows, torch.tensor([2])), "empty": byte(),
    "numpy": mask.numpy(), "true": byte(1)[0], "false": byte(0)[0], "inverse": 1 - mask,
    "complement": ~mask, "comparison": mask == 1,
}  # fmt: skip


def outcome(call):
    try:
        return call().tolist()
    except (IndexError, RuntimeError, TypeError, ValueError):
        return "refused"


def written(data, key, value):
    data = data.clone()
    data[key] = value
    return data


for (name, key), (what, data) in itertools.product(KEYS.items(), (("x", x), ("table", table))):
    print(what, name, outcome(lambda data=data, key=key: data[key]))
    count = data[key].numel() if outcome(lambda data=data, key=key: data[key]) != "refused" else 0
    values = torch.arange(100.0, 100.0 + count)
    if count > 1 and name not in ("true", "new"):
        values = values.reshape(data[key].shape)
        print("  written", outcome(lambda d=data, k=key, v=values: written(d, k, v)))

for name, key in (("mask", (mask,)), ("rows", (byte(1, 1, 0),)), ("index", (torch.tensor([0]),))):
    values = torch.arange(1.0, 1.0 + len(x[key]))
    for accumulate in (True, False):
        print(name, x.index_put(key, values, accumulate).tolist())
        print(name, x.clone().index_put_(key, values, accumulate=accumulate).tolist())
        print(name, torch.index_put(x, key, values, accumulate).tolist())
        print(name, torch.index_put_(x.clone(), key, values, accumulate).tolist())
        print(name, torch.ops.aten.index_put(x, key, values, accumulate).tolist())
        print(name, torch.ops.aten.index_put_(x.clone(), key, values, accumulate).tolist())
one = np.uint8(1)  # a number, as an int is
print(x[one].tolist(), table[one].tolist(), table[one, np.uint8(0)].tolist())
print(written(table, one, 7.0).tolist(), table[:, one].tolist(), outcome(lambda: x[[one, one]]))
leaf = torch.ones(3, requires_grad=True)
(leaf[mask] * 2).sum().backward()
print(leaf.grad.tolist())

zeros = torch.zeros(3)
print(torch.where(mask, x, -x).tolist(), x.where(mask, zeros).tolist())
print(torch.where(mask, 1.0, 0.0).tolist(), [i.tolist() for i in torch.where(mask)])
print(torch.where(square, table, -table).tolist(), np.asarray(x)[np.asarray(mask) == 1].tolist())
