"""Writes the zip that `torch.load` reads."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from plait_abi import binding
from plait_core._checkpoints._atomic import Writer
from plait_core._checkpoints._errors import CheckpointError
from plait_core._checkpoints._regions import RegionView, regions_of
from plait_core._checkpoints._table import STORAGES
from plait_core._checkpoints._torch_opcodes import Call, Emitter, Name, Reference
from plait_core._checkpoints._torch_pickle import pickled
from plait_core._checkpoints._tree import Encoder, is_parameter
from plait_core._checkpoints._zip import Zip
from plait_core._core import Size, Tensor, is_tensor

__all__ = ["TorchZip"]

_CLASSES = {dtype: name for name, dtype in STORAGES.items() if name != "UntypedStorage"}


class TorchZip:
    """The records of a zip for data, or with `weights_only=False` for objects of any class."""

    def __init__(self, value: Any, weights_only: bool = True) -> None:
        # the first pass finds the tensors and the storages that they share
        if weights_only:
            encoder = Encoder()
            encoder.encode(value)
            tensors = [result for _, result in encoder.found if is_tensor(result)]
            self._place(tensors)
            self._pickle = self._emitted(value)
            return
        text = pickled(value)
        self._place(text.tensors)
        for gap, tensor in zip(text.gaps, text.tensors, strict=True):
            text.parts[gap] = self._emitted(self._call(tensor), whole=False)
        self._pickle = b"".join(text.parts)

    def _emitted(self, value: Any, whole: bool = True) -> bytes:
        emitter = Emitter(self._call)
        emitter.emit(value)
        return emitter.text() if whole else b"".join(emitter.parts)

    def _place(self, tensors: list[Tensor]) -> None:
        """Find the storages of the tensors."""
        self._numbers = {id(tensor): number for number, tensor in enumerate(tensors)}
        self._regions, self._views = regions_of(tensors)
        self._untyped = self._without_type(tensors)

    def _without_type(self, tensors: list[Tensor]) -> set[int]:
        """Return the regions with several dtypes, or with a dtype that has no storage class in
        PyTorch.
        """
        kinds: dict[int, set[str]] = {}
        for view, tensor in zip(self._views, tensors, strict=True):
            if view.region >= 0:  # tensors on the device meta have none
                kinds.setdefault(view.region, set()).add(tensor.dtype.name)
        return {
            region
            for region, names in kinds.items()
            if len(names) > 1
            or not names <= set(_CLASSES)
            or self._regions[region].data.size % binding.dtype(min(names)).itemsize
        }

    def _call(self, tensor: Tensor) -> Call:
        view = self._views[self._numbers[id(tensor)]]
        grad, kind = bool(tensor.requires_grad), Name(("torch", tensor.dtype.name))
        if any(step < 0 for step in view.stride):
            raise CheckpointError(
                "save: a tensor that shares its storage with others has negative strides, which "
                "PyTorch does not have; save its contiguous()"
            )
        if view.region < 0:
            args = (kind, Size(view.shape), view.stride, grad)
            call = Call("torch._utils", "_rebuild_meta_tensor_no_storage", *args)
        elif view.region in self._untyped:
            call = self._rebuild("_rebuild_tensor_v3", view, tensor, "uint8")
            call.args = (*call.args, kind)
        else:
            call = self._rebuild("_rebuild_tensor_v2", view, tensor, tensor.dtype.name)
        if is_parameter(tensor):
            call = Call("torch._utils", "_rebuild_parameter", call, grad, OrderedDict())
        return call

    def _rebuild(self, name: str, view: RegionView, tensor: Tensor, dtype: str) -> Call:
        count = self._regions[view.region].data.size // binding.dtype(dtype).itemsize
        typed = name == "_rebuild_tensor_v2"
        storage = ("torch", _CLASSES[dtype]) if typed else ("torch.storage", "UntypedStorage")
        where = str(tensor.device)
        reference = Reference(("storage", Name(storage), str(view.region), where, count))
        grad = bool(tensor.requires_grad)
        hooks: OrderedDict[Any, Any] = OrderedDict()
        sizes = (view.offset, view.shape, view.stride, grad, hooks)
        return Call("torch._utils", name, reference, *sizes)

    def write(self, writer: Writer) -> None:
        """Write the zip."""
        archive = Zip(writer)
        archive.add("archive/data.pkl", self._pickle)
        archive.add("archive/byteorder", b"little")
        for number, region in enumerate(self._regions):
            archive.add(f"archive/data/{number}", region.data)
        archive.add("archive/version", b"3\n")
        archive.finish()
