"""Traced modules as code of TorchScript: the graph that plait-graph records, call by call in
PyTorch's form.
"""

from __future__ import annotations

import ast
import os
import re
import tempfile
from collections.abc import Sequence
from typing import Any

import plait
from plait_abi.components import require
from plait_torch import _aten
from plait_torch._torchscript._codes import dtype_number
from plait_torch._torchscript._errors import ScriptError
from plait_torch._torchscript._module import RecursiveScriptModule
from plait_torch._torchscript._sequences import SEQUENCES
from plait_torch._torchscript._spelling import SPELLED, SizeOf, names_of_pytorch
from plait_torch._torchscript._unit import ROOT, Class, Unit

# operators whose spelling has the first result alone
_MORE_RESULTS = ("attention_forward", "cross_entropy_forward")


class _Sized(int):
    """A size of the example, with the expression that it is in other calls."""

    text: str

    def __new__(cls, value: int, text: str) -> _Sized:
        result = super().__new__(cls, value)
        result.text = text
        return result

    def __add__(self, other: Any) -> _Sized:
        return _Sized(int(self) + int(other), f"torch.add({self.text}, {_text(other)})")

    __radd__ = __add__


def compiled(target: Any) -> RecursiveScriptModule:
    """Return a traced module or function as a module of an archive.

    Raises:
        ScriptError: if it was made by `script`, which keeps no example to record, or if the
            recording has something that TorchScript cannot say.
    """
    example = getattr(target, "_script_example", None)
    if example is None:
        raise ScriptError(
            "torch.jit.save: plait writes archives of what torch.jit.trace recorded and "
            "torch.jit.load read; torch.jit.script keeps Python code, which it does not translate: "
            "trace the module with an example, or pass example_inputs=[(x,)] to torch.jit.script"
        )
    args, kwargs = example
    if kwargs:
        raise ScriptError("torch.jit.save: a module that was traced with keywords is not written")
    dims = _all_dims(args)
    while True:
        try:
            graph, weights = _recorded(target, args, dims)
            return _Writer(target, args, graph, _at_example(graph), weights).module()
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
            if not dims:
                raise _refusal(error) from error
            dims = _fewer(dims, str(error))


def _refusal(error: Exception) -> ScriptError:
    text = str(error)
    if not text.startswith("torch.jit.save"):
        text = f"torch.jit.save: the module cannot be recorded: {text}"
    return ScriptError(text)


def _recorded(target: Any, args: tuple[Any, ...], dims: Any) -> tuple[Any, dict[str, Any]]:
    """Return the graph of a call, in which these sizes are free, and its weights."""
    package = require("graph")
    function = target if isinstance(target, plait.nn.Module) else target._call
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.safetensors")
        package.export(function, args, path, dynamic=dims or None)
        loaded = package.load(path)
        return loaded.graph, dict(loaded.weights)


def _at_example(graph: Any) -> Any:
    sizes = {name: size.value for name, size in graph.sizes.items()}
    return graph.at_sizes(sizes) if sizes else graph


def _all_dims(args: tuple[Any, ...]) -> dict[int, dict[int, str]]:
    """Return a name for each size of the arguments."""
    return {
        i: {dim: f"n{i}_{dim}" for dim in range(each.ndim)}
        for i, each in enumerate(args)
        if isinstance(each, plait.Tensor) and each.ndim
    }


def _fewer(dims: dict[int, dict[int, str]], problem: str) -> dict[int, dict[int, str]]:
    """Return the names without the one that an error says cannot be free; none for others."""
    found = re.search(r"the size (\w+) cannot be free", problem)
    result = {
        i: {dim: name for dim, name in each.items() if name != (found and found[1])}
        for i, each in dims.items()
    }
    return {} if result == dims else {i: each for i, each in result.items() if each}


