"""Tests of the emitters: C++ that compiles, JSON, stubs that parse, pages."""

from __future__ import annotations

import ast
import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import plait_abi
import plait_ops
from plait_ops import specs
from plait_ops.emit import (
    derivatives,
    facts,
    functions,
    header,
    kernels,
    ops_json,
    pages,
    register,
    stubs,
    words_page,
)
from plait_ops.lower.expressions import BUILTINS
from plait_ops.schema import parse
from plait_ops.spec import NAMESPACES, Pointwise
from plait_ops.words import WORDS

OPERATORS = list(specs.all())
PROGRAM = """
#include <plait/ops.hpp>
plait::Tensor forward(const plait_runtime *runtime, plait::Tensor x, plait::Tensor w) {
  const plait::Ops ops(runtime);
  plait::Tensor y = ops.relu(ops.linear(x, w));
  y = ops.add(ops.mul(y, 2.0), ops.zeros({2, 3}));
  ops.add_(y, 1);
  auto [values, indices] = ops.max_dim(y, -1);
  for (const plait::Tensor &part : ops.split(values, 2)) y = ops.cat({y, part}, 0);
  return ops.sum(y, plait::Dims{0}, true);
}
"""


def test_the_header_compiles_without_warnings(tmp_path: pathlib.Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    assert compiler, "a C++ compiler is required, as for the build"
    for name, text in header.emit(OPERATORS).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (tmp_path / "program.cpp").write_text(PROGRAM)
    includes = [f"-I{tmp_path / 'include'}", f"-I{plait_abi.paths()['include']}"]
    command = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *includes]
    done = subprocess.run(
        [*command, str(tmp_path / "program.cpp")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_operator_is_registered_once() -> None:
    text = register.emit(OPERATORS)["register.cpp"]
    for spec in OPERATORS:
        assert text.count(f"{{PLAIT_HEADER(plait_op_def), {json.dumps(spec.schema.text)}") == 1
    assert f"kOperators = {len(OPERATORS)};" in register.emit(OPERATORS)["operators.hpp"]


@pytest.mark.long
def test_a_change_of_one_spec_changes_one_unit() -> None:
    before = functions.emit(OPERATORS)
    without = functions.emit([spec for spec in OPERATORS if spec.name != "cat"])
    assert sum(before[name] != without[name] for name in before) == 1


def test_kernel_units_hold_each_scalar_function_once() -> None:
    files = kernels.emit(OPERATORS)
    selection = [spec for spec in OPERATORS if isinstance(spec, Pointwise) and spec.scalar]
    text = "".join(files.values())
    (activations,) = [unit for unit in files.values() if '"pointwise/activations.h"' in unit]
    assert "PLAIT_POINTWISE(relu, " in activations
    assert "PLAIT_POINTWISE(softplus, " in activations
    for family in {spec.family for spec in selection}:
        assert text.count(f'#include "{family}.h"\n') == 1
    assert text.count("PLAIT_POINTWISE") == len(selection)
    assert 'PLAIT_POINTWISE(add, "add", 2, 1, SAME, ANY)' in text
    assert 'PLAIT_POINTWISE(div, "true_divide", 2, 0, FLOAT, INEXACT)' in text
    assert 'PLAIT_POINTWISE(lt, "lt", 2, 0, BOOL, ALL)' in text


def test_a_scalar_function_takes_no_strings(scratch: None) -> None:
    bad = Pointwise('shout(Tensor self, str how="loud") -> Tensor', doc="x")
    with pytest.raises(ValueError, match="shout: a scalar function takes no strings"):
        kernels.emit([bad])


def test_json() -> None:
    table = json.loads(ops_json.emit(OPERATORS)["ops.json"])["operators"]
    assert [entry["name"] for entry in table] == [spec.name for spec in OPERATORS]
    for entry in table:
        schema = parse(entry["schema"])
        assert [a["name"] for a in entry["arguments"]] == [a.name for a in schema.arguments]
    add = next(entry for entry in table if entry["name"] == "add")
    assert add["differentiable"] == ["self", "other"]
    assert {"pointwise", "inplace", "out"} <= set(add["flags"])


def test_stubs_are_python() -> None:
    files = stubs.emit(OPERATORS)
    stub_of = {"": "functions.pyi"} | {f"{space}_": f"{space}.pyi" for space in NAMESPACES}
    names = {
        prefix + node.name
        for prefix, file in stub_of.items()
        for node in ast.parse(files[file]).body
        if isinstance(node, ast.FunctionDef)
    }
    assert names == {
        spec.schema.base + form
        for form, variant in (("", "function"), ("_", "function_"))
        for spec in OPERATORS
        if variant in spec.variants
    }
    methods = ast.parse("class Tensor:\n" + files["methods.pyi"]).body[0]
    assert isinstance(methods, ast.ClassDef)
    results = {node.name for node in methods.body if isinstance(node, ast.FunctionDef)}
    assert {"add", "add_", "sum", "view", "max"} <= results
    assert not {"zeros", "where", "gelu", "gelu_", "conj_"} & results
    assert results == {
        spec.schema.base + form
        for form in ("", "_")
        for spec in OPERATORS
        if "method" in spec.variants and (not form or spec.inplace)
    }


def test_the_table_of_derivatives() -> None:
    rows = {
        name.strip(" `"): (back.strip(), forth.strip())
        for _, name, back, forth, _ in (
            line.split("|")
            for line in derivatives.emit(OPERATORS)["derivatives.md"].splitlines()
            if line.startswith("| `")
        )
    }
    assert set(rows) == {operator.name for operator in OPERATORS}
    assert rows["mm"] == ("spec", "spec")
    assert rows["exp"] == ("spec", "diagonal")
    assert rows["cumsum"] == ("spec", "transposition")
    assert rows["transpose"] == ("spec", "view") and rows["detach"] == ("cut", "cut")
    assert rows["eq"] == rows["randint"] == rows["argmax"] == ("constant", "constant")
    assert rows["special_airy_ai"] == ("none", "none")
    for operator in OPERATORS:  # the emitted definition has the functions that the table says
        result = functions.functions_of(operator)
        back, forth = rows[operator.name]
        refuses = result.get("vjp") == "no_derivative"
        assert ("vjp" in result) == (back == "spec" or refuses)
        assert not refuses or (back == "constant" and "decompose" in result)
        assert ("jvp" in result) == (forth == "spec")
        assert ("decompose" in result) or back != "parts"


def test_the_table_of_facts(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "packages" / "core" / "cpp" / "normalization"
    folder.mkdir(parents=True)
    (folder / "softmax.cpp").write_text('PLAIT_KERNEL("softmax", softmax);\n')
    rows = {
        line.split("|")[1].strip(" `"): [cell.strip() for cell in line.split("|")[2:-1]]
        for line in facts.emit(OPERATORS, tmp_path)["facts.md"].splitlines()
        if line.startswith("| `")
    }
    assert set(rows) == {operator.name for operator in OPERATORS}
    kernel = "normalization/softmax.cpp"
    assert rows["softmax"] == ["spec", "data", "data", "formula", "", "yes", kernel]
    assert rows["sin"][1:6] == ["data", "data", "elements", "yes", ""]
    assert rows["sin"][6] == "pointwise/trigonometric.h"
    assert rows["linear"][1:3] == ["code", "code"] and rows["matmul"][1] == "parts"
    assert rows["nonzero"][1:3] == ["each sample", ""]


@functools.cache
def page_files() -> dict[str, str]:
    return pages.emit(OPERATORS)


def test_pages_name_every_operator() -> None:
    files = page_files()
    for spec in OPERATORS:
        space, _, name = spec.name.partition("_")
        label = f"{space}.{name}" if space in NAMESPACES and name else spec.name
        page = "parts" if spec.internal else spec.family
        if not spec.schema.overload or spec.internal:
            assert f"(operator-{label})=\n## {label}\n" in files[f"{page}.md"]
            assert spec.internal or f"[`{label}`](#operator-{label}) | " in files[f"{page}.md"]


def test_a_page_says_how_operators_are_called() -> None:
    files = page_files()
    for family, calls in (
        ("pointwise/activations", "`plait.relu`, `Tensor.relu`, `plait.relu_`, `Tensor.relu_`"),
        ("pointwise/activations", "`plait.nn.functional.logsigmoid`"),
        ("pointwise/gelu", "`plait.nn.functional.gelu`"),
        ("creation/copies", '`plait_abi.operator("cast")`'),
        ("views/views", "`Tensor.view`"),
        ("linalg/determinants", "`plait.linalg.det`"),
    ):
        assert re.search(rf"\*called as {re.escape(calls)}[;.]", files[f"{family}.md"]), calls


def test_a_page_has_signatures_and_arguments() -> None:
    page = page_files()["pointwise/arithmetic.md"]
    head, _, rest = page.partition("(operator-add)=")
    assert head.startswith("# Arithmetic\n\n| Name | What it does |") and "| [`add`]" in head
    entry = rest.partition("(operator-")[0]
    assert "    input: Tensor | Number,\n" in entry and "\n- `alpha`: The factor of" in entry
    assert "`self`" not in entry and entry.index("**Arguments**") < entry.index("<details>")
    assert "add(Tensor|Scalar self" in entry.partition("<details>")[2]  # for implementers


def test_a_page_shows_costs() -> None:
    files = page_files()
    for family, text in (
        ("linalg/matmul", "return 2 * numel(self) * mat2.shape[1]"),
        (
            "linalg/linear",
            "# the sums begin with the bias\nreturn 2 * numel(input) * weight.shape[0]",
        ),
        ("reduction/reductions", "return numel(self)"),
        ("reduction/scans", "return numel(self)"),
    ):
        assert f"\nCost:\n\n```python\n{text}\n```\n" in files[f"{family}.md"], family


def test_a_page_links_the_files_of_its_family(tmp_path: pathlib.Path) -> None:
    ops, core = "packages/ops/src/plait_ops", "packages/core/cpp"
    there = {
        "definition": f"{ops}/specs/reduction/scans.py",
        "test data": f"{ops}/samples/reduction/scans.py",
        "kernels: scans.cpp": f"{core}/reduction/scans.cpp",
        "kernels: scans_extremes.cpp": f"{core}/reduction/scans_extremes.cpp",
    }
    for file in there.values():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    files = pages.emit(OPERATORS, tmp_path)
    links = ", ".join(f"[{text}](../../../../{file})" for text, file in there.items())
    folded = f"<details><summary>Files</summary>\n\n{links}.\n\n</details>\n"
    assert files["reduction/scans.md"].endswith(folded)
    assert "<summary>Files" not in files["reduction/norms.md"]


def test_the_page_of_words_names_every_word() -> None:
    page = words_page.emit()["words.md"]
    for word in WORDS.values():
        assert page.count(f"### {word.name}\n\n```text\n{word.name}(") == 1
        assert word.function.__doc__
        assert " ".join(word.function.__doc__.split()) in " ".join(page.split())
    assert "wrap_dim(argument: str, dim: int, shape: ints) -> int\n" in page
    for name in BUILTINS:
        assert f"- ``{name}(" in page


@pytest.mark.long
def test_the_command(tmp_path: pathlib.Path) -> None:
    for option, name in (
        ((), "register.cpp"),
        (("--kernels",), "pointwise_0.cpp"),
        (("--pages",), "index.md"),
    ):
        command = [sys.executable, "-m", "plait_ops.emit", *option, str(tmp_path)]
        subprocess.run(command, check=True)
        assert (tmp_path / name).is_file()


def test_the_library_is_where_it_says() -> None:
    assert pathlib.Path(plait_ops.library_path()).name == "libplait_ops.so"
    plait_ops.load()  # a second call does nothing


def test_a_missing_library_is_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plait_ops, "__file__", "/nowhere/plait_ops/__init__.py")
    with pytest.raises(ImportError, match=r"libplait_ops\.so is missing"):
        plait_ops.library_path()
