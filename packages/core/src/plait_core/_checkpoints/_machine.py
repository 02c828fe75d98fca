"""An interpreter of pickle's opcodes that builds data and executes nothing that is not listed.

Python's own unpickler imports any name of a file and calls it. Here `find` looks names up in a
table and raises for all others, and only functions of the table, wrapped in `Named`, are called,
and classes and functions that the program listed (`SafeGlobals`). Opcodes that could do more raise
an error with their name.
"""

from __future__ import annotations

import codecs
import re
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from plait_core._checkpoints._errors import CheckpointError
from plait_core._checkpoints._safe_globals import SafeGlobals


class Named:
    """A name of the table: the function that REDUCE calls, and the object that Python means by the
    name, if a listed function may get it as an argument.
    """

    __slots__ = ("call", "name", "real")

    def __init__(self, name: str, call: Callable[..., Any], real: Any = None) -> None:
        self.name, self.call, self.real = name, call, real

    def __repr__(self) -> str:
        return f"<{self.name}>"


class _Mark:
    __slots__ = ()


_MARK = _Mark()
_HIGHEST_MEMO = 1 << 26
# limit of the values in the tuples of a key, each counted as often as it occurs
_LARGEST_KEY = 10_000
_LARGE_KEYS = 16  # limit of such values for each of many keys
_DEEPEST_KEY = 100

_REFUSED = {
    b"P": "PERSID",
    b"i": "INST",
    b"o": "OBJ",
    b"\x82": "EXT1",
    b"\x83": "EXT2",
    b"\x84": "EXT4",
    b"\x92": "NEWOBJ_EX",
    b"\x97": "NEXT_BUFFER",
    b"\x98": "READONLY_BUFFER",
}


class Machine:
    """The state of the interpreter while it reads one pickle."""

    def __init__(
        self,
        data: bytes,
        position: int,
        find: Callable[[str, str], Any],
        persistent: Callable[[Any], Any],
        build: Callable[[Any, Any], Any],
        safe: SafeGlobals,
    ) -> None:
        self.data, self.position = data, position  # bytes, or a mapped file
        self.find, self.persistent, self.build = find, persistent, build
        self.safe = safe
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        # objects that BUILD replaced, by identity, with the old object to keep it alive
        self.became: dict[int, tuple[Any, Any]] = {}

    # ---- the bytes
    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        end = self.position + count
        if count < 0 or end > len(self.data):
            raise CheckpointError("load: the pickle is cut off")
        result = self.data[self.position : end]
        self.position = end
        return result

    def number(self, count: int) -> int:
        """Return an unsigned number of `count` bytes."""
        return int.from_bytes(self.take(count), "little")

    def line(self) -> bytes:
        """Return the bytes before the next newline."""
        end = self.data.find(b"\n", self.position)
        if end < 0:
            raise CheckpointError("load: the pickle is cut off")
        result = self.data[self.position : end]
        self.position = end + 1
        return result

    # ---- the stack
    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self.stack.append(value)

    def pop(self) -> Any:
        """Remove the last value and return it."""
        value = self.stack.pop()
        if value is _MARK:
            raise CheckpointError("load: the pickle is damaged: a mark where a value is required")
        return value

    def top(self, kinds: tuple[type, ...]) -> Any:
        """Return the last value, which must be of one of these types, or of a listed one."""
        value = self.stack[-1]
        if type(value) not in kinds and not self.safe.lists(type(value)):
            raise CheckpointError(
                f"load: the pickle fills a {type(value).__name__}, where one of "
                f"{', '.join(kind.__name__ for kind in kinds)} is required"
            )
        return value

    def to_mark(self) -> list[Any]:
        """Remove the values down to the last mark and return them."""
        position = len(self.stack) - 1
        while self.stack[position] is not _MARK:
            position -= 1
            if position < 0:
                raise CheckpointError("load: the pickle is damaged: no mark on the stack")
        values = self.stack[position + 1 :]
        del self.stack[position:]
        return values

    def recall(self, number: int) -> None:
        """Push the value of the memo under a number."""
        value = self.memo[number]
        if self.became and id(value) in self.became:
            value = self.became[id(value)][1]
        self.push(value)

    def remember(self, number: int) -> None:
        """Put the last value into the memo under a number."""
        if number > _HIGHEST_MEMO:
            raise CheckpointError(f"load: the pickle is damaged: memo number {number}")
        if self.stack[-1] is _MARK:
            raise CheckpointError("load: the pickle is damaged: a mark in the memo")
        self.memo[number] = self.stack[-1]

    def global_(self, module: Any, name: Any) -> None:
        """Push the table's entry for a name."""
        if type(module) is not str or type(name) is not str:
            raise CheckpointError("load: the pickle is damaged: names must be text")
        self.push(self.find(module, name))

    def reduce(self, function: Any, args: Any) -> None:
        """Call a function of the table, or a listed one."""
        if self.safe.lists(function):
            self.push(_run_listed(function, function, *_real(args)))
            return
        if type(function) is not Named:
            raise CheckpointError(
                f"load: the pickle calls a {type(function).__name__}, which load does not allow"
            )
        _check_arguments(args)
        try:
            self.push(function.call(*args))
        except (CheckpointError, MemoryError):
            raise
        except Exception as error:
            raise CheckpointError(
                f"load: the pickle calls {function.name} with wrong arguments ({error})"
            ) from error

    def make(self, kind: Any, args: Any) -> None:
        """Make an object of a listed class by `__new__`, or call a function of the table."""
        if self.safe.lists(kind) and isinstance(kind, type):
            self.push(_run_listed(kind, kind.__new__, kind, *_real(args)))
        else:
            self.reduce(kind, args)


