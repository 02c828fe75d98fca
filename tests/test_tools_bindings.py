"""The generator of bindings reads the headers as C does, and writes every operator."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS / "bindings"))

import declarations  # noqa: E402
import model  # noqa: E402
import node  # noqa: E402
import rust  # noqa: E402

MODEL = model.load()


def test_constants_sizes_and_offsets_are_those_of_c(tmp_path: pathlib.Path) -> None:
    text = model.c_of_layout(MODEL)
    assert "offsetof(plait_runtime, quiesce)" in text
    assert "sizeof(plait_run_tensor) == 64" in text
    assert "PLAIT_RUN_MEMORY_ERROR == -7LL" in text
    source = tmp_path / "layout.c"
    source.write_text(text)
    include = [f"-I{folder}" for folder in model.include_folders()]
    cc = os.environ.get("CC", "cc").split()
    subprocess.run([*cc, "-std=c11", "-fsyntax-only", *include, str(source)], check=True)


def test_a_header_becomes_plain_data() -> None:
    header = declarations.parse(
        "x.h",
        """
        /** A pair. */
        typedef struct pair {
          int32_t a, b; /**< both */
          const char *const *names;
          union { int64_t i; double f; } u;
          int (*call)(void *arg, struct pair *);
        } pair;
        enum { LOW = -1, NEXT, HIGH = 1 << 4 };
        typedef enum color { RED = 2, BLUE } color;
        #ifdef __cplusplus
        not read
        #endif
        static inline int hidden(int x) { return x ? 1 : 2; }
        /** Make one. */
        pair *make(const char *name, double);
        """,
    )
    fields = header.structs[0].fields
    assert [(f.name, f.type.kind, f.doc) for f in fields] == [
        ("a", "name", "both"),
        ("b", "name", "both"),
        ("names", "pointer", ""),
        ("u", "union", ""),
        ("call", "function", ""),
    ]
    assert header.structs[0].doc == "A pair."
    inner = fields[2].type.to
    assert inner is not None and inner.const and inner.to is not None and inner.to.const
    values = {constant.name: constant.value for constant in header.constants}
    assert values == {"LOW": -1, "NEXT": 0, "HIGH": 16, "RED": 2, "BLUE": 3}
    (make,) = header.functions
    assert (make.name, make.doc, len(make.parameters)) == ("make", "Make one.", 2)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("int x = 3;", r"x.h:1: '\(' is required, got '='"),
        ("typedef struct a {\n  int b : 3;\n} a;", "x.h:2: ';' is required, got ':'"),
        ("enum { A = B };", "x.h:1: 'a whole number' is required, got 'B'"),
        ("typedef struct a {", "is required, got ''"),
    ],
)
def test_an_unknown_declaration_is_an_error_with_its_line(text: str, error: str) -> None:
    with pytest.raises(declarations.HeaderError, match=error):
        declarations.parse("x.h", text)


def test_parameters_of_run_h_have_roles() -> None:
    functions = {f.name: f for f in MODEL.header("run.h").functions}
    assert len(functions) == 12
    assert model.roles(functions["plait_run_open"]) == ["string", "settings", "handle_out"]
    expected = ["handle", "number", "number", "data", "nbytes", "number"]
    assert model.roles(functions["plait_run_set"]) == expected
    assert model.roles(functions["plait_run_save_memory"]) == ["handle", "data_out", "nbytes_out"]
    status = {name for name, each in functions.items() if model.returns_status(each)}
    names = "open open_memory get set execute save save_memory"
    assert status == {f"plait_run_{name}" for name in names.split()}


def test_identifiers_are_of_one_operator() -> None:
    names = [o.identifier for o in MODEL.operators]
    names += [f"{o.identifier}_" for o in MODEL.operators if o.inplace]
    assert len(names) == len(set(names)) > 600
    assert all(name.isidentifier() for name in names)


def test_every_operator_is_in_every_language() -> None:
    written = rust.emit(MODEL)
    functions = set(re.findall(r"^pub fn (?:r#)?(\w+)", written["operators.rs"], re.MULTILINE))
    assert {o.identifier for o in MODEL.operators} <= functions
    assert {f"{o.identifier}_" for o in MODEL.operators if o.inplace} <= functions
    assert "unsafe {" not in written["operators.rs"]
    assert (
        "pub fn conv2d_with(input: &Tensor, weight: &Tensor, options: Conv2dOptions<'_>)"
        in (written["operators.rs"])
    )
    files = node.emit(MODEL)
    rows = json.loads(re.sub(r",\s*\];", "]", files["operators.js"].partition("= ")[2]))
    assert [row[0] for row in rows] == [o.name for o in MODEL.operators]
    assert ["add", "add", ["self", "other", "alpha"], 2, True, True] in rows
    assert ">>>" not in written["operators.rs"] + files["operators.d.ts"]


def test_the_model_is_json() -> None:
    table = json.loads(json.dumps(model.plain(MODEL)))
    assert {o["name"] for o in table["operators"]} == {o.name for o in MODEL.operators}
    add = next(o for o in table["operators"] if o["name"] == "add")
    assert add["parameters"][2]["default"] == 1
    assert [entry["name"] for entry in table["libraries"]][:2] == ["plait_abi", "plait_ops"]
