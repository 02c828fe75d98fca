"""Copies of objects in memory: the tensors in one block, the rest as a pickle."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

from plait_distributed._arguments import core
from plait_distributed._process_group import ProcessGroup
from plait_distributed.tensor._dtensor import DTensor

_ALIGNMENT = 64  # bytes


class _Outline(pickle.Pickler):
    """Pickles an object without its tensors, which it lists."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.tensors: list[Any] = []
        self._kind = core().Tensor

    def persistent_id(self, thing: Any) -> int | None:
        """Return the number of a tensor; None for anything else, which is pickled."""
        if not isinstance(thing, self._kind):
            return None
        if isinstance(thing, DTensor):
            raise NotImplementedError(
                f"elastic.State: a DTensor of shape {tuple(thing.shape)} with {thing.placements} "
                "is no parameter behind `fully_shard`, and no state of an optimizer of such ones; "
                "copies of others are not kept"
            )
        self.tensors.append(thing.detach())
        return len(self.tensors) - 1


class _Whole(pickle.Unpickler):
    """Unpickles an object with its tensors."""

    def __init__(self, file: io.BytesIO, tensors: Sequence[Any]) -> None:
        super().__init__(file)
        self._tensors = tensors

    def persistent_load(self, number: int) -> Any:
        """Return the tensor that was there."""
        return self._tensors[number]


class Copy:
    """A copy of an object that is made of lists, dictionaries, numbers, tensors and the like."""

    def __init__(self) -> None:
        self._outline = b""
        self._layout: list[tuple[Any, tuple[int, ...]]] = []
        self._block: Any = core().empty(0, dtype=core().uint8)
        self._views: list[Any] = []

    def take(self, thing: Any) -> None:
        """Become the copy of an object; the memory is used again if the tensors have one shape."""
        file = io.BytesIO()
        outline = _Outline(file)
        outline.dump(thing)
        self._outline = file.getvalue()
        self._lay_out([(tensor.dtype, tuple(tensor.shape)) for tensor in outline.tensors])
        for view, tensor in zip(self._views, outline.tensors, strict=True):
            view.copy_(tensor)

    def _lay_out(self, layout: list[tuple[Any, tuple[int, ...]]]) -> None:
        if layout == self._layout and self._views:
            return
        new = core()
        places, end = [], 0
        for dtype, shape in layout:
            n = dtype.itemsize
            for length in shape:
                n *= length
            places.append((end, n))
            end += -(-n // _ALIGNMENT) * _ALIGNMENT
        self._block = new.empty(end, dtype=new.uint8)
        self._views = [
            self._block[first : first + n].view(dtype).view(shape)
            for (first, n), (dtype, shape) in zip(places, layout, strict=True)
        ]
        self._layout = layout

    def thing(self) -> Any:
        """Return an object that is equal to the one that was copied, and shares nothing."""
        tensors = [view.clone() for view in self._views]
        return _Whole(io.BytesIO(self._outline), tensors).load()

    def nbytes(self) -> int:
        """Return the number of bytes of the tensors."""
        return int(self._block.numel())

    # ---- copies on other ranks -------------------------------------------------------------------

    def header(self) -> bytes:
        """Return what another rank must know before it gets the block."""
        return pickle.dumps((self._outline, self._layout))

    def expect(self, header: bytes) -> None:
        """Make room for the copy that has this header."""
        outline, layout = pickle.loads(header)
        self._lay_out(layout)
        self._outline = outline

    @property
    def block(self) -> Any:
        """The tensors' bytes."""
        return self._block

    def broadcast(self, group: ProcessGroup, root: int) -> None:
        """Become the copy that the rank `root` of a group has. All ranks call it."""
        new, here = core(), group.rank() == root
        header = self.header() if here else b""
        size = new.tensor([len(header)])
        _broadcast(group, "elastic size", size, root)
        n = int(size.item())
        data = new.frombuffer(bytearray(header), dtype=new.uint8) if here else None
        message = new.empty(n, dtype=new.uint8) if data is None else data
        _broadcast(group, "elastic header", message, root)
        if not here:
            self.expect(message.numpy().tobytes())
        if self._block.numel():
            _broadcast(group, "elastic state", self._block, root)


def _broadcast(group: ProcessGroup, name: str, tensor: Any, root: int) -> None:
    call = group.begin_call(name, f"src={root}", (tensor,))
    group.start(call, "broadcast", [tensor], [tensor], peer=root)