def _check_arguments(args: Any) -> None:
    if type(args) is not tuple:
        raise CheckpointError("load: the pickle is damaged: arguments must be a tuple")


def _real(args: Any) -> list[Any]:
    """Return the arguments for a listed function, with objects in the place of names."""
    _check_arguments(args)
    return [_object(value) for value in args]


def _object(value: Any) -> Any:
    if type(value) is not Named:
        return value
    if value.real is None:
        raise CheckpointError(
            f"load: the pickle uses the name {value.name} as a value, which load does not allow"
        )
    return value.real


def _run_listed(listed: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Call what the program listed; its errors say so."""
    try:
        return function(*args)
    except (CheckpointError, MemoryError):
        raise
    except Exception as error:
        name = f"{listed.__module__}.{getattr(listed, '__qualname__', listed)}"
        raise CheckpointError(
            f"load: {name} of `safe_globals` could not be made or filled from the file "
            f"({type(error).__name__}: {error})"
        ) from error


def _set_state(target: Any, state: Any) -> None:
    """Do what Python's BUILD does: `__setstate__`, or attributes and slots."""
    set_state = getattr(type(target), "__setstate__", None)
    if set_state is not None:
        set_state(target, _object(state))
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        target.__dict__.update({key: _object(value) for key, value in state.items()})
    for key, value in (slots or {}).items():
        setattr(target, key, _object(value))


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # texts of Python 2


def _int(m: Machine) -> None:
    line = m.line()
    m.push({b"00": False, b"01": True}[line] if line in (b"00", b"01") else int(line))


def _quoted(m: Machine) -> None:
    line = m.line().strip()
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
        raise CheckpointError("load: the pickle is damaged: a quoted text is required")
    escapes = re.findall(rb"\\([4-7][0-7]{2}|.)", line[1:-1], re.DOTALL)
    if any(len(e) > 1 or e not in b"\n\\'\"abfnrtvx01234567" for e in escapes):
        raise CheckpointError("load: the pickle is damaged: an escape that Python does not write")
    m.push(_decoded(codecs.escape_decode(line[1:-1])[0]))


def keys(values: Any) -> Any:
    """Return values that become keys or members of sets; raise if hashing one costs too much.

    A tuple that holds the same tuple twice, and so on, takes exponential time to hash; a deeply
    nested one overflows the stack.
    """
    level, count = [value for value in values if type(value) is tuple], 0
    for _ in range(_DEEPEST_KEY):
        if not level:
            return values
        count += sum(map(len, level))
        if count > _LARGEST_KEY + _LARGE_KEYS * len(values):
            break
        level = [value for group in level for value in group if type(value) is tuple]
    raise CheckpointError(
        "load: the pickle has a key that consists of too many values, which load does not allow"
    )


def _pairs(m: Machine) -> list[tuple[Any, Any]]:
    values = m.to_mark()
    if len(values) % 2:
        raise CheckpointError("load: the pickle is damaged: a key without a value")
    return list(zip(keys(values[::2]), values[1::2], strict=True))


def _set_items(m: Machine, pairs: list[tuple[Any, Any]]) -> None:
    target = m.top((dict, OrderedDict, Counter))
    for key, value in pairs:
        target[key] = value


def _set_item(m: Machine) -> None:
    value, key = m.pop(), m.pop()
    _set_items(m, [(*keys([key]), value)])


def _append(m: Machine) -> None:
    value = m.pop()
    m.top((list,)).append(value)


def _last(m: Machine, count: int) -> tuple[Any, ...]:
    values = [m.pop() for _ in range(count)]
    return tuple(reversed(values))


def _stack_global(m: Machine) -> None:
    name, module = m.pop(), m.pop()
    m.global_(module, name)


def _call(m: Machine) -> None:
    args, function = m.pop(), m.pop()
    m.reduce(function, args)


def _build(m: Machine) -> None:
    state, old = m.pop(), m.pop()
    new = m.build(old, state)
    if new is NotImplemented:
        kind = type(old)
        if not m.safe.lists(kind):
            raise CheckpointError(
                f"load: the pickle sets the state of a {kind.__name__}, which load does not "
                "allow; its "
                "class is not listed in `safe_globals`"
            )
        _run_listed(kind, _set_state, old, state)
        new = old
    if new is not old:
        m.became[id(old)] = (old, new)
    m.push(new)


def _new(m: Machine) -> None:
    args, kind = m.pop(), m.pop()
    m.make(kind, args)


def _pop_any(m: Machine) -> None:
    m.stack.pop()


def _duplicate(m: Machine) -> None:
    m.push(m.stack[-1])


def _signed(m: Machine, count: int) -> int:
    return int.from_bytes(m.take(count), "little", signed=True)


def _long_line(m: Machine) -> None:
    m.push(int(m.line().rstrip(b"L")))


_OPCODES: dict[bytes, Callable[[Machine], Any]] = {
    b"\x80": lambda m: m.take(1),  # PROTO
    b"\x95": lambda m: m.take(8),  # FRAME
    b"(": lambda m: m.push(_MARK),
    b"0": _pop_any,
    b"1": lambda m: m.to_mark(),
    b"2": _duplicate,
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(True),
    b"\x89": lambda m: m.push(False),
    # numbers
    b"I": _int,
    b"J": lambda m: m.push(_signed(m, 4)),
    b"K": lambda m: m.push(m.number(1)),
    b"M": lambda m: m.push(m.number(2)),
    b"L": _long_line,
    b"\x8a": lambda m: m.push(_signed(m, m.number(1))),
    b"\x8b": lambda m: m.push(_signed(m, _signed(m, 4))),
    b"F": lambda m: m.push(float(m.line())),
    b"G": lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
    # texts and bytes
    b"S": _quoted,
    b"T": lambda m: m.push(_decoded(m.take(_signed(m, 4)))),
    b"U": lambda m: m.push(_decoded(m.take(m.number(1)))),
    b"V": lambda m: m.push(m.line().decode("raw-unicode-escape")),
    b"X": lambda m: m.push(_decoded(m.take(m.number(4)))),
    b"\x8c": lambda m: m.push(_decoded(m.take(m.number(1)))),
    b"\x8d": lambda m: m.push(_decoded(m.take(m.number(8)))),
    b"B": lambda m: m.push(m.take(m.number(4))),
    b"C": lambda m: m.push(m.take(m.number(1))),
    b"\x8e": lambda m: m.push(m.take(m.number(8))),
    b"\x96": lambda m: m.push(bytearray(m.take(m.number(8)))),
    # containers
    b"]": lambda m: m.push([]),
    b"l": lambda m: m.push(m.to_mark()),
    b"a": _append,
    b"e": lambda m: (lambda values: m.top((list,)).extend(values))(m.to_mark()),
    b")": lambda m: m.push(()),
    b"t": lambda m: m.push(tuple(m.to_mark())),
    b"\x85": lambda m: m.push(_last(m, 1)),
    b"\x86": lambda m: m.push(_last(m, 2)),
    b"\x87": lambda m: m.push(_last(m, 3)),
    b"}": lambda m: m.push({}),
    b"d": lambda m: m.push(dict(_pairs(m))),
    b"s": _set_item,
    b"u": lambda m: _set_items(m, _pairs(m)),
    b"\x8f": lambda m: m.push(set()),
    b"\x90": lambda m: (lambda values: m.top((set,)).update(values))(keys(m.to_mark())),
    b"\x91": lambda m: m.push(frozenset(keys(m.to_mark()))),
    # names of the table
    b"c": lambda m: m.global_(_decoded(m.line()), _decoded(m.line())),
    b"\x93": _stack_global,
    b"R": _call,
    b"\x81": _new,  # NEWOBJ: the classes of the table are called
    b"b": _build,
    b"Q": lambda m: m.push(m.persistent(m.pop())),
    # the memo
    b"g": lambda m: m.recall(int(m.line())),
    b"h": lambda m: m.recall(m.number(1)),
    b"j": lambda m: m.recall(m.number(4)),
    b"p": lambda m: m.remember(int(m.line())),
    b"q": lambda m: m.remember(m.number(1)),
    b"r": lambda m: m.remember(m.number(4)),
    b"\x94": lambda m: m.remember(len(m.memo)),
}


def run(
    data: bytes,
    position: int,
    find: Callable[[str, str], Any],
    persistent: Callable[[Any], Any],
    build: Callable[[Any, Any], Any],
    safe: SafeGlobals | None = None,
) -> tuple[Any, int]:
    """Return the object of the pickle at `position`, and the position of its end.

    Args:
        find: returns the table's entry for a module and a name; raises for other names.
        persistent: returns the storage for a persistent id.
        build: sets the state of an object of the table and returns it, or NotImplemented.
        safe: the names that the program listed, for names that the table does not have.
    """
    m = Machine(data, position, find, persistent, build, safe or SafeGlobals())
    try:
        while True:
            code = m.take(1)
            if code == b".":
                return _result(m.pop()), m.position
            operation = _OPCODES.get(code)
            if operation is None:
                name = _REFUSED.get(code)
                raise CheckpointError(
                    f"load: the pickle uses {name}, which load does not allow; nothing was executed"
                    if name
                    else f"load: the pickle is damaged: {code!r} is not an opcode"
                )
            operation(m)
    except CheckpointError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"load: the pickle is damaged near byte {m.position} ({type(error).__name__}: {error})"
        ) from error


def _result(value: Any) -> Any:
    if type(value) is Named:
        raise CheckpointError(f"load: the pickle holds no data, only the name {value.name}")
    return value
