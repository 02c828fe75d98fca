"""Changes of files that know a format: bytes, zips, pickles, JSON, protobuf messages and code.

Each function takes a `random.Random` first and returns a changed copy, which may be unchanged by
chance. None executes anything.
"""

from __future__ import annotations

import ast
import copy
import io
import json
import pickletools
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

NUMBERS = (0, 1, -1, 2, 7, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, -(2**31), 2**62, 2**63 - 1)
CANARY = "plait-canary"  # what a payload would make, were it executed
# what a file names to have code executed
CALLS = (
    ("os", "system"),
    ("posix", "system"),
    ("builtins", "eval"),
    ("builtins", "exec"),
    ("builtins", "open"),
    ("builtins", "getattr"),
    ("__builtin__", "compile"),
    ("subprocess", "Popen"),
    ("importlib", "import_module"),
    ("torch.hub", "load"),
    ("torch.serialization", "load"),
    ("numpy", "load"),
    ("functools", "partial"),
    ("operator", "attrgetter"),
    ("pickle", "loads"),
    ("plait", "load"),
    ("plait_abi.build", "Library"),
)


def bytes_changed(rng: random.Random, data: bytes) -> bytes:
    """Cut, flip, overwrite, move, double or remove bytes, at one place to four."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not result:
            break
        at, length = rng.randrange(len(result)), rng.choice((1, 1, 2, 4, 8, 16, 64))
        kind = rng.randrange(7)
        if kind == 0:
            result[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            result[at : at + length] = rng.randbytes(length)
        elif kind == 2:
            del result[at : at + length]
        elif kind == 3:
            other = rng.randrange(len(result))
            result[at:at] = result[other : other + length]
        elif kind == 4:
            other = rng.randrange(len(result))
            result[at : at + length] = result[other : other + length]
        elif kind == 5:
            size = rng.choice((1, 2, 4, 8))
            value = rng.choice(NUMBERS) % 256**size
            result[at : at + size] = value.to_bytes(size, rng.choice(("little", "big")))
        elif rng.random() < 0.3:
            del result[at:]
    return bytes(result)


# ---- zip


Change = Callable[[random.Random, str, bytes], bytes]


def zip_changed(rng: random.Random, data: bytes, change: Change) -> bytes:
    """Change records with `change`, or the records' names, or the directory."""
    if rng.random() < 0.25:
        return directory_changed(rng, data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        records = [[info.filename, archive.read(info)] for info in archive.infolist()]
    for _ in range(rng.choice((1, 1, 1, 2))):
        kind, record = rng.randrange(10), rng.choice(records)
        if kind < 7:
            record[1] = change(rng, record[0], record[1])
        elif kind == 7 and len(records) > 1:
            records.remove(record)
        elif kind == 8:
            names = ["", "/", "../x", "a" * 9000, "\u00e9", "x/../data.pkl", rng.choice(records)[0]]
            record[0] = rng.choice(names)
        else:
            records.insert(rng.randrange(len(records)), list(rng.choice(records)))
    file = io.BytesIO()
    packed = zipfile.ZIP_DEFLATED if rng.random() < 0.15 else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", packed) as out:
        for name, text in records:
            info = zipfile.ZipInfo(name)
            info.compress_type = packed
            out.writestr(info, text)
    return file.getvalue()


def directory_changed(rng: random.Random, data: bytes) -> bytes:
    """Overwrite fields of headers of a zip: sizes, offsets, flags, counts."""
    result = bytearray(data)
    heads = {b"PK\x03\x04": 30, b"PK\x01\x02": 46, b"PK\x05\x06": 22, b"PK\x06\x06": 56}
    places = []
    for head, length in heads.items():
        at = result.find(head)
        while at >= 0:
            places.append((at, length))
            at = result.find(head, at + 4)
    for _ in range(rng.choice((1, 1, 2, 3)) if places else 0):
        at, length = rng.choice(places)
        size = rng.choice((2, 4))
        field = at + rng.randrange(4, max(5, length - size + 1), 2)
        other = rng.choice(NUMBERS) if rng.random() < 0.7 else rng.randrange(len(data))
        result[field : field + size] = (other % 256**size).to_bytes(size, "little")
    return bytes(result)


# ---- pickles


def _word(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text.encode())) + text.encode()


