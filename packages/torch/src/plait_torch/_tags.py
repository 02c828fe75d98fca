"""`torch.Tag`: words that a definition of an operator carries."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Tag"]

_NAMES = """core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout
generated inplace inplace_view maybe_aliasing_or_mutating needs_contiguous_strides
needs_exact_strides needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out
out_variant pointwise pt2_compliant_tag reduction view_copy"""

Tag = IntEnum("Tag", _NAMES, module=__name__, start=0)  # type: ignore[misc]
Tag.__doc__ = """What is said of an operator: that it draws random numbers, or works by elements.

Example:
    >>> from plait_torch._tags import Tag
    >>> Tag.pointwise.name
    'pointwise'
"""
