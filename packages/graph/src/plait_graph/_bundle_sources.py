"""What a bundle is compiled from: sources that packages install, and those of its operators."""

from __future__ import annotations

import dataclasses
import fnmatch
import importlib.util
import json
import pathlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

import plait_abi
from plait_graph._bundle_needs import (
    KNOWN_PRODUCTS,
    Needs,
    Product,
    header,
    products_header,
    register_code_header,
)
from plait_graph._objects import WHOLE_PROGRAM, Job
from plait_graph._webassembly import MACHINE, WITHOUT
from plait_ops import specs
from plait_ops.emit import selection
from plait_ops.emit.kernels import emit as emit_kernels
from plait_ops.spec import Composite, Operator, View

__all__ = ["Level", "Library", "Selection", "select", "served"]

Level = Literal["avx2", "simd128", "base"]

# what runs once for each call
_SMALL = ("-Os", "-I.")
_JOINED = (*_SMALL, WHOLE_PROGRAM)
_REGISTER_CODE = '-DPLAIT_REGISTER_CODE="register_code.h"'
# no exception passes through a kernel; aarch64 has tables unless both kinds are refused
_NO_UNWINDING = ("-fno-exceptions", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
_KERNELS = (*_NO_UNWINDING, "-I.", '-DPLAIT_SELECTION="selection.h"')
# Code at multiples of 16 and 32 bytes is larger by a thirtieth. Clang has no flag for jumps, and
# would say so.
_LARGER = ("-falign-*",)
_UNALIGNED = (
    *(f"-falign-{each}=1" for each in ("functions", "loops", "jumps")),
    "-Wno-ignored-optimization-argument",
)
# bundle.cpp defines their functions
_REPLACED = ("libraries.cpp", "device_graph.cpp")
# how kernels name the operator that they are registered for
_REGISTERED = r'PLAIT_\w*KERNEL\w*\(\s*"([^"]+)"'
_POINTWISE = r'PLAIT_POINTWISE\w*\(\w+, "([^"]+)"'
# how sources written by hand name an operator that they call
_CALLED = r'(?:\(\S*\bruntime,\s+|\(r,\s+|\bop\(|\.name == )"([a-z]\w*)"'


class Library:
    """The sources of a library that a package installs, and how they are compiled.

    Args:
        package: the import package.
        name: of the library.
        without: patterns of flags that are left out.
    """

    def __init__(self, package: str, name: str, without: Collection[str] = ()) -> None:
        spec = importlib.util.find_spec(package)
        assert spec and spec.submodule_search_locations, package
        self.name = name
        self.root = pathlib.Path(spec.submodule_search_locations[0]).resolve() / "sources"
        record = json.loads((self.root / "libraries.json").read_text(encoding="utf-8"))[name]
        self.sources = [self.root / file for file in record["sources"]]
        self._flags = {
            pattern: [f for f in flags if not any(fnmatch.fnmatch(f, each) for each in without)]
            for pattern, flags in record["flags"].items()
        }
        folders = [self.root / each for each in record["include_dirs"]]
        folders += [self.root.parent / "include", pathlib.Path(plait_abi.paths()["include"])]
        self._include = [f"-I{folder}" for folder in folders if folder.is_dir()]

    @property
    def plugin(self) -> str:
        """The name of its plug-in, as other libraries are linked to the same file."""
        return f"plait_plugin_of_{self.name}"

    def job(self, source: pathlib.Path, *flags: str) -> Job:
        """Return how a source is compiled: `flags`, and then those of the library."""
        name = source.relative_to(self.root).as_posix() if source.is_absolute() else str(source)
        own = [
            flag
            for pattern, more in self._flags.items()
            if fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(source.name, pattern)
            for flag in more
        ]
        return Job(source, (*self._include, f"-Dplait_plugin_v1={self.plugin}", *flags, *own))


@dataclasses.dataclass(frozen=True)
class Selection:
    """The sources of a bundle.

    Attributes:
        generated: texts of files, by their paths.
        sources: what is compiled in any case.
        on_demand: sources of kernels that others may call, with names that they define.
        kernels: the library that those belong to.
        kernel_flags: of kernels.
        exports: a pattern of symbols of the bundle.
    """

    generated: dict[str, str]
    sources: list[Job]
    on_demand: dict[pathlib.Path, set[str]]
    kernels: Library
    kernel_flags: tuple[str, ...]
    exports: str = "plait_run_*"

    def job(self, source: pathlib.Path) -> Job:
        """Return how a source of kernels is compiled."""
        return self.kernels.job(source, *self.kernel_flags)


def _texts(sources: Iterable[pathlib.Path]) -> Iterator[tuple[pathlib.Path, str]]:
    for source in sources:
        yield source, source.read_text(encoding="utf-8")


def _words(pattern: str, libraries: Iterable[Library]) -> set[str]:
    """Return what a pattern finds in the sources of libraries."""
    sources = [source for library in libraries for source in library.sources]
    return {word for _, text in _texts(sources) for word in re.findall(pattern, text)}


def select(needs: Needs, level: Level, machine: str) -> Selection:
    """Return what a bundle is compiled from.

    Args:
        needs: of the graphs.
        level: instructions of kernels.
        machine: as compilers name it.

    Raises:
        NotImplementedError: if no source has an operator, or a kernel for it.
    """
    abi, ops = Library("plait_abi", "plait_abi"), Library("plait_ops", "plait_ops")
    wasm = machine == MACHINE
    core = Library("plait_core", "plait_core_wasm" if wasm else "plait_core")
    run = Library("plait_graph", "plait_run")
    # the baseline's kernels have vectors of 16 bytes in the compiler's own types
    kernels = Library(
        "plait_core",
        f"plait_cpu_{'base' if wasm else level}",
        without=WITHOUT if wasm else _LARGER,
    )
    known = {each.name for each in specs.all()}
    names = known if needs.operators is None else set(needs.operators)
    required = needs.operators is not None
    more = _optimizers(names - known, required, without=WITHOUT if wasm else ())
    called = _words(_CALLED, [abi, run, *more]) & known
    with_kernel = served(needs.of_floats, kernels)
    operators = selection.closure(names | called, with_kernel)
    generated = selection.emit(operators, sorted(_words(r"\bOp::(\w+)", [ops])), with_kernel)
    generated["selection.h"] = header(needs, [each.name for each in operators])
    products = set(needs.products)
    if not KNOWN_PRODUCTS.issuperset(_multiplying(operators, kernels)):
        products.add(Product(None))
    generated["product_sizes_of_program.h"] = products_header(products)
    generated["register_code.h"] = register_code_header(needs, "none" if wasm else level)
    generated["bundle.cpp"] = _start([ops, core, kernels, *more])
    small = _SMALL if wasm else _JOINED
    jobs = [
        each.job(source, *small, *([_REGISTER_CODE] if each is run else []))
        for each in (abi, ops, core, run, *more)
        for source in each.sources
        if source.name not in _REPLACED
    ]
    # a page waits for each byte of its module
    kernel_flags = ("-Os", *_KERNELS) if wasm else ("-O2", *_UNALIGNED, *_KERNELS)
    for name in generated:
        if name.startswith("kernels/"):
            jobs.append(kernels.job(pathlib.Path(name), *kernel_flags))
        elif name.endswith(".cpp"):
            owner = run if name == "bundle.cpp" else ops
            jobs.append(owner.job(pathlib.Path(name), *small))
    result = Selection(generated, jobs, {}, kernels, kernel_flags)
    _add_kernels(result, operators, needs.operators or frozenset())
    return result


def served(names: Collection[str], kernels: Library) -> set[str]:
    """Return those of the names whose kernels decline no call of floating-point numbers."""
    operators = [each for each in specs.all() if each.name in names]
    loops = "".join(emit_kernels(operators).values())
    served = set(re.findall(_POINTWISE, loops))
    return served | (_words(r'PLAIT_FLOAT_KERNEL\("([^"]+)"', [kernels]) & set(names))


def _multiplying(operators: Sequence[Operator], kernels: Library) -> set[str]:
    """Return the operators whose kernels multiply matrices: their sources include its header."""
    names = {each.name for each in operators}
    return {
        name
        for source in kernels.sources
        if "linalg/gemm.h" in _included(source, kernels.root / "cpp")
        for name in re.findall(_REGISTERED, source.read_text(encoding="utf-8"))
        if name in names
    }


def _included(source: pathlib.Path, folder: pathlib.Path) -> set[str]:
    """Return the headers below a folder that a source includes, and that these include."""
    found: set[str] = set()
    todo = [source]
    while todo:
        text = todo.pop().read_text(encoding="utf-8")
        new = set(re.findall(r'#include "([^"]+)"', text)) - found
        found |= new
        todo += [folder / name for name in new if (folder / name).is_file()]
    return found


def _optimizers(names: set[str], required: bool, without: Collection[str]) -> list[Library]:
    """Return the library of optimizers if it has operators that a graph needs, or is installed."""
    installed = importlib.util.find_spec("plait_optim") is not None
    if not names and required:
        return []
    libraries = [Library("plait_optim", "plait_optim", without)] if installed else []
    schemas = _words(r'"(\w+)\(', libraries)
    for name in sorted(names - schemas):
        raise NotImplementedError(f"bundle: no installed package has the sources of `{name}`")
    return libraries


def _start(libraries: Sequence[Library]) -> str:
    """Return the source that starts what is linked into the bundle."""
    externs = "".join(f"extern const plait_plugin {each.plugin};\n" for each in libraries)
    plugins = ", ".join(f"&{each.plugin}" for each in libraries)
    return f"""#include "program/device_graph.hpp"
#include "run/libraries.hpp"

extern "C" {{
{externs}const plait_runtime *plait_runtime_v0(void);
const char *plait_runtime_refusal(void);
}}

namespace plait::graph {{

const plait_runtime *load_libraries(const char *) {{
  static const plait_runtime *loaded;
  if (loaded) return loaded;
  const plait_runtime *r = plait_runtime_v0();
  if (!r) throw StartError(plait_runtime_refusal());
  plait_thread *thread = r->thread();
  for (const plait_plugin *each : {{{plugins}}}) {{
    if (r->attach(thread, each) >= 0) continue;
    const std::string text = thread->error ? thread->error->message : each->name;
    r->clear(thread);
    throw StartError(text);
  }}
  return loaded = r;
}}

void load_device_library(const std::string &) {{}}

// The kernels are the CPU's, which records no work.
std::shared_ptr<Program::DeviceGraph> Program::DeviceGraph::make(Program &) {{ return nullptr; }}
Program::DeviceGraph::~DeviceGraph() = default;
void Program::DeviceGraph::begin(plait_thread *) {{}}
bool Program::DeviceGraph::run(plait_thread *) {{ return false; }}
std::string Program::DeviceGraph::text() const {{ return {{}}; }}

}}  // namespace plait::graph
"""


def _defined(source: pathlib.Path) -> set[str]:
    """Return names with all that a source defines: those of lines that are not indented."""
    texts = _texts(path for path in (source, source.with_suffix(".h")) if path.exists())
    lines = [line for _, text in texts for line in text.splitlines() if line[:1].isalpha()]
    return {word for line in lines for word in re.findall(r"\w+", line)}


def _add_kernels(
    result: Selection, operators: Sequence[Operator], required: frozenset[str]
) -> None:
    """Add the kernels of the operators to the sources; leave the others for those that call them.

    Raises:
        NotImplementedError: if there is no kernel for a primitive among those `required`.
    """
    names = {each.name for each in operators}
    pointwise = "".join(result.generated.values())
    found = set(re.findall(_POINTWISE, pointwise))
    for source, text in _texts(result.kernels.sources):
        registered = set(re.findall(_REGISTERED, text))
        found |= registered
        if registered & names or source.name == "plugin.cpp":
            result.sources.append(result.job(source))
        else:
            result.on_demand[source] = _defined(source)
    for each in operators:
        is_primitive = each.decompose_function is None and not isinstance(each, (Composite, View))
        if is_primitive and each.name in required - found:
            raise NotImplementedError(f"bundle: `{each.name}` has no kernel for the CPU")