def _call(rng: random.Random) -> bytes:
    """Return opcodes that call a function of a program by one of the ways of pickles."""
    module, name = rng.choice(CALLS)
    argument = _word(f"touch {CANARY}")
    look_up = f"c{module}\n{name}\n".encode()
    kind = rng.randrange(5)
    if kind == 0:
        return look_up + argument + b"\x85R"
    if kind == 1:
        return _word(module) + _word(name) + b"\x93" + argument + b"\x85R"
    if kind == 2:
        return b"(" + argument + f"i{module}\n{name}\n".encode()
    if kind == 3:
        return b"(" + look_up + argument + b"o"
    return look_up + argument + b"\x85\x81" + b"}" + _word("x") + b"K\x01sb"


def _arguments(rng: random.Random, name: str) -> bytes:
    """Return bytes that an argument of this kind may have."""
    number = rng.choice(NUMBERS)
    if name in ("uint1", "uint2", "int4", "uint4", "uint8"):
        size = int(name[-1])
        return (number % 256**size).to_bytes(size, "little")
    if name == "float8":
        return struct.pack(">d", rng.choice((0.0, 1e300, float("nan"), float("inf"))))
    if name.endswith("_nl") or "_nl_" in name:
        texts = ["os\nsystem", "x\ny", "5\n", "1e999", "'x'", str(10 ** rng.choice((3, 400, 5000)))]
        return rng.choice(texts).encode() + b"\n"
    size = {"1": 1, "4": 4, "8": 8}.get(name[-1], 1)
    text = rng.randbytes(rng.choice((0, 1, 8)))
    length = len(text) if rng.random() < 0.7 else number % 256**size
    return length.to_bytes(size, "little") + text


def pickle_changed(rng: random.Random, data: bytes) -> bytes:
    """Change opcodes of a pickle: remove, double, exchange and add them, or their arguments."""
    try:
        starts = [position for _, _, position in pickletools.genops(data)]
    except Exception:
        return bytes_changed(rng, data)
    ends = [*starts[1:], len(data)]
    parts = [data[a:b] for a, b in zip(starts, ends, strict=True)]
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, kind = rng.randrange(len(parts)), rng.randrange(8)
        if kind == 0 and len(parts) > 2:
            del parts[at]
        elif kind == 1:
            parts.insert(at, rng.choice(parts))
        elif kind == 2:
            other = rng.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        elif kind == 3:
            parts.insert(at, _call(rng))
        elif kind == 4:
            parts[at] = _call(rng)
        elif kind == 5:
            code = rng.choice(pickletools.opcodes)
            new = code.code.encode("latin-1")
            parts.insert(at, new + (_arguments(rng, code.arg.name) if code.arg else b""))
        elif kind == 6:
            code = pickletools.code2op.get(chr(parts[at][0])) if parts[at] else None
            if code is not None and code.arg is not None:
                parts[at] = parts[at][:1] + _arguments(rng, code.arg.name)
        else:
            parts[at] = bytes_changed(rng, parts[at])
    return b"".join(parts)


# ---- JSON


VALUES: tuple[Any, ...] = (
    *(None, True, "", "x", "%x", [], {}, [[]], [1], 0.5, -1e300, "nan", "../x", "/etc/passwd"),
    *({"dtype": "float32"}, {"device": "cpu"}, {"string": "x"}, 10**30, "9" * 400),
    *NUMBERS,
)


def json_value_changed(rng: random.Random, value: Any) -> Any:
    """Exchange parts of a value that JSON can have, remove them, and put others there."""
    value = copy.deepcopy(value)

    def places(item: Any) -> list[tuple[Any, Any]]:
        pairs: Any = ()
        if isinstance(item, dict):
            pairs = list(item.items())
        elif isinstance(item, list):
            pairs = list(enumerate(item))
        found = []
        for key, inner in pairs:
            found.append((item, key))
            found += places(inner)
        return found

    for _ in range(rng.choice((1, 1, 2, 3))):
        found = places(value)
        if not found:
            return rng.choice(VALUES)
        container, key = rng.choice(found)
        kind = rng.randrange(5)
        if kind == 0:
            del container[key]
        elif kind == 1:
            other, place = rng.choice(found)
            container[key] = copy.deepcopy(other[place])
        elif kind == 2 and isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        elif kind == 2:
            container[rng.choice(("x", "", str(key) + "x"))] = container[key]
        else:
            container[key] = copy.deepcopy(rng.choice(VALUES))
    return value


def json_changed(rng: random.Random, text: bytes) -> bytes:
    """Return JSON with other values."""
    if rng.random() < 0.2:
        return bytes_changed(rng, text)
    return json.dumps(json_value_changed(rng, json.loads(text))).encode()


# ---- protobuf


