"""The code of an archive: classes and functions by their qualified names, translated when they are
first used.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from plait_torch._torchscript._errors import ScriptError
from plait_torch._torchscript._late import late

_LONGEST = 64 << 20  # limit of the text of one file
_DEEPEST = 150  # limit of the levels of a tree
ROOT = "__torch__"
VERSION = 10  # of PyTorch's operators, as they are since PyTorch 1.13


class Class:
    """A class of an archive.

    Attributes:
        name: the qualified name, as ``"__torch__.model.Net"``.
        base: ``"Module"``, ``"NamedTuple"``, ``"Enum"``, ``"Interface"`` or ``""`` for a class of
            objects.
        types: the annotations of attributes, in the order of the file.
        values: the constants of the class: final attributes, defaults, members of an enumeration.
        methods: the functions, by name.
        parameters, buffers: the names of attributes that are such.
    """

    def __init__(self, name: str, base: str) -> None:
        self.name, self.base = name, base
        self.types: dict[str, ast.expr | None] = {}
        self.values: dict[str, Any] = {}
        self.methods: dict[str, Function] = {}
        self.parameters: tuple[str, ...] = ()
        self.buffers: tuple[str, ...] = ()
        self.made: Any = None  # the Python class of a named tuple or an enumeration

    def __repr__(self) -> str:
        return f"<class {self.name} of TorchScript>"

    def __deepcopy__(self, memo: Any) -> Class:
        return self


class Function:
    """A function or method of an archive; `call` is its translation."""

    def __init__(self, unit: Unit, name: str, node: ast.FunctionDef, record: str) -> None:
        self.unit, self.name, self.node, self.record = unit, name, node, record
        self._call: Callable[..., Any] | None = None

    @property
    def call(self) -> Callable[..., Any]:
        """The function in Python."""
        if self._call is None:
            self._call = late.translated(self)
        assert self._call is not None
        return self._call

    def __repr__(self) -> str:
        return f"<function {self.name} of TorchScript>"

    def __deepcopy__(self, memo: Any) -> Function:
        return self


class Unit:
    """All code of an archive.

    Args:
        record: returns the text of a file by its name, as ``"__torch__/model.py"``, or None.
        constants: the tensors and objects that code calls ``CONSTANTS.c0`` and so on.

    Example:
        >>> text = "def double(x: Tensor) -> Tensor:\\n  return torch.mul(x, 2)\\n"
        >>> unit = Unit({"__torch__.py": text}.get)
        >>> unit.find("__torch__.double")
        <function __torch__.double of TorchScript>
    """

    def __init__(
        self, record: Callable[[str], str | None], constants: tuple[Any, ...] = ()
    ) -> None:
        self._record, self.constants = record, constants
        self.version = VERSION
        self._files: dict[str, dict[str, Class | Function]] = {}
        self._texts: dict[str, str] = {}

    def find(self, name: str) -> Class | Function:
        """Return a class or function by its qualified name; raise `ScriptError` without one."""
        module, _, last = name.rpartition(".")
        result = self.read(module).get(last) if module.split(".")[0] == ROOT else None
        if result is None:
            raise ScriptError(f"TorchScript: the archive has no {name}")
        return result

    def read(self, module: str) -> dict[str, Class | Function]:
        """Return the classes and functions of a file, by the name of its module."""
        if module not in self._files:
            record = module.replace(".", "/") + ".py"
            text = self._record(record)
            if text is not None:
                self._texts[record] = text
            self._files[module] = {} if text is None else self._parsed(text, module, record)
        return self._files[module]

    def texts(self) -> dict[str, str]:
        """Return the texts of the files that were read, by the records' names."""
        return dict(self._texts)

    def __deepcopy__(self, memo: Any) -> Unit:
        return self

    def _parsed(self, text: str, module: str, record: str) -> dict[str, Class | Function]:
        result: dict[str, Class | Function] = {}
        for node in parsed(text, record).body:
            if isinstance(node, ast.ClassDef):
                result[node.name] = self._class(node, f"{module}.{node.name}", record)
            elif isinstance(node, ast.FunctionDef):
                result[node.name] = Function(self, f"{module}.{node.name}", node, record)
            elif not isinstance(node, (ast.Assign, ast.Import, ast.ImportFrom)):
                # op_version_set = 1, and imports of the first versions, mean nothing
                raise refused(node, record)
        return result

    def _class(self, node: ast.ClassDef, name: str, record: str) -> Class:
        bases = [each.id for each in node.bases if isinstance(each, ast.Name)]
        known = ("Module", "NamedTuple", "Enum", "Interface")
        base = next((each for each in bases if each in known), "")
        result = Class(name, base)
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                function = Function(self, f"{name}.{each.name}", each, record)
                result.methods[each.name] = function
            elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                result.types[each.target.id] = each.annotation
                if each.value is not None:
                    result.values[each.target.id] = literal(each.value, record)
            elif isinstance(each, ast.Assign):
                self._assigned(result, each, record)
            elif not isinstance(each, ast.Pass):
                raise refused(each, record)
        return result

    def _assigned(self, target: Class, node: ast.Assign, record: str) -> None:
        [place] = node.targets if len(node.targets) == 1 else [None]
        if isinstance(place, ast.Subscript) and isinstance(place.value, ast.Name):
            key = literal(place.slice, record)  # __annotations__["0"] = a type
            if place.value.id == "__annotations__" and isinstance(key, str):
                target.types[key] = node.value
                return
        if not isinstance(place, ast.Name):
            raise refused(node, record)
        if place.id in ("__parameters__", "__buffers__"):
            names = literal(node.value, record)
            if not isinstance(names, list) or not all(type(each) is str for each in names):
                raise refused(node, record)
            if place.id == "__parameters__":
                target.parameters = tuple(names)
            else:
                target.buffers = tuple(names)
        elif not place.id.startswith("__"):
            target.values[place.id] = literal(node.value, record)


