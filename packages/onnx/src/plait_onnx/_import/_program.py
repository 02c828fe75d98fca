"""Programs: the nodes of a graph as functions that are called in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plait_core as pc
from plait_core import Tensor
from plait_graph._capture import current_capture
from plait_onnx._import._errors import ModelError
from plait_onnx._import._tensors import host_of

__all__ = ["Program", "Step", "as_array", "as_tensor", "host_value", "sizes_array"]

# errors that say what is wrong with values, to which the node is added
_ERRORS = (ValueError, TypeError, IndexError, KeyError, AttributeError, ArithmeticError)


def as_tensor(value: Any, device: Any = None) -> Any:
    """Return a value as a tensor, if it is an array of NumPy; arrays of a sequence, too."""
    if type(value) is not np.ndarray:
        return [as_tensor(part, device) for part in value] if type(value) is list else value
    if value.dtype == object:  # sizes that a capture keeps free
        parts = [pc.full((), n, dtype=pc.int64, device=device) for n in value.reshape(-1)]
        return pc.stack(parts).reshape(value.shape) if parts else pc.empty(0, dtype=pc.int64)
    tensor = pc.tensor(value)
    return tensor if device is None else tensor.to(device)


def as_array(value: Any) -> Any:
    """Return a number, or an object that stands for a free size, as an array."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    array = np.empty((), object)
    array[()] = value
    return array


def sizes_array(sizes: Sequence[Any]) -> Any:
    """Return sizes as an array, of objects if some are free."""
    if all(type(n) is int for n in sizes):
        return np.array(sizes, np.int64)
    array = np.empty(len(sizes), object)
    for i, n in enumerate(sizes):
        array[i] = n
    return array


def host_value(value: Any) -> Any:
    """Return a value as an array of NumPy, if it is a tensor."""
    return host_of(value) if isinstance(value, Tensor) else value


class Step:
    """A node with its function.

    Attributes:
        function: Of tensors, with arrays where `host` says so.
        host: Numbers of inputs that must be arrays.
        arrays: Numbers of inputs that are arrays if they are constants.
        host_function: Of arrays only; used if all inputs that are no constants are arrays.
        constants: Arrays of the constant inputs, by their numbers.
        dynamic: Numbers of the other inputs.
        mode: What the function gets; one of the constants of this class.
        inputs, outputs: Numbers of values; -1 for one that is left out.
        last: Numbers of values that nobody needs after this step.
    """

    __slots__ = (
        "arrays", "constants", "dynamic", "function", "host", "host_function", "inputs", "last",
        "mode", "outputs", "where",
    )  # fmt: skip
    TENSORS = 0  # no input is an array
    MIXED = 1  # inputs may be arrays
    ANY = 2  # the function takes values as they are

    def __init__(self, where: str, function: Callable[..., Any], inputs: list[int]) -> None:
        self.where = where
        self.function = function
        self.inputs = inputs
        self.outputs: list[int] = []
        self.host: frozenset[int] = frozenset()
        self.arrays: frozenset[int] = frozenset()
        self.host_function: Callable[..., Any] | None = None
        self.constants: dict[int, Any] = {}
        self.dynamic: list[int] = []
        self.last: list[int] = []
        self.mode = Step.TENSORS

    def call_any(self, args: list[Any]) -> Any:
        """Call the function with the values as they are, and arrays for constants."""
        for i in self.host:
            if i in self.constants:
                args[i] = self.constants[i]
        return self.function(*args)

    def call_mixed(self, args: list[Any]) -> Any:
        """Call the function for arrays or the one for tensors."""
        constants = self.constants
        if self.host_function is not None and all(
            type(args[i]) is np.ndarray for i in self.dynamic
        ):
            for i, value in constants.items():
                args[i] = value
            result = self.host_function(*args)
            if result is not NotImplemented:
                return result if type(result) is tuple else as_array(result)
        device = next((x.device for x in args if isinstance(x, Tensor)), None)
        for i, value in enumerate(args):
            if i in self.host:
                args[i] = constants[i] if i in constants else host_value(value)
            elif i in self.arrays and i in constants:
                args[i] = constants[i]
            elif type(value) is np.ndarray:
                args[i] = as_tensor(value, device)
        return self.function(*args)


class Program:
    """The nodes of a graph, in order, and numbers for its values.

    Attributes:
        inputs, outputs: Numbers of values.
        captured: Numbers of values that come from outside, with their names there.
        count: How many values there are.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.captured: list[tuple[int, Any]] = []
        self.count = 0

    def finish(self) -> None:
        """Find the last use of each value."""
        seen = set(self.outputs)
        for step in reversed(self.steps):
            used = {i for i in (*step.inputs, *step.outputs) if i >= 0}
            step.last = sorted(used - seen)
            seen |= used

    def run(self, inputs: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
        """Return the values of the outputs."""
        values: list[Any] = [None] * self.count
        for i, value in zip(self.inputs, inputs, strict=True):
            values[i] = value
        for (i, _), value in zip(self.captured, captured, strict=True):
            values[i] = value
        return self.run_values(values)

    def run_values(self, values: list[Any]) -> list[Any]:
        """Return the values of the outputs, where `values` has those from outside."""
        for step in self.steps:
            args = [values[i] if i >= 0 else None for i in step.inputs]
            try:
                if step.mode == Step.TENSORS:
                    result = step.function(*args)
                elif step.mode == Step.MIXED:
                    result = step.call_mixed(args)
                else:
                    result = step.call_any(args)
            except _ERRORS as error:
                raise ModelError(_text(step, args, error)) from error
            except NotImplementedError as error:
                if current_capture() is not None:  # it has a meaning for the capture
                    raise
                raise ModelError(_text(step, args, error)) from error
            outputs = step.outputs
            if type(result) is tuple:
                for i, value in zip(outputs, result):  # noqa: B905 (further ones are not needed)
                    if i >= 0:
                        values[i] = value
            elif outputs:
                values[outputs[0]] = result
            for i in step.last:
                values[i] = None
            del args, result
        return [values[i] for i in self.outputs]


def _text(step: Step, args: list[Any], error: Exception) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, ModelError) and text.startswith("node "):
        return text
    kinds = ", ".join(_kind(value) for value in args[:8])
    return f"{step.where}: {text} (inputs: {kinds})"


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype.name}{list(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return f"a sequence of {len(value)}" if isinstance(value, list) else "none"
