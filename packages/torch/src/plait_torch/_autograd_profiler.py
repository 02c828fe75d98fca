"""`torch.autograd.profiler`: the older form of the profiler."""

from __future__ import annotations

from typing import Any

from plait.profiler import profile as _profile

__all__ = ["emit_itt", "emit_nvtx", "profile"]


def __getattr__(name: str) -> Any:
    if name == "_is_profiler_enabled":  # in PyTorch a variable that profilers set
        from plait_torch import _autograd

        return _autograd._profiler_enabled()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class profile(_profile):  # noqa: N801 - PyTorch's name
    """Record operators in a ``with`` block; an older form of `torch.profiler.profile`.

    Args:
        enabled: record nothing if False.
        use_cuda, use_device, use_kineto, use_cpu and others: ignored.
        record_shapes, with_flops, profile_memory, with_stack, with_modules: as in
            `plait.profiler.profile`.

    Example:
        >>> import plait
        >>> from plait_torch._autograd_profiler import profile
        >>> with profile() as p:
        ...     _ = plait.ones(3).exp()
        >>> "exp" in p.key_averages().table()
        True
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = True,
        **others: Any,
    ) -> None:
        self.enabled = enabled
        super().__init__(
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
        )

    def __enter__(self) -> Any:
        return super().__enter__() if self.enabled else self

    def __exit__(self, *error: Any) -> None:
        if self.enabled:
            super().__exit__(*error)


class emit_nvtx:  # noqa: N801 - PyTorch's name
    """A class whose constructor raises: there is no connection to NVTX."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "torch.autograd.profiler.emit_nvtx: ranges are not sent to NVIDIA's tools; use "
            "torch.profiler.profile"
        )


class emit_itt:  # noqa: N801 - PyTorch's name
    """A class whose constructor raises: there is no connection to Intel's tools."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "torch.autograd.profiler.emit_itt: ranges are not sent to Intel's tools; use "
            "torch.profiler.profile"
        )
