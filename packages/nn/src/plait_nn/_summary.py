"""`summary`: the layers of a model and the cost of a call, without running kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn._functional_call import functional_call
from plait_nn._hooks import RemovableHandle
from plait_nn._lazy import UninitializedParameter
from plait_nn._module import Module
from plait_nn._shape_tensor import Counter, counting, map_tensors, without_bytes


@dataclass
class SummaryRow:
    """One module with the outputs and costs of its calls, including its submodules'.

    Args:
        name: The module's dotted name.
        kind: The name of its class.
        depth: How many modules it is inside of.
        output_shapes: The shapes of its outputs.
        parameters: Number of elements of its parameters.
        trainable: Number of those that require grad.
        multiply_adds: Number of multiplications with an addition.
        output_bytes: Bytes of its outputs.
        calls: How often it was called.

    Example:
        >>> import plait_nn as nn
        >>> row = nn.summary(nn.Linear(3, 2), (5, 3)).rows[0]
        >>> row.kind, row.calls, row.output_shapes, row.multiply_adds, row.output_bytes
        ('Linear', 1, [(5, 2)], 30, 40)
    """

    name: str
    """The module's dotted path; ``""`` is the model."""
    kind: str
    """The name of the module's class."""
    depth: int
    """The depth of the module in the model."""
    output_shapes: list[tuple[int, ...]] = field(default_factory=list)
    """The shapes of the tensors that the module's first call returned."""
    parameters: int = 0
    """The number of elements of its parameters, shared ones once."""
    trainable: int = 0
    """The number of elements of its parameters that require grad."""
    multiply_adds: int = 0
    """The multiply-adds of all its calls."""
    output_bytes: int = 0
    """The bytes of the results of all its calls."""
    calls: int = 0
    """The number of calls; 0: the model did not use it."""


@dataclass
class Summary:
    """The result of `summary`; ``print`` shows it as a table, notebooks as an HTML table.

    Args:
        rows: A row for each module.
        parameters: Number of elements of all parameters.
        trainable: Number of those that require grad.
        parameter_bytes: Bytes of the parameters.
        buffer_bytes: Bytes of the buffers.
        input_bytes: Bytes of the inputs.
        activation_bytes: Bytes of the outputs of all modules without submodules.
        multiply_adds: Number of multiplications with an addition.

    Example:
        >>> import plait_nn as nn
        >>> print(nn.summary(nn.Sequential(nn.Linear(3, 2)), (5, 3)))
        layer        output shape  parameters  multiply-adds
        ----------------------------------------------------
        Sequential   (5, 2)                 8             30
          0: Linear  (5, 2)                 8             30
        ----------------------------------------------------
        parameters            8 (8 trainable, 0 not)
        multiply-adds         30
        bytes of parameters   32
        bytes of buffers      0
        bytes of inputs       60
        bytes of activations  40
    """

    rows: list[SummaryRow]
    """A row for each module, in the order of ``named_modules``."""
    parameters: int
    """The number of elements of all parameters, shared ones once."""
    trainable: int
    """The number of elements of all parameters that require grad."""
    parameter_bytes: int
    """Bytes of the parameters."""
    buffer_bytes: int
    """Bytes of the buffers."""
    input_bytes: int
    """Bytes of the given inputs."""
    activation_bytes: int
    """Bytes of the outputs of modules without submodules, about the memory that a training step
    keeps.
    """
    multiply_adds: int
    """Multiply-adds of one call, in matrix products and convolutions."""

    def __str__(self) -> str:
        return _as_text(self)

    def _repr_html_(self) -> str:
        return _as_html(self)


