"""Test data of the operators, one module a family, in the folders of `plait_ops.specs`: references
in NumPy, sample calls, errors. Only tests and the conformance kit load it.

Example:
    >>> from plait_ops import samples, specs
    >>> relu = specs.find("relu")
    >>> next(samples.draw(relu)).args[0].shape
    (2, 3)
"""

from __future__ import annotations

from plait_ops.samples.drawing import draw, error_facts, joints, load

__all__ = ["draw", "error_facts", "joints", "load"]
