"""Graphs of CUDA devices: work that is recorded once, and done again at the cost of one launch."""

from __future__ import annotations

import gc
from typing import Any

from plait_abi import binding
from plait_core.cuda._devices import require_device, synchronize
from plait_core.cuda._memory import empty_cache
from plait_core.cuda._streams import Stream, StreamContext, current_stream


def graph_pool_handle() -> Any:
    """Return a private pool of memory of the current device, which several graphs may share.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> pool = pc.cuda.graph_pool_handle() if pc.cuda.is_available() else None
    """
    return binding.memory_pool(require_device("graph_pool_handle"))


class CUDAGraph:
    """Work of a stream that was recorded, with the addresses of its tensors.

    `graph` records a block of the program; `replay` does it again on what the tensors hold then.
    Random numbers differ from run to run.

    Args:
        keep_graph: accepted as in PyTorch.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     x, recorded = pc.ones(2, device="cuda"), pc.cuda.CUDAGraph()
        ...     with pc.cuda.graph(recorded):
        ...         y = x + 1
        ...     _ = x.fill_(5)
        ...     recorded.replay()
        ...     assert y.tolist() == [6, 6]
    """

    def __init__(self, keep_graph: bool = False) -> None:
        require_device("CUDAGraph")
        self._stream: Any = None  # where the recording began, until it ends
        self._graph: Any = None
        self._pool: Any = None

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Record the work of the current stream from now on.

        Args:
            pool: what `graph_pool_handle` or `pool` of another graph returned; None is a new one.
            capture_error_mode: accepted as in PyTorch; other threads may use the device.

        Raises:
            RuntimeError: if the graph records already, or has recorded.
            ValueError: in the default stream.
        """
        if self._stream is not None or self._graph is not None:
            raise RuntimeError("CUDAGraph: a graph records once; call reset() first")
        stream = current_stream()
        chosen = binding.memory_pool(stream.device) if pool is None else pool
        binding.use_memory_pool(stream, chosen)
        try:
            binding.capture_begin(stream)
        except BaseException:
            binding.use_memory_pool(stream, None)
            raise
        self._stream, self._pool = stream, chosen

    def capture_end(self) -> None:
        """End the recording.

        Raises:
            RuntimeError: if nothing is recorded, or something that cannot be recorded was done.
        """
        stream, self._stream = self._stream, None
        if stream is None:
            raise RuntimeError("CUDAGraph: capture_end() was called without capture_begin()")
        try:
            self._graph = binding.capture_end(stream)
        finally:
            binding.use_memory_pool(stream, None)

    def replay(self) -> None:
        """Do what was recorded, in the current stream.

        Raises:
            RuntimeError: if nothing was recorded.
        """
        if self._graph is None:
            raise RuntimeError("CUDAGraph: nothing was recorded")
        binding.graph_launch(self._graph, current_stream())

    def reset(self) -> None:
        """Forget what was recorded, and give its memory up."""
        self._graph = self._pool = None

    def pool(self) -> Any:
        """Return the pool of the graph's memory, for another graph that runs after this one."""
        return self._pool


class graph:  # noqa: N801 - PyTorch's name
    """A context that records what a program does on the current device.

    Args:
        cuda_graph: where it is recorded.
        pool: as in `CUDAGraph.capture_begin`.
        stream: where it runs; None is a stream of its own.
        capture_error_mode: accepted as in PyTorch.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     recorded = pc.cuda.CUDAGraph()
        ...     with pc.cuda.graph(recorded):
        ...         y = pc.ones(2, device="cuda") * 2
        ...     recorded.replay()
    """

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: binding.Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        self._graph, self._pool = cuda_graph, pool
        self._context = StreamContext(Stream() if stream is None else stream)

    def __enter__(self) -> None:
        synchronize()
        gc.collect()  # memory that goes later would be that of the recording
        empty_cache()
        self._context.__enter__()
        try:
            self._graph.capture_begin(self._pool)
        except BaseException:
            self._context.__exit__(None, None, None)
            raise

    def __exit__(self, *error: Any) -> None:
        try:
            self._graph.capture_end()
        except RuntimeError:
            if error[0] is None:  # else the first error says more
                raise
        finally:
            self._context.__exit__(*error)
