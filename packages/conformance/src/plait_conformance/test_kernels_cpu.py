"""Role ``kernels.cpu``: the tests of every kernel."""

from __future__ import annotations

from typing import Any

from plait_conformance._cases import Case
from plait_conformance._checks import (
    check_error,
    check_inplace,
    check_layouts,
    check_out,
    check_unpredictable,
    check_values,
)
from plait_conformance._kernels import Registered, check_serves
from plait_ops.spec import ErrorFact, Operator


def test_values(case: Case) -> None:
    check_values(case)


def test_layouts(case: Case) -> None:
    check_layouts(case)


def test_out(case: Case) -> None:
    check_out(case)


def test_inplace(case: Case) -> None:
    check_inplace(case)


def test_unpredictable(draw_case: Case) -> None:
    check_unpredictable(draw_case)


def test_errors(operator: Operator, fact: ErrorFact, sample: Any) -> None:
    check_error(operator, fact, sample)


def test_serves(kernel: Registered) -> None:
    check_serves(kernel)
