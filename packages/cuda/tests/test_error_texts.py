"""Wrong calls of every operator: the same kind of error as on the CPU, for the same operator."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import plait_core as pc
import plait_cuda  # noqa: F401 - brings the device
from plait_abi import operator
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample, Sampler
from plait_ops.spec import ErrorFact, Operator


def is_ready(spec: Operator) -> bool:
    next(iter(draw(spec)), None)  # brings the wrong calls
    return bool(spec.errors) and not spec.internal


OPERATORS = [spec for spec in specs.all() if is_ready(spec)]
INPLACE = [spec for spec in OPERATORS if spec.inplace and "method" in spec.variants]


def outcome(fact: ErrorFact, device: str, call: Callable[[Sample], Any]) -> tuple[str, str]:
    """Return the kind of the error, and its text."""
    sample = fact.call(Sampler()).copied().mapped(lambda x: pc.from_numpy(x).to(device))
    try:
        call(sample)
        if device == "cuda":
            pc.zeros(1, device="cuda").cpu()  # its errors come late
    except Exception as error:
        return type(error).__name__, str(error)
    return "none", ""


def names_of(text: str, forms: bool) -> list[str]:
    """Return the operators that a text begins with; without `forms` not that they were in place."""
    match = re.match(r"(?:\w[\w.]*: )*", text)
    names = match[0].split(": ")[:-1] if match else []
    return names if forms else [name.rstrip("_") for name in names]


def compare(fact: ErrorFact, call: Callable[[Sample, str], Any]) -> None:
    here, there = (
        outcome(fact, device, lambda sample, d=device: call(sample, d))
        for device in ("cpu", "cuda")
    )
    # strides do not survive a copy to the device, and some operators have no kernel there
    if there[0] not in ("none", "NotImplementedError"):
        at_once = "after the call had returned" not in there[1]
        assert there[0] == here[0]
        assert names_of(there[1], at_once) == names_of(here[1], at_once)
        facts = [str(part) for part in fact.contains if str(part) in here[1]]
        assert [part for part in facts if part not in there[1]] == []


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_functions(spec: Operator) -> None:
    has_device = any(argument.name == "device" for argument in spec.schema.arguments)

    def call(sample: Sample, device: str) -> Any:
        more = {"device": device} if has_device else {}
        return operator(spec.name)(*sample.args, **{**more, **sample.kwargs})

    for fact in spec.errors:
        compare(fact, call)


@pytest.mark.parametrize("spec", INPLACE, ids=lambda spec: spec.name)
def test_methods_in_place(spec: Operator) -> None:
    def call(sample: Sample, device: str) -> Any:
        return getattr(sample.args[0], f"{spec.name}_")(*sample.args[1:], **sample.kwargs)

    for fact in spec.errors:
        compare(fact, call)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_composite_in_place(device: str) -> None:
    x = pc.ones(3, device=device)
    with pytest.raises(ValueError, match=r"^nextafter_: shapes"):
        x.nextafter_(pc.ones(4, device=device))


def test_parts_are_named_where_they_have_no_kernel() -> None:
    with pytest.raises(NotImplementedError, match=r"^linalg_eigvals: linalg_eig: no kernel"):
        pc.linalg.eigvals(pc.eye(2, device="cuda"))
    with pytest.raises(RuntimeError, match=r"^linalg_inv: `A` is singular"):
        pc.linalg.inv(pc.zeros(2, 2, device="cuda"))
