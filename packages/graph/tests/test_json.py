"""The reader and the writer of JSON, beside Python's."""

from __future__ import annotations

import json
import math
import random
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
Reader = Callable[[list[bytes]], list[str]]


@pytest.fixture(scope="module")
def read(compiled: Callable[..., Path]) -> Reader:
    """Return a function that gives the line of the reader for each text."""
    sources = (HERE / "programs" / "json_lines.cpp", HERE.parent / "cpp" / "json.cpp")
    program = compiled("json_lines", *sources)

    def run(texts: list[bytes]) -> list[str]:
        lines = "".join(text.hex() + "\n" for text in texts)
        done = subprocess.run([program], input=lines.encode(), capture_output=True, check=True)
        results = done.stdout.decode().split("\n")[:-1]
        assert len(results) == len(texts)
        return results

    return run


def integer(text: str) -> int:
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError("64 bits")
    return value


def number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("float64")
    return value


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key twice")
    return result


def constant(text: str) -> float:
    raise ValueError(text)


def expected(text: bytes) -> Any:
    """Return the value in a list, by Python's reader with our limits; None for an error."""
    try:
        value = json.loads(
            text.decode(),
            object_pairs_hook=members,
            parse_constant=constant,
            parse_float=number,
            parse_int=integer,
        )
        json.dumps(value, ensure_ascii=False).encode()  # no half of a surrogate pair
    except ValueError:
        return None
    return [value]


def check(texts: list[bytes], lines: list[str]) -> None:
    for text, line in zip(texts, lines, strict=True):
        wanted = expected(text)
        if wanted is None:
            assert line.startswith("error "), text
        else:
            assert line.startswith("ok "), (text, line)
            assert repr([json.loads(line[3:])]) == repr(wanted), text


SOUND = [
    b'{"a": [1, 2.5, -3e10, true, false, null, "x\\n\\u00e9"], "b": {}, "c": [], "d": {"e": [[]]}}',
    b'[{"op": "add", "in": ["%1", 1.0, 1], "out": ["%1"]}, {"float": "inf"}]',
    b"[" * 64 + b"]" * 64,
    '"é \U0001f600"'.encode(),
    b'"\\ud83d\\ude00 \\u0000 \\/ \x7f"',
    b"[-0, -0.0, 0e5, 1E-5, 1e-400, 9223372036854775807, -9223372036854775808]",
    b"0." + b"0" * 400 + b"1e500",
    b" \t\r\n1 ",
]
WRONG = {
    b"": "byte 0: a value is expected, found the end of the text",
    b"[1,]": "byte 3: a value behind the comma is expected, found ']'",
    b'{"a": 1,}': "byte 8: a value behind the comma is expected, found '}'",
    b'{"a" 1}': "byte 5: ':' is expected, found '1'",
    b"[1 2]": "byte 3: ',' or ']' is expected, found '2'",
    b"1 2": "byte 2: the end of the text is expected, found '2'",
    b"01": "byte 0: a number that begins with 0",
    b"1.": "byte 2: a digit is expected, found the end of the text",
    b"1e999": "byte 0: a float beyond float64",
    b"NaN": "byte 0: a value is expected, found 'N'",
    b"9223372036854775808": "byte 0: an integer beyond 64 bits",
    b'"\\ud800"': "byte 1: half of a surrogate pair",
    b'"\\x"': "byte 1: an unknown escape sequence",
    b'"\\': "byte 1: an unknown escape sequence",
    b'"a': "byte 0: the string that begins here does not end",
    b'"\n"': "byte 1: a control character in a string",
    b'"\xc0\x80"': "byte 1: a string that is not valid UTF-8",
    b'"\xed\xa0\x80"': "byte 1: a string that is not valid UTF-8",
    b'"\xf4\x90\x80\x80"': "byte 1: a string that is not valid UTF-8",
    b'{"a": 1, "\\u0061": 2}': 'byte 20: the object that ends here has the key "a" twice',
    b"\xef\xbb\xbf1": "byte 0: a value is expected, found 0xef",
    b"[1\x00]": "byte 2: ',' or ']' is expected, found 0x00",
    b"[" * 65 + b"]" * 65: "byte 64: lists and objects are nested deeper than 64 levels",
}


def test_sound_texts(read: Reader) -> None:
    lines = read(SOUND)
    check(SOUND, lines)
    assert all(line.startswith("ok ") for line in lines)


def test_errors_name_the_byte(read: Reader) -> None:
    assert read(list(WRONG)) == ["error " + text for text in WRONG.values()]


def test_a_million_levels_are_an_error(read: Reader) -> None:
    for text in (b"[" * 10**6, b'{"a":' * 10**6):
        (line,) = read([text])
        assert line.endswith("nested deeper than 64 levels")


def test_damaged_texts_as_python_reads_them(read: Reader) -> None:
    source = random.Random(1)
    signs = b'{}[],:"\\0123456789.eE+-tfnu \n'
    texts = []
    for _ in range(20_000):
        text = bytearray(source.choice(SOUND[:2]))
        for _ in range(source.randrange(1, 4)):
            at = source.randrange(len(text))
            piece = source.choice((b"", bytes([source.choice(signs)]), source.randbytes(1)))
            text[at : at + source.randrange(2)] = piece
        texts.append(bytes(text))
    lines = read(texts)
    check(texts, lines)
    assert sum(line.startswith("ok ") for line in lines) > 1000


def test_floats_are_read_and_written_exactly(read: Reader) -> None:
    source = random.Random(2)
    values = [struct.unpack("d", source.randbytes(8))[0] for _ in range(5000)]
    values = [x for x in values if math.isfinite(x)] + [0.1, 1.0, -2.0, 1e15, 1e16, 1e22, 5e-324]
    lines = read([repr(x).encode() for x in values])
    for x, line in zip(values, lines, strict=True):
        text = line.removeprefix("ok ")
        assert float(text) == x
        assert len(text) <= len(repr(x)) + 2
        assert "." in text or "e" in text