class _Writer:
    """Makes the code and the module of one graph."""

    def __init__(
        self, target: Any, args: tuple[Any, ...], graph: Any, fixed: Any, weights: dict[str, Any]
    ) -> None:
        self.target, self.args, self.graph, self.fixed = target, args, graph, fixed
        self.weights = weights
        self.names: dict[str, str] = {}
        self.lines: list[str] = []
        self.constants: list[Any] = []
        self.classes: dict[str, tuple[str, Any]] = {}
        self.class_of: dict[int, str] = {}
        self.functions: dict[str, str] = {}
        self.count = 0

    def module(self) -> RecursiveScriptModule:
        """Return the module."""
        named = isinstance(self.target, plait.nn.Module)
        root = self.target if named else plait.nn.Module()
        inputs = self._inputs()
        self._bind_sizes(inputs)
        tensors = self._bind_weights(root)
        self._write_nodes(inputs, tensors)
        outputs = self._result()
        name = self._class_name(root)
        header = ", ".join(f"{each}: {kind}" for each, kind in inputs)
        forward = [f"  def forward(self: {ROOT}.{name}, {header}) -> {outputs[1]}:", *self.lines]
        forward.append(f"    return {outputs[0]}")
        texts = list(self.functions.values())
        self._write_class(root, name, texts, forward)
        code = "\n".join(texts) + "\n"
        unit = Unit({f"{ROOT}.py": code}.get, tuple(self.constants))
        unit.read(ROOT)
        made: RecursiveScriptModule = self._made(unit, root, {})
        return made

    # ---- what goes in

    def _inputs(self) -> list[tuple[str, str]]:
        result = []
        values = iter(self.graph.inputs)
        for i, each in enumerate(self.args):
            name = f"argument_{i}"
            result.append((name, self._bind_input(each, name, values)))
        return result

    def _bind_input(self, value: Any, text: str, values: Any) -> str:
        """Give the graph's inputs in an argument their expressions; return the argument's type."""
        if isinstance(value, plait.Tensor):
            found = next(values, None)
            if found is not None:
                self.names[found.name] = text
            return "Tensor"
        if isinstance(value, (list, tuple)) and all(
            isinstance(each, plait.Tensor) for each in value
        ):
            for i, _ in enumerate(value):
                found = next(values, None)
                if found is not None:
                    self.names[found.name] = f"({text})[{i}]"
            if isinstance(value, list):
                return "List[Tensor]"
            return f"Tuple[{', '.join('Tensor' for _ in value)}]"
        raise ScriptError(
            f"torch.jit.save: arguments must be tensors, and lists and tuples of tensors; got "
            f"{type(value).__name__}"
        )

    def _bind_sizes(self, inputs: Sequence[tuple[str, str]]) -> None:
        seen = set()
        for value in self.graph.inputs:
            for dim, size in enumerate(value.shape):
                if isinstance(size, str) and size.isidentifier() and size not in seen:
                    seen.add(size)
                    self.lines.append(f"    {size} = torch.size({self.names[value.name]}, {dim})")

    def _bind_weights(self, root: Any) -> dict[str, Any]:
        """Give the weights their expressions; return their tensors."""
        state = {**dict(root.named_parameters()), **dict(root.named_buffers())}
        for value in self.graph.weights:
            tensor = self.weights[value.name]
            if value.name in state:
                path = value.name.split(".")
                text = "self"
                for each in path:
                    text = f"{text}.{each}" if each.isidentifier() else f'getattr({text}, "{each}")'
                self.names[value.name] = text
            else:
                self.names[value.name] = f"CONSTANTS.c{len(self.constants)}"
                self.constants.append(tensor)
        return {value.name: self.weights[value.name] for value in self.graph.weights}

    # ---- calls

    def _write_nodes(self, inputs: Any, weights: dict[str, Any]) -> None:
        from plait_graph.interpreter import results_of, run_node

        tensors: dict[Any, Any] = {}
        given = iter(self._flat_args())
        for value in self.fixed.inputs:
            tensors[value] = next(given)
        for value in self.fixed.weights:
            tensors[value] = weights[value.name].clone()
        for number in self.fixed.numbers:
            tensors[number] = number.value
        with plait.no_grad():
            for node, fixed in zip(self.graph.nodes, self.fixed.nodes, strict=True):
                self._write_node(node, fixed, tensors)
                tensors.update(results_of(fixed, run_node(fixed, tensors)))

    def _flat_args(self) -> list[Any]:
        result = []
        for each in self.args:
            result += [each] if isinstance(each, plait.Tensor) else list(each)
        return [each.clone() for each in result]

    def _write_node(self, node: Any, fixed: Any, tensors: dict[Any, Any]) -> None:
        if node.regions:
            raise ScriptError(f"torch.jit.save: `{node.op}` is not written as TorchScript")
        texts: dict[int, str] = {}
        args = [
            self._given(a, b, tensors, texts) for a, b in zip(node.args, fixed.args, strict=True)
        ]
        targets = []
        if node.form == "inplace":
            targets = args[:1]
        elif node.form == "out":
            targets = [self._given(v, v, tensors, texts) for v in fixed.outputs]
        form = ("function", "inplace", "out").index(node.form)
        if node.op in SEQUENCES:
            self._write_sequence(node, args, texts)
            return
        count = None
        if form == 0 and node.op in SPELLED:
            name, positional, keywords = SPELLED[node.op](*args)
            count = 1 if node.op in _MORE_RESULTS else None
        else:
            overload, positional, keywords = _aten.of_call(node.op, form, tuple(args), targets)
            name = str(overload.overloadpacket.__name__)
        if name == "_to_copy" and keywords.get("dtype") is not None:
            name, positional = "to", (*positional, keywords.pop("dtype"), False, True)
        if name == "index_put_tensors_":
            name = "index_put_"
        if name in ("div", "true_divide") and not isinstance(positional[0], plait.Tensor):
            raise ScriptError("torch.jit.save: a number by a tensor is not written as TorchScript")
        if name not in names_of_pytorch():
            raise ScriptError(f"torch.jit.save: PyTorch has no operator {name!r}")
        parts = [self._text(each, texts) for each in positional]
        for key, value in keywords.items():
            text = self._text(value, texts)
            if key == "dtype" and value is not None:
                text = str(dtype_number(value))
            if key not in ("layout", "pin_memory") and value is not None:
                parts.append(f"{key}={text}")
        self._assign(node, f"torch.{name}({', '.join(parts)})", count)

    def _write_sequence(self, node: Any, args: list[Any], texts: dict[int, str]) -> None:
        name, count, code = SEQUENCES[node.op]
        if len({int(size) for size in args[-2]}) > 1:
            raise ScriptError("torch.jit.save: packed sequences are not written as TorchScript")
        self.functions[name] = code
        parts = [self._text(each, texts) for each in args]
        self._assign(node, f"{ROOT}.{name}({', '.join(parts)})", count)

    def _assign(self, node: Any, call: str, count: int | None = None) -> None:
        used = {value for each in self.graph.nodes for value in each.reads()}
        if count is not None and used.union(self.graph.outputs).intersection(node.outputs[count:]):
            raise ScriptError(f"torch.jit.save: results of {node.op} for its derivative are used")
        new = set(node.defines())
        if not new:
            self.lines.append(f"    {self._next()} = {call}")
            return
        names = []
        unpack: list[str] = []
        for output in node.outputs[:count]:
            name = self._next()
            names.append(name)
            if isinstance(output, tuple):
                inner = [self._next() for _ in output]
                unpack.append(f"    {', '.join(inner)}, = {name}")
                for value, text in zip(output, inner, strict=True):
                    if value is not None:
                        self.names[value.name] = text
            elif output is not None:
                self.names[output.name] = name
        self.lines.append(f"    {', '.join(names)} = {call}")
        self.lines += unpack

    def _next(self) -> str:
        self.count += 1
        return f"_{self.count}"

    def _given(self, argument: Any, fixed: Any, tensors: dict[Any, Any], texts: Any) -> Any:
        """Return an argument with its tensors, whose names go to `texts`."""
        if isinstance(fixed, (tuple, list)):
            pairs = zip(argument, fixed, strict=True)
            return tuple(self._given(a, b, tensors, texts) for a, b in pairs)
        if fixed in tensors if _is_key(fixed) else False:
            value = tensors[fixed]
            if isinstance(value, plait.Tensor):
                texts[id(value)] = self.names[fixed.name]
            return value
        if type(argument).__name__ == "SizeExpression":
            return _Sized(fixed, _expression(argument.text))
        if type(argument).__name__ == "SizeQuotient":
            raise ScriptError("torch.jit.save: a float that depends on sizes is not written")
        return fixed

    def _text(self, value: Any, texts: dict[int, str]) -> str:
        if isinstance(value, plait.Tensor):
            return texts[id(value)]
        if isinstance(value, SizeOf):
            return f"torch.size({texts[id(value.tensor)]}, {value.dim})"
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(self._text(each, texts) for each in value)}]"
        return _text(value)

    # ---- what comes out

    def _result(self) -> tuple[str, str]:
        names = [self.names[value.name] for value in self.graph.outputs]
        result = self._example_result()
        values = iter(names)
        return _structured(result, values)

    def _example_result(self) -> Any:
        call = self.target if isinstance(self.target, plait.nn.Module) else self.target._call
        state = plait.get_rng_state()
        with plait.no_grad():
            try:
                return call(*self.args)
            finally:
                plait.set_rng_state(state)

    # ---- classes and modules

    def _class_name(self, module: Any) -> str:
        kind = getattr(module, "original_name", type(module).__name__)
        name = (
            f"{kind}_{len(self.classes)}"
            if any(known == kind for known, _ in self.classes.values())
            else kind
        )
        self.classes[name] = (kind, module)
        return name

    def _write_class(
        self, module: Any, name: str, texts: list[str], forward: list[str] | None
    ) -> None:
        children = []
        for key, child in module._modules.items():
            if child is not None:
                inner = self._class_name(child)
                self._write_class(child, inner, texts, None)
                children.append((key, f"{ROOT}.{inner}"))
        parameters = [key for key, each in module._parameters.items() if each is not None]
        buffers = [key for key, each in module._buffers.items() if each is not None]
        lines = [f"class {name}(Module):"]
        lines.append(f"  __parameters__ = [{''.join(f'{key!r}, ' for key in parameters)}]")
        lines.append(f"  __buffers__ = [{''.join(f'{key!r}, ' for key in buffers)}]")
        for key, kind in [
            *((key, "Tensor") for key in (*parameters, *buffers)),
            ("training", "bool"),
            *children,
        ]:
            place = key if key.isidentifier() else f"__annotations__[{key!r}]"
            lines.append(f"  {place} : {kind}" if key.isidentifier() else f"  {place} = {kind}")
        texts += [line.replace("'", '"') for line in lines]
        texts += forward or []
        self.class_of[id(module)] = name

    def _made(self, unit: Unit, module: Any, memo: dict[int, Any]) -> Any:
        if id(module) in memo:
            return memo[id(module)]
        found = unit.find(f"{ROOT}.{self.class_of[id(module)]}")
        assert isinstance(found, Class)
        values: dict[str, Any] = {
            key: each
            for store in (module._parameters, module._buffers)
            for key, each in store.items()
            if each is not None
        }
        values["training"] = module.training
        result = RecursiveScriptModule(found, values)
        result.__dict__["script_unit"] = unit
        memo[id(module)] = result
        for key, child in module._modules.items():
            if child is not None:
                result._modules[key] = self._made(unit, child, memo)
        return result