def refused(node: ast.AST, record: str, why: str = "is not TorchScript") -> ScriptError:
    """Return the error for a part of the code."""
    text = ast.unparse(node).split("\n")[0][:80]
    return ScriptError(
        f"TorchScript: {record}, line {getattr(node, 'lineno', '?')}: {text!r} {why}"
    )


def parsed(text: str, record: str) -> ast.Module:
    """Return the tree of a file; one that nests without end is refused."""
    if len(text) > _LONGEST:
        raise ScriptError(f"TorchScript: {record} has {len(text)} characters, which is too much")
    try:
        result = ast.parse(text, record)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ScriptError(f"TorchScript: {record} cannot be parsed: {error}") from error
    depth = 0
    nodes: list[ast.AST] = list(result.body)
    while nodes:  # what reads the tree is recursive
        depth += 1
        if depth > _DEEPEST:
            raise ScriptError(
                f"TorchScript: {record} nests more than {_DEEPEST} levels, which is too deep"
            )
        nodes = [child for node in nodes for child in ast.iter_child_nodes(node)]
    return result


_CONSTANTS = {"inf": float("inf"), "nan": float("nan"), "infj": complex(0, float("inf"))}


def literal(node: ast.expr, record: str) -> Any:
    """Return the value of a literal."""
    if isinstance(node, ast.Constant) and node.value is not Ellipsis:
        return node.value
    if isinstance(node, ast.Name) and node.id in _CONSTANTS:
        return _CONSTANTS[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = literal(node.operand, record)
        if isinstance(value, (int, float, complex)):
            return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.List):
        return [literal(each, record) for each in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(literal(each, record) for each in node.elts)
    if isinstance(node, ast.Dict) and None not in node.keys:
        keys = [literal(each, record) for each in node.keys if each is not None]
        return dict(zip(keys, [literal(each, record) for each in node.values], strict=True))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        call = ast.unparse(node.func)
        if call == "torch.device" and len(node.args) == 1:
            import plait

            return plait.device(literal(node.args[0], record))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        if node.func.id == "annotate":
            return literal(node.args[-1], record)
        if node.func.id in ("int", "float") and isinstance(node.args[0], ast.Constant):
            return {"int": int, "float": float}[node.func.id](node.args[0].value)  # float("inf")
    raise refused(node, record, "is not a constant")
