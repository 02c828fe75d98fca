"""What the programs share: weights by a formula, and a record of what they computed."""

from __future__ import annotations

import atexit
import json
import os
from typing import Any

import numpy as np
import torch

__all__ = ["array", "fill", "gradients", "record"]

KEPT = 64  # elements of a large tensor, evenly spaced
_records: dict[str, dict[str, Any]] = {}


def array(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return standard normal numbers that are the same with every library."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def fill(module: torch.nn.Module) -> torch.nn.Module:
    """Give every parameter values that depend on its place and shape alone; return the module."""
    with torch.no_grad():
        for index, (name, parameter) in enumerate(module.named_parameters()):
            values = np.random.default_rng(index).uniform(-1, 1, tuple(parameter.shape))
            if parameter.ndim >= 2:
                values = values * (3 * parameter.shape[0] / max(parameter.numel(), 1)) ** 0.5
            else:
                values = 0.1 * values + (1.0 if name.endswith("weight") else 0.0)
            parameter.copy_(torch.from_numpy(np.asarray(values)).to(parameter.dtype))
    return module


def gradients(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the sum of magnitudes of each parameter's gradient."""
    results = {name: parameter.grad for name, parameter in module.named_parameters()}
    return {name: grad.detach().abs().sum() for name, grad in results.items() if grad is not None}


def record(name: str, value: Any, rtol: float = 1e-3, atol: float = 1e-5) -> None:
    """Keep ``value`` for the comparison: numbers, texts, tensors, and dicts and lists of them.

    Args:
        name: what it is, once per program.
        value: floats are compared within ``rtol`` of the largest of them and ``atol``, everything
            else must be equal.
        rtol: relative to the largest magnitude of the tensor.
        atol: absolute.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            record(f"{name}.{key}", item, rtol, atol)
        return
    if isinstance(value, (list, tuple)) and any(
        isinstance(item, (torch.Tensor, dict, list, tuple)) for item in value
    ):
        for key, item in enumerate(value):
            record(f"{name}.{key}", item, rtol, atol)
        return
    if name in _records:
        raise ValueError(f"{name} is recorded twice")
    if value is None or isinstance(value, str):
        _records[name] = {"kind": "text", "values": [str(value)]}
        return
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value.float() if value.dtype in (torch.float16, torch.bfloat16) else value).numpy()
    _records[name] = {"rtol": rtol, "atol": atol, **_summary(np.asarray(value))}


def _summary(values: np.ndarray) -> dict[str, Any]:
    shape = list(values.shape)
    if values.dtype.kind == "c":
        values = np.stack([values.real, values.imag], -1)
    flat = values.reshape(-1)
    places = np.unique(np.linspace(0, flat.size - 1, min(flat.size, KEPT)).astype(int))
    if flat.dtype.kind in "biu":
        references = [int(item) for item in flat[places]]
        return {"kind": "exact", "shape": shape, "values": [*references, int(flat.sum())]}
    if flat.dtype.kind in "UO":
        return {"kind": "text", "shape": shape, "values": [str(item) for item in flat[places]]}
    flat = flat.astype(np.float64)
    largest = float(np.abs(flat[np.isfinite(flat)]).max(initial=0.0))
    norm = float(np.sqrt(np.square(flat).sum()))
    references = [float(item) for item in flat[places]]
    return {"kind": "float", "shape": shape, "values": references, "largest": largest, "norm": norm}


def _write() -> None:
    path = os.environ.get("PROGRAM_RECORD")
    if path:
        with open(path, "w") as file:
            json.dump(_records, file)
        return
    for name, entry in _records.items():
        print(name, entry.get("shape", ""), entry["values"][:6])


atexit.register(_write)
