"""Which kernels are under test, and whether they take part at all."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

import plait_abi
from plait_conformance._checks import call
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.spec import Operator


@dataclasses.dataclass(frozen=True)
class Registered:
    """The kernels that one provider registered for one operator, watched from now on."""

    provider: str
    name: str
    probe: plait_abi.Probe

    def __str__(self) -> str:
        return f"{self.provider}-{self.name}"

    @property
    def operator(self) -> Operator | None:
        """The operator's spec; None for one that the provider defines itself."""
        return next((operator for operator in specs.all() if operator.name == self.name), None)


def registered(provider: str | None = None) -> Iterator[Registered]:
    """Watch the kernels for the CPU of a provider, or (None) those that the runtime tries first."""
    result = {
        record.name: record.provider
        for record in plait_abi.records()
        if record.kind == "kernel"
        and (record.active if provider is None else record.provider == provider)
    }
    for name, owner in result.items():
        try:
            probe = plait_abi.Probe(name, owner)
        except ValueError:  # it has none for the CPU
            continue
        yield Registered(owner, name, probe)


def check_serves(kernel: Registered) -> None:
    """The kernel is called, accepts calls, and writes results.

    All calls since the registration count, of other tests and by other operators. Where none was
    accepted so far, the operator's samples are called first; whether their results are right is the
    other tests' concern.
    """
    operator = kernel.operator
    if operator is None:
        pytest.skip(f"the kit has no samples of {kernel.name}, which {kernel.provider} defines")
    if not kernel.probe.counts.accepted:
        for sample in draw(operator):
            try:
                call(operator, sample.args, sample.kwargs)
            except Exception:
                continue
    counts = kernel.probe.counts
    label = f"{kernel.provider}: its kernel of {kernel.name}"
    assert counts.calls, (
        f"{label} was never called: kernels before it took all calls, or the "
        "runtime does not ask for one here"
    )
    assert counts.accepted, (
        f"{label} accepted none of {counts.calls} calls: it declined {counts.declined} and failed "
        f"in {counts.failed}; a kernel that serves nothing must not be registered"
    )
    has_free_results = operator.unpredictable and not operator.random  # empty() may write nothing
    assert has_free_results or not counts.poisoned or counts.untouched < counts.poisoned, (
        f"{label} returned PLAIT_OK {counts.poisoned} times and never wrote a result"
    )