def message_changed(rng: random.Random, message: Any) -> Any:
    """Return a copy of a protobuf message in which fields anywhere have other values."""
    result = type(message)()
    result.CopyFrom(message)
    for _ in range(rng.choice((1, 1, 2, 3))):
        found = list(_messages(result))
        if rng.random() < 0.5:  # else the most frequent kind gets nearly all changes
            kind = rng.choice(sorted({each.DESCRIPTOR.name for each in found}))
            found = [each for each in found if each.DESCRIPTOR.name == kind]
        _change_field(rng, rng.choice(found), found)
    return result


def _messages(message: Any) -> Any:
    yield message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for each in value if _is_repeated(field) else [value]:
                yield from _messages(each)


def _is_repeated(field: Any) -> bool:
    repeated = getattr(field, "is_repeated", None)
    return bool(repeated if isinstance(repeated, bool) else field.label == field.LABEL_REPEATED)


def _change_field(rng: random.Random, message: Any, others: list[Any]) -> None:
    present = [field for field, _ in message.ListFields()]
    fields = present if present and rng.random() < 0.8 else list(message.DESCRIPTOR.fields)
    field = rng.choice(fields)
    value = getattr(message, field.name)
    same = [each for each in others if each.DESCRIPTOR is message.DESCRIPTOR]
    other = getattr(rng.choice(same), field.name)
    kind = rng.randrange(6)
    if kind == 0:
        message.ClearField(field.name)
    elif field.type == field.TYPE_MESSAGE:
        _change_messages(rng, value, other, _is_repeated(field))
    elif _is_repeated(field):
        values = list(value)
        if kind == 1 and values:
            del values[rng.randrange(len(values))]
        elif kind == 2:
            values = list(other)
        elif kind == 3:
            values.insert(rng.randrange(len(values) + 1), _scalar(rng, field))
        elif values:
            values[rng.randrange(len(values))] = _scalar(rng, field)
        del value[:]
        value.extend(values)
    else:
        setattr(message, field.name, other if kind < 3 else _scalar(rng, field))


def _change_messages(rng: random.Random, value: Any, other: Any, repeated: bool) -> None:
    if not repeated:
        value.CopyFrom(type(value)() if rng.random() < 0.3 else copy.deepcopy(other))
        return
    kind = rng.randrange(4)
    if kind == 0 and len(value):
        del value[rng.randrange(len(value))]
    elif kind == 1 and len(value):
        value.add().CopyFrom(copy.deepcopy(value[rng.randrange(len(value))]))
    elif kind == 2 and len(value) > 1:
        i, j = rng.randrange(len(value)), rng.randrange(len(value))
        one = copy.deepcopy(value[i])
        value[i].CopyFrom(value[j])
        value[j].CopyFrom(one)
    elif len(other):
        value.add().CopyFrom(copy.deepcopy(other[rng.randrange(len(other))]))


def _scalar(rng: random.Random, field: Any) -> Any:
    if field.enum_type is not None:
        return rng.choice([each.number for each in field.enum_type.values])
    name = {
        field.CPPTYPE_STRING: "text", field.CPPTYPE_BOOL: "flag",
        field.CPPTYPE_FLOAT: "real", field.CPPTYPE_DOUBLE: "real",
    }.get(field.cpp_type, "number")  # fmt: skip
    if name == "text":
        texts = ["", "x", "y", "../x", "/etc/passwd", "a.b..c", "__class__", "Loop", "Identity"]
        text = rng.choice([*texts, "x" * 5000])
        return text.encode() if field.type == field.TYPE_BYTES else text
    if name == "flag":
        return rng.random() < 0.5
    if name == "real":
        return rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
    bits = 31 if "32" in str(field.cpp_type) or field.cpp_type in (1, 3) else 63
    low = 0 if field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64) else -(2**bits)
    return max(low, min(rng.choice(NUMBERS), 2**bits - 1))


# ---- code


