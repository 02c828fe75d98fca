"""Graphs of CUDA devices: work that is recorded once, and done again at the cost of one launch."""

from __future__ import annotations

import gc
from typing import Any

from plait_abi import binding
from plait_core import accelerator
from plait_core.cuda._devices import require_device
from plait_core.cuda._streams import Stream, current_stream


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
        self._graph = accelerator.Graph()

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Record the work of the current stream from now on.

        Args:
            pool: what `graph_pool_handle` or `pool` of another graph returned; None is a new one.
            capture_error_mode: accepted as in PyTorch; other threads may use the device.

        Raises:
            RuntimeError: if the graph records already, or has recorded.
            ValueError: in the default stream.
        """
        self._use_pool(pool)
        self._graph.begin(current_stream())

    def _use_pool(self, pool: Any) -> None:
        if pool is not None and self._graph.pool is None:
            self._graph = accelerator.Graph(pool)

    def capture_end(self) -> None:
        """End the recording.

        Raises:
            RuntimeError: if nothing is recorded, or something that cannot be recorded was done.
        """
        self._graph.end()

    def replay(self) -> None:
        """Do what was recorded, in the current stream of the device where it was recorded.

        Raises:
            RuntimeError: if nothing was recorded.
        """
        self._graph.replay()

    def reset(self) -> None:
        """Forget what was recorded, and give its memory up."""
        self._graph.reset()

    def instantiate(self) -> None:
        """Do nothing: `capture_end` has made what `replay` starts."""

    def enable_debug_mode(self) -> None:
        """Do nothing: `debug_dump` is not available."""

    def debug_dump(self, debug_path: str) -> None:
        """Refuse to write the graph to a file.

        Raises:
            NotImplementedError: always; a profile of `replay` shows what runs.
        """
        raise NotImplementedError(
            "CUDAGraph.debug_dump: plait writes no graph to a file; a profile of `replay` shows it"
        )

    def pool(self) -> Any:
        """Return the pool of the graph's memory, for another graph that runs after this one."""
        return self._graph.pool


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
        cuda_graph._use_pool(pool)
        self._context = cuda_graph._graph.capture(Stream() if stream is None else stream)

    def __enter__(self) -> None:
        gc.collect()  # memory that goes later would be that of the recording
        self._context.__enter__()

    def __exit__(self, *error: Any) -> Any:
        return self._context.__exit__(*error)
