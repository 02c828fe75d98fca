"""`torch.testing._internal.optests`: checks of a program's own operators under PyTorch's compiler.

There is no compiler here whose tracing could be checked, so the tests are made and skipped.
Tests of torchvision's operators use it.
"""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["dontGenerateOpCheckTests", "generate_opcheck_tests", "is_inside_opcheck_mode"]

_REASON = "torch.testing._internal.optests: plait does not trace operators, so nothing is checked"


def dontGenerateOpCheckTests(reason: str) -> Callable[[Any], Any]:  # noqa: N802 - PyTorch's name
    """Mark a test: `generate_opcheck_tests` makes none of it."""

    def mark(test: Any) -> Any:
        test._dont_generate_opcheck_tests = True
        return test

    return mark


def is_inside_opcheck_mode() -> bool:
    """Return whether such a check runs: False."""
    return False


def generate_opcheck_tests(
    testcase: Any,
    namespaces: Sequence[str],
    failures_dict_path: str | None = None,
    additional_decorators: Any = None,
    test_utils: Sequence[str] = (
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
    ),
) -> None:
    """Give a class of tests, for each of its tests and each check, a test that is skipped.

    Example:
        >>> from plait_torch._optests import generate_opcheck_tests
        >>> class TestOperator:
        ...     def test_values(self):
        ...         pass
        >>> generate_opcheck_tests(TestOperator, ["mine"], test_utils=["test_schema"])
        >>> hasattr(TestOperator, "test_schema__test_values")
        True
    """
    for name in [each for each in dir(testcase) if each.startswith("test_")]:
        test = getattr(testcase, name)
        if getattr(test, "_dont_generate_opcheck_tests", False) or not callable(test):
            continue
        for check in test_utils:

            @functools.wraps(test)
            def skipped(self: Any, *args: Any, **kwargs: Any) -> None:
                raise unittest.SkipTest(_REASON)

            skipped.__name__ = f"{check}__{name}"
            setattr(testcase, skipped.__name__, skipped)