EXPRESSIONS = (
    *("().__class__", "x.__class__.__bases__", "__import__('os')", "eval('1')", "self._modules"),
    *("lambda: 1", "[y for y in x]", "f'{x}'", "(yield)", "(z := 1)", "x if x else x", "await x"),
    *("1e999", "-1", "9999999999999999999", "10 ** 10", "'x' * 10", "b'x'", "...", "None", "{}"),
    *("{[]: 1}", "[1, 'a']", "(1,)", "()", "torch", "ops", "CONSTANTS.c0", "CONSTANTS", "self"),
    *("torch.save(x, 'plait-canary')", "torch.load('plait-canary')", "open('plait-canary', 'w')"),
    *("ops.prim.exec(x)", "torch.ones([2 ** 40])", "torch.device('x')", "torch.device(1)"),
    *("annotate(List[int], [])", "unchecked_cast(Tensor, x)", "uninitialized(int)", "int('x')"),
    *("torch.mul([0], 9999999999)", "torch.range(9999999999)", "getattr(x, '__class__')"),
    *("torch.format('{0.__class__}', x)", "torch.percentFormat('%1000000000d', 1)"),
    *("torch.pow(10, torch.pow(10, 9))", "torch.__lshift__(1, 9999999999)", "float('1' * 9)"),
)
STATEMENTS = (
    *("import os", "global x", "del x", "raise x", "raise ValueError('x')", "assert x, x", "pass"),
    *("while True:\n  pass", "for i in x:\n  x = i", "with x as y:\n  pass", "x += 1", "x = y = 1"),
    *("try:\n  pass\nexcept:\n  pass", "def f():\n  return f()", "class A(B):\n  pass", "x: int"),
    *("return x", "break", "continue", "self.x = 1", "x[0] = 1", "x.__class__ = 1", "return None"),
    *("async def f():\n  pass", "def f(a):\n  return a", "@x\ndef f():\n  pass", "x, *y = x"),
    *("__parameters__ = 5", "__buffers__ = ['a']", "__annotations__['a'] = int", "a : int = b"),
    *(
        "a = {[]: 1}",
        "a = -True",
        "a = float('x')",
        "a = int('9')",
        "a : int",
        "a = torch.device(1)",
    ),
)


def code_changed(rng: random.Random, text: bytes) -> bytes:
    """Change code at its grammar: exchange expressions, names, statements, and add others."""
    try:
        tree = ast.parse(text.decode())
    except (SyntaxError, ValueError):
        return bytes_changed(rng, text)
    kind = rng.randrange(8)
    if kind == 0:
        return bytes_changed(rng, text)
    if kind == 1:
        deep = rng.choice((50, 140, 200, 1000))
        words = ("(" * deep + "1" + ",)" * deep, "-" * deep + "1", "x" + ".a" * deep)
        words = (*words, "+".join(["1"] * deep), "[" * deep + "]" * deep)
        return text.replace(rng.choice((b"1", b"x", b"0")), rng.choice(words).encode(), 1)
    for _ in range(rng.choice((1, 1, 2, 4))):
        _change_tree(rng, tree)
    try:
        return ast.unparse(ast.fix_missing_locations(tree)).encode()
    except Exception:  # a tree that has no text
        return bytes_changed(rng, text)


def _change_tree(rng: random.Random, tree: ast.Module) -> None:
    nodes = list(ast.walk(tree))
    kind = rng.randrange(4)
    if kind == 0:  # a statement
        owners = [each for each in nodes if getattr(each, "body", None) and type(each.body) is list]
        body = rng.choice(owners).body  # type: ignore[attr-defined]
        others = rng.choice(owners).body  # type: ignore[attr-defined]
        new = ast.parse(rng.choice(STATEMENTS)).body if rng.random() < 0.6 else [rng.choice(others)]
        at = rng.randrange(len(body) + 1)
        body[at : at + rng.randrange(2)] = copy.deepcopy(new)
        return
    if kind == 1:  # a name
        named = [each for each in nodes if isinstance(each, (ast.Name, ast.Attribute, ast.arg))]
        if not named:
            return
        names = [next(n for n in (getattr(e, "id", 0), getattr(e, "attr", 0), getattr(e, "arg", 0))
                      if n) for e in named]  # fmt: skip
        node = rng.choice(named)
        field = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg"}[type(node)]
        hostile = ["__class__", "_ts_0", "torch", "__dict__", "forward", "eval", "__init__"]
        setattr(node, field, rng.choice(hostile if rng.random() < 0.4 else names))
        return
    places: list[tuple[Any, str, int | None]] = []
    for each in nodes:
        for field, value in ast.iter_fields(each):
            if isinstance(value, ast.expr):
                places.append((each, field, None))
            elif isinstance(value, list):
                places += [(each, field, i) for i, e in enumerate(value) if isinstance(e, ast.expr)]
    if not places:
        return
    owner, field, at_index = rng.choice(places)
    if kind == 2:
        new_value: Any = ast.parse(rng.choice(EXPRESSIONS), mode="eval").body
    else:
        other, name, i = rng.choice(places)
        value = getattr(other, name)
        new_value = copy.deepcopy(value if i is None else value[i])
    if at_index is None:
        setattr(owner, field, new_value)
    else:
        getattr(owner, field)[at_index] = new_value
