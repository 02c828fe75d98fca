"""What the graphs of one model share: tensors, functions, versions of operators."""

from __future__ import annotations

from typing import Any

from plait_core import Tensor
from plait_onnx._import._errors import text
from plait_onnx._import._program import Program
from plait_onnx._import._registry import DOMAINS
from plait_onnx._import._tensors import ExternalData, host_of

__all__ = ["Builder", "versions"]

_SMALL = 256  # elements of a constant that is kept in the host's memory, too


class Builder:
    """What the graphs of one model share.

    Attributes:
        opsets: Versions by domain.
        functions: The model's own functions, by domain, name and overload.
        leaves: Tensors of initializers and constants, by their keys.
        kinds: "parameter", "buffer" or "constant" for each of them.
        arrays: Their values in the host's memory, if they are small.
    """

    def __init__(self, model: Any, external: ExternalData, limit: int) -> None:
        self.opsets = versions(model.opset_import)
        self.external = external
        self.limit = limit
        self.functions = {
            (DOMAINS.get(text(f.domain), f.domain), text(f.name), getattr(f, "overload", "")): f
            for f in model.functions
        }
        self.leaves: dict[str, Tensor] = {}
        self.kinds: dict[str, str] = {}
        self.arrays: dict[str, Any] = {}
        self.programs: dict[Any, Program] = {}  # of functions
        self.active: set[Any] = set()  # functions whose programs are being made
        self._counts: dict[str, int] = {}

    def add_leaf(self, name: str, tensor: Tensor, kind: str) -> str:
        """Add a tensor; return its key, the name or one like it."""
        key = name = name or "constant"
        while key in self.leaves:
            self._counts[name] = self._counts.get(name, 1) + 1
            key = f"{name}_{self._counts[name]}"
        self.leaves[key] = tensor
        self.kinds[key] = kind
        if tensor.numel() <= _SMALL and tensor.ndim <= 2 and not tensor.is_complex():
            self.arrays[key] = host_of(tensor)
        return key


def versions(imports: Any) -> dict[str, int]:
    """Return versions by domain."""
    return {DOMAINS.get(text(o.domain), o.domain): o.version for o in imports}