class _Watch:
    """Fills the rows while the model runs."""

    def __init__(self, rows: dict[Module, SummaryRow]) -> None:
        self.rows = rows
        self.counter = Counter()
        self.started: list[int] = []
        self.activation_bytes = 0

    def before(self, module: Module, args: Any) -> None:
        self.started.append(self.counter.total)

    def after(self, module: Module, args: Any, output: Any) -> None:
        row = self.rows[module]
        tensors: list[Tensor] = []
        map_tensors(output, tensors.append)
        if not row.calls:
            row.output_shapes = [tuple(tensor.shape) for tensor in tensors]
        size = sum(_bytes(tensor) for tensor in tensors)
        row.calls += 1
        row.multiply_adds += self.counter.total - self.started.pop()
        row.output_bytes += size
        if not module._modules:
            self.activation_bytes += size

    @contextmanager
    def on(self) -> Iterator[None]:
        handles: list[RemovableHandle] = []
        token = counting.set(self.counter)
        try:
            for module in self.rows:
                handles.append(module.register_forward_pre_hook(self.before, prepend=True))
                handles.append(module.register_forward_hook(self.after))
            yield
        finally:
            counting.reset(token)
            for handle in handles:
                handle.remove()


def summary(
    model: Module,
    input_size: Sequence[int] | Sequence[Sequence[int]] | None = None,
    input_data: Any = None,
    *,
    dtypes: Sequence[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
) -> Summary:
    """Run a model's shape functions and list its layers, their outputs, and what they cost.

    No kernel runs and nothing is allocated: parameters, buffers and inputs are replaced by tensors
    on the device ``meta``. The model is the same afterwards, running statistics included. It runs
    in its present mode, with its forward hooks.

    Multiply-adds are those of matrix products and convolutions (attention and recurrent layers are
    made of them); elementwise operators, reductions and look-ups are not counted. A linear layer
    has in * out for each row, a convolution in/groups * kernel * outputs.

    Args:
        model: The module.
        input_size: The shape of its input, with the batch, or a list of shapes.
        input_data: Instead of sizes: example inputs, a tensor or a tuple of anything. Their values
            are not used.
        dtypes: With ``input_size``: a dtype for each input; float32 by default.
        kwargs: Keyword arguments of the call; tensors among them count by their shapes.

    Raises:
        TypeError: `model` is not a module, or neither or both of `input_size` and `input_data`
            given.
        ValueError: A parameter is not initialised (a lazy layer), or the sizes and dtypes differ in
            number.
        RuntimeError: The model needs values (``item()``, ``if tensor``), or it has tensors that are
            neither parameters nor buffers.

    Example:
        >>> import plait_nn as nn
        >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        >>> result = nn.summary(model, (10, 3))
        >>> [(row.kind, row.output_shapes, row.parameters) for row in result.rows[1:]]
        [('Linear', [(10, 4)], 16), ('ReLU', [(10, 4)], 0), ('Linear', [(10, 2)], 10)]
        >>> result.parameters, result.multiply_adds
        (26, 200)
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary: `model` must be a Module; got {type(model).__name__}")
    for name, parameter in model.named_parameters():
        if isinstance(parameter, UninitializedParameter):
            raise ValueError(
                f"summary: `{name}` is not initialised; call the model once to give it a shape"
            )
    inputs = _inputs(input_size, input_data, dtypes)
    args = map_tensors(inputs, without_bytes)
    rows = _rows(model)
    members = [*model.named_parameters(), *model.named_buffers()]
    watch = _Watch(rows)
    with watch.on():
        try:
            empty = {name: without_bytes(member) for name, member in members}
            functional_call(model, empty, args, map_tensors(kwargs or {}, without_bytes))
        except (RuntimeError, ValueError) as error:
            if "meta" not in str(error):
                raise
            raise RuntimeError(
                "summary: the model must work from shapes alone, of registered parameters and "
                f"buffers; it asked for values: {error}"
            ) from error
    tensors: list[Tensor] = []
    map_tensors((inputs, kwargs or {}), tensors.append)
    total = next(iter(rows.values()))
    return Summary(
        rows=list(rows.values()),
        parameters=total.parameters,
        trainable=total.trainable,
        parameter_bytes=sum(map(_bytes, model.parameters())),
        buffer_bytes=sum(map(_bytes, model.buffers())),
        input_bytes=sum(map(_bytes, tensors)),
        activation_bytes=watch.activation_bytes,
        multiply_adds=total.multiply_adds,
    )


def _inputs(size: Any, data: Any, dtypes: Sequence[Any] | None) -> tuple[Any, ...]:
    """The positional arguments of the call, tensors made on ``meta``."""
    if (size is None) == (data is None):
        raise TypeError("summary: one of `input_size` and `input_data` must be given")
    if data is not None:
        return data if type(data) in (tuple, list) else (data,)
    if isinstance(size, Tensor) or any(isinstance(n, Tensor) for n in size):
        raise TypeError(
            "summary: `input_size` must be a shape or shapes; give tensors as `input_data`"
        )
    sizes = [size] if all(isinstance(n, int) for n in size) else list(size)
    kinds = [pc.float32] * len(sizes) if dtypes is None else list(dtypes)
    if len(kinds) != len(sizes):
        raise ValueError(
            f"summary: `dtypes` must name one for each input; got {len(kinds)} for {len(sizes)}"
        )
    pairs = zip(sizes, kinds, strict=True)
    return tuple(pc.empty(tuple(each), dtype=kind, device="meta") for each, kind in pairs)


def _rows(model: Module) -> dict[Module, SummaryRow]:
    rows = {}
    for path, module in model.named_modules():
        row = SummaryRow(path, module._get_name(), path.count(".") + 1 if path else 0)
        for parameter in module.parameters():
            row.parameters += parameter.numel()
            row.trainable += parameter.numel() if parameter.requires_grad else 0
        rows[module] = row
    return rows


def _bytes(tensor: Tensor) -> int:
    return int(tensor.numel()) * int(tensor.element_size())


_HEADS = ("layer", "output shape", "parameters", "multiply-adds")


def _as_text(summary: Summary) -> str:
    """Return the table with a line for each module and the totals below it."""
    table = [_HEADS, *(_cells(row) for row in summary.rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(_HEADS))]
    lines = []
    for line in table:
        left = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        lines.append("  ".join(left + right).rstrip())
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    totals = _totals(summary)
    width = max(len(name) for name, _ in totals)
    below = [f"{name.ljust(width)}  {value}" for name, value in totals]
    return "\n".join([lines[0], rule, *lines[1:], rule, *below])


def _as_html(summary: Summary) -> str:
    """Return the summary as an HTML table."""
    head = "".join(f"<th>{escape(name)}</th>" for name in _HEADS)
    body = []
    for row in summary.rows:
        name, *others = _cells(row)
        indent = f"padding-left:{row.depth + 0.5}em;text-align:left"
        cells = "".join(f'<td style="text-align:right">{escape(cell)}</td>' for cell in others)
        body.append(f'<tr><td style="{indent}">{escape(name.strip())}</td>{cells}</tr>')
    totals = "<br>".join(f"{escape(name)}: {escape(value)}" for name, value in _totals(summary))
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        f"<p>{totals}</p>"
    )


def _cells(row: SummaryRow) -> tuple[str, str, str, str]:
    short = row.name.rpartition(".")[2]
    name = "  " * row.depth + (f"{short}: {row.kind}" if short else row.kind)
    if not row.calls:
        return name, "not called", _count(row.parameters), "-"
    shapes = ", ".join(map(str, row.output_shapes)) or "-"
    if row.calls > 1:
        shapes += f" x {row.calls} calls"
    return name, shapes, _count(row.parameters), _count(row.multiply_adds)


def _totals(summary: Summary) -> list[tuple[str, str]]:
    fixed = summary.parameters - summary.trainable
    return [
        ("parameters", f"{summary.parameters:,} ({summary.trainable:,} trainable, {fixed:,} not)"),
        ("multiply-adds", f"{summary.multiply_adds:,}"),
        ("bytes of parameters", _size(summary.parameter_bytes)),
        ("bytes of buffers", _size(summary.buffer_bytes)),
        ("bytes of inputs", _size(summary.input_bytes)),
        ("bytes of activations", _size(summary.activation_bytes)),
    ]


def _count(number: int) -> str:
    return f"{number:,}" if number else "-"


def _size(number: int) -> str:
    """Return a number of bytes as text, in the largest unit in which it is at least 1."""
    value, unit = float(number), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{number:,}" if unit == "B" else f"{number:,} ({value:.1f} {unit})"
