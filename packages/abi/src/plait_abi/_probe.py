"""Counts of the calls of an operator that a provider's kernels accept, decline or fail."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from plait_abi import binding


class Counts(NamedTuple):
    """The outcomes of calls: every one was accepted, declined, or failed with an error.

    ``poisoned`` counts those accepted ones whose results had been filled with bytes that no
    operator gives, and ``untouched`` those of them that still had these bytes afterwards.

    Example:
        >>> import plait_abi
        >>> counts = plait_abi.Counts(3, 2, 1, 0, poisoned=2, untouched=0)
        >>> counts.accepted, counts.declined
        (2, 1)
    """

    calls: int
    accepted: int
    declined: int
    failed: int
    poisoned: int
    untouched: int


class Probe(AbstractContextManager["Probe"]):
    """Watches the kernels of one provider for one operator until `close`, or for a ``with`` block.

    Kernels are called in their order, as without a probe. Before that, results in memory that no
    argument shares are filled with bytes that no operator gives: a kernel that reads them, or
    leaves some as they are, gives wrong results. If every kernel declines, they are called once
    more, which is not counted.

    Args:
        name: the operator, ``"exp"``, or one overload of several, ``"max.dim"``.
        provider: the plug-in whose kernels are watched, as `records` names it.
        device: the kind of device that they are for.

    Raises:
        AttributeError: if there is no such operator.
        ValueError: if the provider has no kernel for it.

    Example:
        >>> import numpy as np, plait_abi, plait_core as pc
        >>> def exp(x, out):
        ...     if x.ndim == 0:
        ...         return NotImplemented
        ...     np.exp(x.numpy(), out=out.numpy())
        >>> with plait_abi.kernel("exp", exp), plait_abi.Probe("exp", exp.__module__) as probe:
        ...     print(pc.exp(pc.tensor(0.0)), pc.exp(pc.tensor([0.0])))
        tensor(1.) tensor([1.])
        >>> probe.counts
        Counts(calls=2, accepted=1, declined=1, failed=0, poisoned=1, untouched=0)
    """

    def __init__(self, name: str, provider: str, device: Any = "cpu") -> None:
        self._text = f"<probe of {provider} for {name}>"
        self._registered = binding.probe(name, provider, device)

    def __repr__(self) -> str:
        return self._text

    @property
    def counts(self) -> Counts:
        """The counts so far."""
        return Counts(*binding.probe_counts(self._registered))

    def close(self) -> None:
        """Stop watching. A second time nothing happens; the counts stay."""
        binding.probe_close(self._registered)

    def __exit__(self, *exception: object) -> None:
        self.close()