def _is_key(value: Any) -> bool:
    return type(value).__name__ in ("Value", "Number")


def _text(value: Any) -> str:
    """Return a number, text, dtype or device as code."""
    if isinstance(value, _Sized):
        return value.text
    if isinstance(value, plait.dtype):
        return str(dtype_number(value))
    if isinstance(value, plait.device):
        return f'torch.device("{value}")'
    if isinstance(value, plait.memory_format):
        names = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
        return str(names.index(value.name))
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if value is None or isinstance(value, (bool, int)):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if value == value and abs(value) != float("inf") else _special(value)
    raise ScriptError(f"torch.jit.save: a {type(value).__name__} is not written as TorchScript")


def _special(value: float) -> str:
    return "nan" if value != value else "inf" if value > 0 else "torch.neg(inf)"


def _expression(text: str) -> str:
    """Return an expression of sizes with the operators of TorchScript."""
    names = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv",
             ast.Mod: "remainder"}  # fmt: skip

    def written(node: ast.expr) -> str:
        if isinstance(node, ast.BinOp):
            return f"torch.{names[type(node.op)]}({written(node.left)}, {written(node.right)})"
        if isinstance(node, ast.UnaryOp):
            return f"torch.neg({written(node.operand)})"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            first, *rest = map(written, node.args)
            for each in rest:
                first = f"ops.prim.{node.func.id}({first}, {each})"
            return first
        return ast.unparse(node)

    return written(ast.parse(text, mode="eval").body)


def _structured(value: Any, names: Any) -> tuple[str, str]:
    """Return the expression and the type of a result, whose tensors have names."""
    if isinstance(value, plait.Tensor):
        return next(names), "Tensor"
    if isinstance(value, dict) and all(type(key) is str for key in value):
        parts = [f"{_text(key)}: {_structured(each, names)[0]}" for key, each in value.items()]
        return f"{{{', '.join(parts)}}}", "Dict[str, Tensor]"
    if isinstance(value, (list, tuple)):
        pairs = [_structured(each, names) for each in value]
        texts = ", ".join(text for text, _ in pairs)
        if isinstance(value, list):
            return f"[{texts}]", "List[Tensor]"
        comma = "," if len(pairs) == 1 else ""
        return f"({texts}{comma})", f"Tuple[{', '.join(kind for _, kind in pairs)}]"
    raise ScriptError(
        f"torch.jit.save: a result must be tensors in tuples, lists and dicts, got a "
        f"{type(value).__name__}"
    )
