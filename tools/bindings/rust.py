"""The back end for Rust: declarations of the C headers, and safe functions for the operators.

The three files are included by the crate in bindings/rust. `abi.rs` and `run.rs` say what the
headers say; `operators.rs` holds no unsafe code, it only puts arguments in the order of a schema.
"""

from __future__ import annotations

import math
import re

from declarations import Field, Function, Header, Type
from model import Model, Operator, Parameter

__all__ = ["emit"]

_NAMES = {
    **{f"int{bits}_t": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": f"u{bits}" for bits in (8, 16, 32, 64)},
    "char": "c_char",
    "int": "c_int",
    "double": "f64",
    "float": "f32",
    "void": "c_void",
}
# fmt: off
_KEYWORDS = {
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum",
    "extern", "false", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "match", "mod",
    "move", "mut", "pub", "ref", "return", "static", "struct", "super", "trait", "true", "type",
    "unsafe", "use", "where", "while", "abstract", "become", "box", "do", "final", "macro",
    "override", "priv", "try", "typeof", "unsized", "virtual", "yield",
}
# fmt: on
# `x.clone()` is another handle of the same tensor, as everywhere in Rust; `ops::clone` copies
_NO_METHODS = {"clone"}


def _word(name: str) -> str:
    """Return a name of C as one of Rust, where `self` cannot be a name at all."""
    return "self_" if name == "self" else f"r#{name}" if name in _KEYWORDS else name


def _doc(text: str, indent: str = "") -> list[str]:
    """Return lines of a doc comment, in which nothing is a link or a block of code."""
    text = re.sub(r"([\[\]<>])", r"\\\1", re.sub(r"^```\w*$|::", "", text, flags=re.MULTILINE))
    parts = text.split("`")
    text = "`".join(p.replace("\\", "") if i % 2 else p for i, p in enumerate(parts))
    return [f"{indent}/// {line}".rstrip() for line in text.split("\n")] if text else []


# headers


def _type(type: Type) -> str:
    if type.kind == "pointer":
        assert type.to is not None
        return f"*{'const' if type.to.const else 'mut'} {_type(type.to)}"
    if type.kind == "array":
        assert type.to is not None
        return f"[{_type(type.to)}; {type.length}]"
    if type.kind == "function":
        assert type.result is not None
        return f"Option<{_signature(type.result, type.parameters)}>"
    return _NAMES.get(type.name, type.name)


def _signature(result: Type, parameters: list[Field]) -> str:
    words = ["..." if field.name == "..." else _type(field.type) for field in parameters]
    back = "" if result.kind == "name" and result.name == "void" else f" -> {_type(result)}"
    return f'unsafe extern "C" fn({", ".join(words)}){back}'


def _members(fields: list[Field], prefix: str) -> list[str]:
    lines: list[str] = []
    for field in fields:
        union = field.type.kind == "union"
        lines += _doc(field.doc, "    ")
        lines.append(f"    pub {_word(field.name)}: {prefix if union else _type(field.type)},")
    return lines


def _header(header: Header) -> str:
    lines = [f"// The declarations of plait/{header.name}.", ""]
    for constant in header.constants:
        kind = "i32" if constant.value < 0 else "u32" if constant.value < 1 << 32 else "u64"
        if constant.enum:
            kind = constant.enum
        lines += _doc(constant.doc)
        lines.append(f"pub const {constant.name}: {kind} = {constant.value};")
    for alias in header.aliases:
        lines += ["", *_doc(alias.doc), f"pub type {alias.name} = {_type(alias.type)};"]
    for struct in header.structs:
        head = ["#[repr(C)]", "#[derive(Clone, Copy)]"]
        for field in struct.fields:
            if field.type.kind == "union":
                name = f"{struct.name}_{field.name}"
                members = _members(field.type.parameters, name)
                lines += ["", *head, f"pub union {name} {{", *members, "}"]
        lines += ["", *_doc(struct.doc), *head, f"pub struct {struct.name} {{"]
        if struct.fields:
            union = f"{struct.name}_{struct.fields[-1].name}"
            lines += [*_members(struct.fields, union), "}"]
            facts = [f"size_of::<{struct.name}>() == {struct.size}"]
            facts += [
                f"offset_of!({struct.name}, {_word(f.name)}) == {f.offset}" for f in struct.fields
            ]
            lines.append(f"const _: () = assert!({' && '.join(facts)});")
        else:
            lines += ["    _opaque: [u8; 0],", "}"]
    return "\n".join([*lines, "", *_functions(header), ""])


def _functions(header: Header) -> list[str]:
    """Return a struct with the functions of a library, which are found by their names."""
    if not header.functions:
        return []

    def member(function: Function) -> str:
        return f"    pub {function.name}: {_signature(function.result, function.parameters)},"

    lines = ["/// The functions of the library.", "pub struct Functions {"]
    for function in header.functions:
        lines += [*_doc(function.doc, "    "), member(function)]
    lines += ["}", "", "impl Functions {", "    /// Find the functions in an open library."]
    lines.append("    pub fn find(library: &Library) -> Result<Functions> {")
    lines.append("        // The types are those of the header.")
    lines.append("        unsafe {")
    lines.append("            Ok(Functions {")
    for each in header.functions:
        signature = _signature(each.result, each.parameters)
        lines.append(
            f"                {each.name}: std::mem::transmute::<*mut c_void, {signature}>("
        )
        lines.append(f'                    library.symbol("{each.name}")?,')
        lines.append("                ),")
    lines += ["            })", "        }", "    }", "}"]
    return lines


# operators

_REQUIRED = {
    "Tensor": "&Tensor",
    "Tensor[]": "&[&Tensor]",
    "Tensor|Scalar": "impl Into<Operand<'a>>",
    "Scalar": "impl Into<Scalar>",
    "int": "i64",
    "int[]": "&[i64]",
    "float": "f64",
    "bool": "bool",
    "str": "&str",
    "dtype": "DType",
    "device": "Device",
    "Generator": "&Generator",
}
"""The types of parameters; in a struct of options references live for 'a."""
_VARIANTS = {
    "Tensor": "Tensor",
    "Tensor[]": "Tensors",
    "int": "Int",
    "int[]": "Ints",
    "float": "Float",
    "bool": "Bool",
    "str": "Str",
    "dtype": "DType",
    "device": "Device",
    "Generator": "Generator",
}
"""The variants of `Value`; a Scalar and a Tensor|Scalar convert themselves."""


def _with(name: str) -> str:
    """Return the name of the form with options; that of `add_` is `add_with_`."""
    return f"{name[:-1]}_with_" if name.endswith("_") else f"{name}_with"


def _name(parameter: Parameter) -> str:
    return "this" if parameter.name == "self" else _word(parameter.name)


def _kind(parameter: Parameter, *, option: bool) -> str:
    """Return the type of a parameter, of a function or of a struct of options."""
    text = _REQUIRED[parameter.type]
    if parameter.optional_items:
        text = "&[Option<&Tensor>]"
    if option or parameter.optional:  # `impl` is only possible for a parameter itself
        text = re.sub(r"impl Into<(.*)>$", r"\1", text)
    if option:
        text = text.replace("&", "&'a ")
    return f"Option<{text}>" if parameter.optional else text


def _value(parameter: Parameter, place: str) -> str:
    """Return the expression that makes a `Value` of a parameter."""
    if parameter.optional:
        return f"Value::from_option({place})"
    if parameter.type == "Tensor|Scalar":
        return f"{place}.into().into()" if parameter.required else f"{place}.into()"
    if parameter.type == "Scalar":
        return f"{place}.into().into()" if parameter.required else f"{place}.into()"
    variant = "OptionalTensors" if parameter.optional_items else _VARIANTS[parameter.type]
    return f"Value::{variant}({place})"


def _number(value: object) -> str:
    """Return a number as one of Rust; ops.json has infinities as texts."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    number = float(str(value))
    if math.isinf(number):
        return "f64::INFINITY" if number > 0 else "f64::NEG_INFINITY"
    return repr(number)


def _default(parameter: Parameter) -> str:
    value = parameter.default
    if value is None:
        return "None"
    text = ""
    if parameter.type in ("Scalar", "Tensor|Scalar"):
        number = _number(value)
        variant = (
            "Bool" if isinstance(value, bool) else "Int" if isinstance(value, int) else "Float"
        )
        text = f"Scalar::{variant}({number})"
        text = f"Operand::Scalar({text})" if parameter.type == "Tensor|Scalar" else text
    elif parameter.type == "int[]":
        text = f"&[{', '.join(map(str, value if isinstance(value, list) else [value]))}]"
    elif parameter.type == "float":
        text = _number(float(str(value)))
    elif parameter.type in ("int", "bool"):
        text = _number(value)
    elif parameter.type == "str":
        text = f'"{value}"'
    elif parameter.type == "dtype":
        text = f"DType::{str(value).capitalize().replace('Uint', 'UInt')}"
    else:
        raise ValueError(f"rust: no default of type {parameter.type}: {value!r}")
    return f"Some({text})" if parameter.optional else text


class _Function:
    """The Rust functions of one operator."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.required = [p for p in operator.parameters if p.required]
        self.options = [p for p in operator.parameters if not p.required]
        words = re.split("_+", operator.identifier)
        self.struct = "".join(word[:1].upper() + word[1:] for word in words)
        self.struct += "InPlaceOptions" if operator.identifier.endswith("_") else "Options"
        kinds = [_kind(p, option=True) for p in self.options]
        self.lifetime = "<'a>" if any("'a" in kind for kind in kinds) else ""
        self.operands = any("'a" in _kind(p, option=False) for p in self.required)
        results = operator.results
        one = {"Tensor": "Tensor", "Tensor[]": "Vec<Tensor>"}
        parts = [one[result] for result in results]
        self.result = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def structure(self) -> list[str]:
        """Return the struct of the arguments that have defaults."""
        if not self.options:
            return []
        name, life = self.struct, self.lifetime
        lines = [f"/// The arguments of [`{_with(self.operator.identifier)}()`] with defaults."]
        lines += ["#[derive(Clone, Copy, Debug)]", f"pub struct {name}{life} {{"]
        lines += [f"    pub {_name(p)}: {_kind(p, option=True)}," for p in self.options]
        lines += ["}", "", f"impl{life} Default for {name}{life} {{", "    fn default() -> Self {"]
        members = ", ".join(f"{_name(p)}: {_default(p)}" for p in self.options)
        return [*lines, f"        {name} {{ {members} }}", "    }", "}", ""]

    def _head(self, name: str, *, method: bool, options: bool) -> str:
        """Return the first line of a function."""
        words = [f"{_name(p)}: {_kind(p, option=False)}" for p in self.required]
        if method:
            words[0] = "&self"
        if options:
            life = "<'a>" if self.lifetime and self.operands else "<'_>" if self.lifetime else ""
            words.append(f"options: {self.struct}{life}")
        operands = any("'a" in word for word in words)
        generic = "<'a>" if operands else ""
        if method and operands and self.required[0].type == "Tensor|Scalar":
            words[0] = "&'a self"
        return f"pub fn {name}{generic}({', '.join(words)}) -> Result<{self.result}> {{"

    def functions(self) -> list[str]:
        """Return the free functions: with defaults, with options, and in place."""
        name = self.operator.identifier
        documented = _doc(self.operator.doc)
        lines: list[str] = []
        names = ", ".join(_name(p) for p in self.required)
        for form, suffix in (("Form::Function", ""), ("Form::InPlace", "_")):
            if suffix and not self.operator.inplace:
                continue
            own = _word(name + suffix)
            if suffix:
                documented = [f"/// As [`{name}()`]; the result replaces the first argument."]
            if self.options:
                comma = ", " if names else ""
                lines += [*documented, self._head(own, method=False, options=False)]
                call = f"{_with(name + suffix)}({names}{comma}{self.struct}::default())"
                lines += [f"    {call}", "}", ""]
                documented = [
                    f"/// As [`{name + suffix}()`], with the arguments that have defaults."
                ]
                own = _with(name + suffix)
            lines += [*documented, self._head(own, method=False, options=bool(self.options))]
            lines += [f"    {line}" for line in self._body(form)]
            lines += ["}", ""]
        return lines

    def _body(self, form: str) -> list[str]:
        values = [
            _value(p, _name(p) if p.required else f"options.{_name(p)}")
            for p in self.operator.parameters
        ]
        lines = [f'static OPERATOR: Operator = Operator::new("{self.operator.name}");']
        lines.append(f"let results = OPERATOR.call({form}, &[{', '.join(values)}])?;")
        convert = {"Tensor": "tensor", "Tensor[]": "tensors"}
        parts = [f"results.{convert[result]}()?" for result in self.operator.results]
        if len(parts) == 1:
            return [*lines, f"results.{convert[self.operator.results[0]]}()"]
        lines[-1] = lines[-1].replace("let results", "let mut results")
        parts = [f"results.next_{convert[result]}()?" for result in self.operator.results]
        return [*lines, f"Ok(({', '.join(parts)}))"]

    def methods(self) -> list[str]:
        """Return methods of `Tensor` that call the free functions."""
        if not self.operator.method or self.operator.name in _NO_METHODS or not self.required:
            return []
        if not self.required[0].type.startswith("Tensor") or self.required[0].optional:
            return []
        lines: list[str] = []
        names = ["self", *(_name(p) for p in self.required[1:])]
        for suffix in ("", "_") if self.operator.inplace else ("",):
            for with_options in (False, True) if self.options else (False,):
                own = self.operator.identifier + suffix
                own = _with(own) if with_options else own
                call = [*names, "options"] if with_options else names
                lines.append(f"    /// [`ops::{own}()`]")
                lines.append(f"    {self._head(_word(own), method=True, options=with_options)}")
                lines += [f"        ops::{_word(own)}({', '.join(call)})", "    }", ""]
        return lines


def emit(model: Model) -> dict[str, str]:
    """Return the files by name."""
    functions = [_Function(operator) for operator in model.operators]
    operators = [line for each in functions for line in each.structure() + each.functions()]
    methods = [line for each in functions for line in each.methods()]
    libraries = [
        f'    Component {{ package: "{each.package}", name: "{each.name}", '
        f"optional: {str(each.optional).lower()}, avx2: {str(bool(each.processor)).lower()} }},"
        for each in model.libraries
    ]
    table = ["const COMPONENTS: &[Component] = &[", *libraries, "];", ""]
    return {
        "abi.rs": _header(model.header("dlpack.h")) + _header(model.header("abi.h")),
        "run.rs": _header(model.header("run.h")),
        "operators.rs": "\n".join(operators),
        "methods.rs": "\n".join(["impl Tensor {", *methods, "}", ""]),
        "components.rs": "\n".join(table),
    }
