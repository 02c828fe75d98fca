"""The words of Fourier transforms. Like those of `plait_ops.words` they have C++ versions of the
same name.
"""

from __future__ import annotations

from plait_ops import promotion
from plait_ops.value_types import AnyDType, Shape
from plait_ops.words import check, reduce_dims, word

__all__ = ["fft_dims", "fft_dtype", "fft_norm", "fft_sizes", "fft_swapped", "fft_whole"]

NORMS = ("backward", "ortho", "forward")


@word(on_call=True)
def fft_norm(norm: str | None) -> str:
    """Return the name of a normalisation, by default "backward"."""
    name = "backward" if norm is None else norm
    check(
        name in NORMS,
        f'`norm` must be "backward", "ortho" or "forward"; got "{name}"',
        "ValueError",
    )
    return name


@word(on_call=True)
def fft_swapped(norm: str | None) -> str:
    """Return the normalisation of the transform in the other direction that equals this one."""
    name = fft_norm(norm)
    return {"backward": "forward", "forward": "backward"}.get(name, name)


@word(on_call=True)
def fft_dtype(dtype: AnyDType) -> AnyDType:
    """Return the dtype of the transform: integers and halves become floats."""
    name = str(dtype)
    if name in promotion.HALF:
        return "float32"
    return promotion.DEFAULT if promotion.category(name) < 2 else name


@word(on_call=True)
def fft_dims(shape: Shape, s: Shape | None, dim: Shape | None) -> list[int]:
    """Return the dimensions to transform, counted from the front: `dim`, or as many of the last
    as `s` has sizes, or all.
    """
    if dim is not None:
        if s is not None:
            check(
                len(s) == len(dim),
                f"`s` and `dim` must have the same length; got {tuple(s)} and {tuple(dim)}",
                "ValueError",
            )
        return reduce_dims("dim", dim, shape) if len(dim) else []
    if s is None:
        return list(range(len(shape)))
    check(
        len(s) <= len(shape),
        f"`s` {tuple(s)} must have at most as many sizes as there are dimensions in shape "
        f"{tuple(shape)}",
    )
    return list(range(len(shape) - len(s), len(shape)))


@word(on_call=True)
def fft_sizes(shape: Shape, s: Shape | None, dims: Shape) -> list[int]:
    """Return the size of each of `dims` that is transformed: that of `s`, or of the shape where
    `s` is None or -1.
    """
    sizes = []
    for i, d in enumerate(dims):
        check(d < len(shape), f"`dim` {d} names no dimension of shape {tuple(shape)}", "IndexError")
        requested = -1 if s is None else s[i]
        size = shape[d] if requested == -1 else requested
        check(
            size >= 1,
            f"dimension {d} of shape {tuple(shape)} must have at least 1 element to transform; got "
            f"{size}",
            "ValueError",
        )
        sizes.append(size)
    return sizes


@word(on_call=True)
def fft_whole(shape: Shape, dim: Shape, norm: str) -> None:
    """Fail unless `shape` can be transformed over `dim` without padding."""
    fft_norm(norm)
    check(len(dim) > 0, "`dim` must have at least 1 dimension; got ()", "ValueError")
    fft_sizes(shape, None, reduce_dims("dim", dim, shape))
