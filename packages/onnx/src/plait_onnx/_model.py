"""ONNX models with their weights, and their files."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
from collections.abc import Mapping
from typing import Any

import onnx
from onnx import ModelProto, TensorProto

import plait_core as pc
from plait_onnx._dtypes import array_of, element_type, packed

__all__ = ["ExportedModel"]

_LARGEST = 1_800_000_000  # bytes of weights in the file itself; protobuf reads less than 2 GiB
_ALIGNED = 4096  # where weights begin in their file, so that readers can map them


BUFFERS = "plait.buffers"  # metadata: initializers that are not trained, one a line


class ExportedModel:
    """A model that `export` made: the ONNX graph, and the weights that it reads.

    Args:
        model: the model without weights.
        weights: the tensors that its graph reads, by name; those of the module, not copies.

    Example:
        >>> import plait_core as pc, plait_onnx
        >>> model = plait_onnx.export(lambda x: x * 2 + 1, (pc.ones(2, 3),))
        >>> [node.op_type for node in model.to_proto().graph.node]
        ['Mul', 'Add']
    """

    def __init__(self, model: ModelProto, weights: Mapping[str, pc.Tensor]) -> None:
        self.model, self.weights = model, dict(weights)

    @property
    def nbytes(self) -> int:
        """The size of the weights in bytes.

        Example:
            >>> import plait_core as pc, plait_nn, plait_onnx
            >>> plait_onnx.export(plait_nn.Linear(4, 2), (pc.ones(1, 4),)).nbytes
            40
        """
        return sum(_size_of(tensor) for tensor in self.weights.values())

    def to_proto(self) -> ModelProto:
        """Return the model with its weights as one message of the package `onnx`.

        Raises: ValueError for 2 GB of weights and more, which a message cannot hold.

        Example:
            >>> import onnx, plait_core as pc, plait_onnx
            >>> model = plait_onnx.export(lambda x: x.exp(), (pc.ones(2),))
            >>> onnx.checker.check_model(model.to_proto())
        """
        if self.nbytes > _LARGEST:
            raise ValueError(
                f"ExportedModel.to_proto: the weights have {self.nbytes} bytes, and a message "
                "holds less than 2 GB; `save` writes them beside the file"
            )
        model = ModelProto()
        model.CopyFrom(self.model)
        model.graph.initializer.extend(packed(t, name) for name, t in self.weights.items())
        return model

    def save(self, path: str | os.PathLike[str], *, external_data: bool | None = None) -> None:
        """Write the model to a file.

        Args:
            path: of the file.
            external_data: whether weights are written to a second file beside it, of the same name
                with ``.data`` behind it; None: if they have 1.8 GB or more. They are written from
                the memory in which they are.

        Example:
            >>> import os, tempfile, onnx, plait_core as pc, plait_nn, plait_onnx
            >>> path = os.path.join(tempfile.mkdtemp(), "layer.onnx")
            >>> model = plait_onnx.export(plait_nn.Linear(4, 2), (pc.ones(1, 4),))
            >>> model.save(path, external_data=True)
            >>> sorted(os.listdir(os.path.dirname(path)))
            ['layer.onnx', 'layer.onnx.data']
            >>> sorted(tensor.name for tensor in onnx.load(path).graph.initializer)
            ['bias', 'weight']
        """
        target = pathlib.Path(path)
        if external_data or (external_data is None and self.nbytes > _LARGEST):
            model = ModelProto()
            model.CopyFrom(self.model)
            beside = target.with_name(f"{target.name}.data")
            with _written(beside) as file:
                model.graph.initializer.extend(
                    _outside(file, beside.name, name, t) for name, t in self.weights.items()
                )
        else:
            model = self.to_proto()
        with _written(target) as file:
            file.write(model.SerializeToString())


@contextlib.contextmanager
def _written(path: pathlib.Path) -> Any:
    """Open a file that has its name only when it is written as a whole."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _size_of(tensor: pc.Tensor) -> int:
    return int(tensor.numel()) * int(tensor.element_size())


def _outside(file: Any, location: str, name: str, tensor: pc.Tensor) -> TensorProto:
    """Write a tensor to the file of weights, and return the entry that says where it is."""
    if not _size_of(tensor):
        return packed(tensor, name)
    file.write(b"\0" * (-file.tell() % _ALIGNED))
    offset = file.tell()
    array: Any = array_of(tensor)
    if sys.byteorder == "big":
        array = array.byteswap()
    file.write(memoryview(array.reshape(-1)).cast("B"))
    entry = TensorProto(name=name, dims=list(tensor.shape), data_type=element_type(tensor.dtype))
    entry.data_location = TensorProto.EXTERNAL
    numbers = {"location": location, "offset": offset, "length": _size_of(tensor)}
    for key, value in numbers.items():
        entry.external_data.append(onnx.StringStringEntryProto(key=key, value=str(value)))
    return entry
