"""One stage of a pipeline: some layers, their inputs, and the outputs for the next stage."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any

from plait_abi.components import require
from plait_distributed._arguments import core
from plait_distributed._messages import irecv, isend, recv
from plait_distributed._process_group import ProcessGroup
from plait_distributed._work import Work
from plait_distributed._world import member_of

_HEADER = 1024  # bytes that describe the tensors of a batch
_MOST = 64  # tensors of a batch
_DESCRIPTION, _ACTIVATION, _GRADIENT = range(3)


def _tag(kind: int, chunk: int, tensor: int = 0) -> int:
    return (chunk * _MOST + tensor) * 3 + kind


class PipelineStage:
    """The layers of a model that one rank computes.

    Args:
        submodule: the layers; they take what those of the stage before return.
        stage_index: the position of the stage, from 0.
        num_stages: as many as the group has ranks; stage i is on the group's rank i.
        device: must be the CPU.
        input_args, output_args: unused; the first batch tells each stage the shapes.
        dw_builder: must be None.
        group: the ranks of the stages; None: all processes.

    Raises:
        ValueError: the numbers do not fit the group.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
        >>> from plait_distributed.pipelining import PipelineStage, ScheduleGPipe
        >>> dist.init_process_group(init_method="shm:stage", rank=0, world_size=1)
        >>> stage = PipelineStage(nn.Linear(2, 1), 0, 1, "cpu")
        >>> stage.is_first, stage.is_last
        (True, True)
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        submodule: Any,
        stage_index: int,
        num_stages: int,
        device: Any = "cpu",
        input_args: Any = None,
        output_args: Any = None,
        group: Any = None,
        dw_builder: Any = None,
    ) -> None:
        result = member_of("PipelineStage", group)
        if result is None:
            raise ValueError("PipelineStage: this process is not a member of the group")
        if str(device).partition(":")[0] != "cpu":
            raise NotImplementedError(f"PipelineStage: `device` must be 'cpu', got {device!r}")
        if dw_builder is not None:
            raise NotImplementedError("PipelineStage: `dw_builder` must be None")
        self.group: ProcessGroup = result
        if num_stages != result.size():
            raise ValueError(
                f"PipelineStage: `num_stages` must be the number of ranks, {result.size()}; got "
                f"{num_stages}"
            )
        if stage_index != result.rank():
            raise ValueError(
                f"PipelineStage: `stage_index` must be this process's rank, {result.rank()}; got "
                f"{stage_index}"
            )
        self.submod = submodule
        self.stage_index, self.num_stages = stage_index, num_stages
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self._input_descriptions: dict[int, list[dict[str, Any]]] = {}  # by chunk
        self._output_descriptions: dict[int, list[dict[str, Any]]] = {}
        self._inputs: dict[int, tuple[Any, ...]] = {}
        self._outputs: dict[int, tuple[Any, ...]] = {}
        self._sent: list[tuple[Work, Any]] = []  # messages under way, with their tensors

    # ---- messages --------------------------------------------------------------------------------

    def _send(self, tensor: Any, stage: int, tag: int) -> None:
        dense = tensor.detach().contiguous()
        work = isend(dense, group=self.group, group_dst=stage, tag=tag)
        assert work is not None
        self._sent.append((work, dense))

    def flush(self) -> None:
        """Wait until all messages that were sent have arrived."""
        sent, self._sent = self._sent, []
        for work, _ in sent:
            work.wait()

    def forget(self) -> None:
        """Drop the inputs, outputs and messages of a step that failed."""
        self._inputs, self._outputs, self._sent = {}, {}, []

    def _describe(self, chunk: int, outputs: Sequence[Any]) -> None:
        """Send the next stage the shapes of the outputs, once; later ones must have the same."""
        description = [
            {"shape": list(x.shape), "dtype": str(x.dtype), "grad": bool(x.requires_grad)}
            for x in outputs
        ]
        known = self._output_descriptions.get(chunk)
        if known is None:
            self._output_descriptions[chunk] = description
            text = json.dumps(description).encode()
            if len(description) > _MOST or len(text) > _HEADER:
                raise ValueError(f"PipelineStage: {len(description)} outputs are too many")
            data = bytearray(text.ljust(_HEADER))
            header = core().frombuffer(data, dtype=core().uint8)
            self._send(header, self.stage_index + 1, _tag(_DESCRIPTION, chunk))
        elif known != description:
            raise ValueError(
                f"PipelineStage: stage {self.stage_index} gave {description} for micro-batch "
                f"{chunk}, and {known} before; make a new stage for other shapes, or for training "
                "after eval()"
            )

    def _receive(self, chunk: int) -> tuple[Any, ...]:
        previous = self.stage_index - 1
        if chunk not in self._input_descriptions:
            header = core().empty(_HEADER, dtype=core().uint8)
            recv(header, group=self.group, group_src=previous, tag=_tag(_DESCRIPTION, chunk))
            self._input_descriptions[chunk] = json.loads(header.numpy().tobytes())
        tensors, works = [], []
        for i, text in enumerate(self._input_descriptions[chunk]):
            dtype = getattr(core(), text["dtype"].rpartition(".")[2])
            tensor = core().empty(text["shape"], dtype=dtype)
            tag = _tag(_ACTIVATION, chunk, i)
            works.append(irecv(tensor, group=self.group, group_src=previous, tag=tag))
            tensors.append(tensor)
        for work in works:
            assert work is not None
            work.wait()
        for tensor, text in zip(tensors, self._input_descriptions[chunk], strict=True):
            tensor.requires_grad = text["grad"]
        return tuple(tensors)

    # ---- a micro-batch ---------------------------------------------------------------------------

    def forward(self, chunk: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compute a micro-batch, and send its outputs to the next stage."""
        inputs = args if self.is_first else self._receive(chunk)
        result = self.submod(*inputs, **kwargs)
        if self.is_last:
            self._inputs[chunk] = inputs
            return result
        outputs = tuple(result) if isinstance(result, (list, tuple)) else (result,)
        for x in outputs:
            if not hasattr(x, "requires_grad"):
                raise TypeError(
                    f"PipelineStage: stage {self.stage_index} must return tensors, got "
                    f"{type(x).__name__}"
                )
        self._describe(chunk, outputs)
        for i, x in enumerate(outputs):
            self._send(x, self.stage_index + 1, _tag(_ACTIVATION, chunk, i))
        if require("autograd").is_grad_enabled():
            self._inputs[chunk], self._outputs[chunk] = inputs, outputs
        return None

    def backward(self, chunk: int, loss: Any, scale: float, last: bool) -> None:
        """Compute the gradients of a micro-batch, and send those of its inputs."""
        autograd = require("autograd")
        with self._reducing(last):
            if self.is_last:
                loss.backward(core().full_like(loss.detach(), scale))
            else:
                outputs = [x for x in self._outputs.pop(chunk) if x.requires_grad]
                gradients = self._gradients(chunk, outputs)
                if outputs:
                    autograd.backward(outputs, gradients)
        inputs = self._inputs.pop(chunk)
        if self.is_first:
            return
        for i, x in enumerate(x for x in inputs if x.requires_grad):
            gradient = core().zeros_like(x) if x.grad is None else x.grad
            self._send(gradient, self.stage_index - 1, _tag(_GRADIENT, chunk, i))

    def _gradients(self, chunk: int, outputs: Sequence[Any]) -> list[Any]:
        gradients, works = [], []
        for i, x in enumerate(outputs):
            gradient = core().empty(x.shape, dtype=x.dtype)
            next_stage, tag = self.stage_index + 1, _tag(_GRADIENT, chunk, i)
            works.append(irecv(gradient, group=self.group, group_src=next_stage, tag=tag))
            gradients.append(gradient)
        for work in works:
            assert work is not None
            work.wait()
        return gradients

    @contextlib.contextmanager
    def _reducing(self, last: bool) -> Any:
        """Let data-parallel layers reduce gradients once, with the last micro-batch."""
        sync = getattr(self.submod, "set_requires_gradient_sync", None)
        if sync is not None:
            sync(last)
        elif hasattr(self.submod, "no_sync") and not last:
            reducer = self.submod.reducer
            reducer.enabled = False
            try:
                yield
            finally:
                reducer.enabled = True
            return
        yield
