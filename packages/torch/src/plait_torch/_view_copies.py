"""`torch.view_copy` and its kin: functions that return a copy where another returns a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait
from plait_torch._tensor_arguments import require_tensor

__all__ = ["slice_copy"]

# PyTorch's name without "_copy", and plait's view
_VIEWS: dict[str, Callable[..., Any]] = {
    "alias": lambda x: x,
    "detach": lambda x: x.detach(),
    "split_with_sizes": lambda x, split_sizes, dim=0: plait.split(x, split_sizes, dim),
    **{
        name: lambda x, *args, _name=name, **options: getattr(x, _name)(*args, **options)
        for name in (
            "as_strided",
            "diagonal",
            "expand",
            "permute",
            "select",
            "split",
            "squeeze",
            "t",
            "transpose",
            "unbind",
            "unfold",
            "unsqueeze",
            "view",
        )
    },
    **{name: getattr(plait, name) for name in ("view_as_complex", "view_as_real")},
}


def _written(result: Any, out: Any) -> Any:
    if out is None:
        return result
    if isinstance(out, plait.Tensor):
        plait.add(result, 0, out=out) if result.dtype != out.dtype else out.resize_(
            result.shape
        ).copy_(result)
        return out
    for target, part in zip(out, result, strict=True):
        _written(part, target)
    return None


def _of_view(name: str, view: Callable[..., Any]) -> Callable[..., Any]:
    def copy(input: Any, *args: Any, out: Any = None, **options: Any) -> Any:
        require_tensor(copy.__name__, "input", input)
        result = view(input, *args, **options)
        if isinstance(result, plait.Tensor):
            return _written(result.clone(memory_format=plait.contiguous_format), out)
        parts = [part.clone(memory_format=plait.contiguous_format) for part in result]
        return _written(tuple(parts) if name == "unbind" else parts, out)

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__doc__ = f"Return what ``{name}`` shows of the input, in memory of its own."
    return copy


for _name, _view in _VIEWS.items():
    globals()[f"{_name}_copy"] = _of_view(_name, _view)
    __all__.append(f"{_name}_copy")


def slice_copy(
    input: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """Return a copy of the indices ``start:end:step`` of a dimension.

    Example:
        >>> import plait
        >>> from plait_torch._view_copies import slice_copy
        >>> slice_copy(plait.arange(10), 0, 2, 9, 3)
        tensor([2, 5, 8])
    """
    require_tensor("slice_copy", "input", input)
    index = (slice(None),) * (dim % input.ndim) + (slice(start, end, step),)
    return input[index].clone(memory_format=plait.contiguous_format)
