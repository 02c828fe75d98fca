"""Check the contents of wheels against the manifest, and write bills of materials.

    python tools/contents.py [--glibc 2.35] [--sbom FOLDER] WHEEL ...

The manifest is `ALLOWED` below. Checked are the files; the size of the wheel; that no text or
library names a folder of the machine that built it; and of libraries the soname, the libraries that
they need, the folders that they search, and the versions of the system's symbols: ``--glibc`` is
the highest allowed one.
``--sbom`` writes a bill of materials for each wheel, in CycloneDX's JSON: its files with their
digests, the distributions that it declares, and libraries that it loads without linking.
"""

from __future__ import annotations

import argparse
import dataclasses
import email
import fnmatch
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence

__all__ = ["ALLOWED", "check", "main"]

# Of `plait_graph.bundle`: sources of libraries, and how they are compiled.
SOURCES = (
    "sources/libraries.json",
    "sources/cpp/*.[ch]pp",
    "sources/cpp/*/*.cpp",
    "sources/cpp/*/*.h",
    "sources/cpp/*/*.hpp",
)
# The files of wheels other than Python files, by package; * matches within a folder.
ALLOWED: dict[str, tuple[str, ...]] = {
    "plait": ("__init__.pyi", "utils/__init__.pyi"),
    "plait_abi": (
        "binding.pyi",
        "binding.cpython-*.so",
        "include/plait/abi.h",
        "include/plait/dlpack.h",
        "include/plait/*.hpp",
        "include/plait/collectives/*.hpp",
        "include/plait/free_threads.h",
        "include/plait/float8.h",
        "include/plait/half.h",
        "include/plait/place.h",
        "include/plait/python.h",
        "include/plait/sparse.h",
        "include/plait/warning.h",
        "lib/libplait_abi.so",
        "pkgconfig/plait-abi.pc",
        *SOURCES,
    ),
    "plait_autograd": ("_autograd.pyi", "_autograd.cpython-*.so", "lib/libplait_autograd.so"),
    "plait_conformance": (),
    "plait_core": (
        "*.pyi",
        "_core.cpython-*.so",
        "include/plait/batched.h",
        "include/kernels/*/*.h",
        "lib/libplait_core.so",
        "lib/libplait_cpu_base.so",
        "lib/libplait_cpu_avx2.so",
        "lib/libplait_cpu_exact.so",
        *SOURCES,
    ),
    "plait_data": (),
    "plait_distributed": (),
    "plait_cuda": (
        "lib/libplait_cuda.so",
        "kernels/*.fatbin",
        "emulation/libcuda.so.1",
        "emulation/libcublasLt.so.13",
        "emulation/libcudnn.so.9",
        "emulation/libcupti.so.13",
        "emulation/libnccl.so.2",
        "emulation/libplait_cuda_kernels.so",
    ),
    "plait_func": ("_layer.pyi", "_layer.cpython-*.so"),
    "plait_graph": (
        "_graph.pyi",
        "_graph.cpython-*.so",
        "include/plait/compiler.h",
        "include/plait/run.h",
        "lib/libplait_run.so",
        "plait_run.js",
        *SOURCES,
    ),
    "plait_mpi": ("lib/libplait_mpi.so",),
    "plait_multiprocessing": (
        "_shared.pyi",
        "_shared.cpython-*.so",
        "lib/libplait_multiprocessing.so",
    ),
    "plait_nn": ("*.pyi", "_*.cpython-*.so"),
    "plait_onnx": (),
    "plait_ops": ("ops.json", "include/plait/ops.hpp", "lib/libplait_ops.so", *SOURCES),
    "plait_optim": ("lib/libplait_optim.so", *SOURCES),
    "plait_ray": (),
    "plait_profiler": (
        "_observer.pyi",
        "_observer.cpython-*.so",
        "lib/libplait_profiler.so",
        "page/page.*",
        "page/*.js",
    ),
    "plait_torch": (
        "lib/libplait_torch.so",
        "*.txt",
        "sobol_numbers.bin",
        "*_names.json",
        "_torchscript/*.txt",
    ),
    "plait_ucx": ("lib/libplait_ucx.so",),
}
# the terms of third-party code
LICENSES = {"plait_torch": ("licenses/LICENSE-sobol",)}
# The most bytes of a wheel, in millions, by package.
LARGEST = {"plait_cuda": 40}
METADATA = ("METADATA", "RECORD", "WHEEL", "top_level.txt", "entry_points.txt", "licenses/LICENSE")
OPTIONAL = ("entry_points.txt",)
# Other libraries are opened by name when they are needed, so a wheel works without them.
NEEDED = ("libstdc++.so.6", "libgcc_s.so.1", "libc.so.6", "libm.so.6", "ld-linux-*.so.*")
SYMBOLS = ("GLIBC", "GLIBCXX", "CXXABI", "GCC")
FOLDERS = (rb"/home/", rb"/root/", rb"/tmp/", rb"/Users/", rb"\.wheels/", rb"/build/plait/")
# Allowed bytes that look like a path: patterns of the whole path.
HARMLESS = (rb"/tmp/",)  # examples in docstrings
LOADED = {"plait_core": "scipy-openblas32"}  # by dlopen: libscipy_openblas.so, or another BLAS


@dataclasses.dataclass(frozen=True)
class Linked:
    """The dynamic section of a shared library."""

    soname: str
    needed: tuple[str, ...]
    search: tuple[str, ...]
    versions: tuple[str, ...]


def linked(path: pathlib.Path) -> Linked:
    """Read the dynamic section of a library, with readelf."""
    command = ["readelf", "--dynamic", "--version-info", "--wide", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def entries(kind: str) -> tuple[str, ...]:
        return tuple(re.findall(rf"\({kind}\).*\[(.*)\]", text))

    versions = sorted(set(re.findall(r"Name: (\w+_[0-9.]+)\s+Flags", text)))
    soname = entries("SONAME")
    search = entries("RUNPATH") + entries("RPATH")
    return Linked(soname[0] if soname else "", entries("NEEDED"), search, tuple(versions))


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _names(package: str, names: Iterable[str]) -> list[str]:
    """Return the errors in a wheel's list of files."""
    wrong = []
    seen = set()
    for name in names:
        top, _, rest = name.partition("/")
        if top.endswith(".dist-info"):
            seen.add(rest)
            if rest not in (*METADATA, *LICENSES.get(package, ())):
                wrong.append(f"{name} is no part of the metadata")
            continue
        allowed = (*ALLOWED[package], "py.typed")
        python = rest.endswith(".py") and "tests" not in rest.split("/")
        if top != package:
            wrong.append(f"{name} lies outside of {package}/")
        elif not python and not any(_matches(rest, pattern) for pattern in allowed):
            wrong.append(f"{name} is not in the manifest")
    missing = {*METADATA, *LICENSES.get(package, ())} - seen - set(OPTIONAL)
    wrong += [f"{name} is missing from the metadata" for name in sorted(missing)]
    if f"{package}/py.typed" not in set(names):
        wrong.append(f"{package}/py.typed is missing")
    return wrong


def _matches(name: str, pattern: str) -> bool:
    return name.count("/") == pattern.count("/") and fnmatch.fnmatchcase(name, pattern)


def _library(name: str, path: pathlib.Path, package: str, glibc: str | None) -> list[str]:
    """Return the errors of one shared library."""
    result = linked(path)
    wrong = []
    plain = "/lib/" in name
    if plain and result.soname != path.name:
        wrong.append(f"{name}: the soname is {result.soname!r}")
    own = f"lib{package}.so"
    for needed in result.needed:
        if not any(fnmatch.fnmatchcase(needed, one) for one in NEEDED) and needed != own:
            wrong.append(f"{name} needs {needed}")
        if plain and needed == own:
            wrong.append(f"{name} needs {needed}")
    wrong += [f"{name} searches {one}" for one in result.search if one != "$ORIGIN/lib"]
    for version in result.versions:
        family, _, number = version.partition("_")
        if family not in SYMBOLS:
            wrong.append(f"{name} needs symbols of {version}")
        elif family == "GLIBC" and glibc and _version(number) > _version(glibc):
            wrong.append(f"{name} needs {version}; at most {glibc} is allowed")
    return wrong


def _paths(name: str, data: bytes) -> list[str]:
    wrong = []
    for pattern in FOLDERS:
        for match in re.finditer(rb"[\x21-\x7e]*" + pattern + rb"[\x21-\x7e]*", data):
            if name.endswith(".so") or pattern not in HARMLESS:
                text = match.group(0)[:80].decode("ascii")
                wrong.append(f"{name} names a folder of the building machine: {text}")
    return wrong


def check(wheel: pathlib.Path, glibc: str | None = None) -> list[str]:
    """Return a line for each error in a wheel.

    Args:
        wheel: its path.
        glibc: the highest version of the C library that its libraries may need; None: any.
    """
    package = wheel.name.split("-")[0]
    if package not in ALLOWED:
        return [f"{wheel.name}: tools/contents.py has no manifest for {package}"]
    size = wheel.stat().st_size / 1e6
    most = LARGEST.get(package, size)
    wrong = [f"it has {size:.1f} MB; at most {most} are allowed"] if size > most else []
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        wrong += _names(package, names)
        for name in names:
            data = archive.read(name)
            wrong += _paths(name, data)
            if data.startswith(b"\x7fELF"):
                path = pathlib.Path(archive.extract(name, folder))
                wrong += _library(name, path, package, glibc)
            elif name.endswith(".so"):
                wrong.append(f"{name} is no library")
    return [f"{wheel.name}: {line}" for line in wrong]


def bill(wheel: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Write the bill of materials of a wheel and return its path."""
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentScope, ComponentType
    from cyclonedx.model.license import LicenseExpression
    from cyclonedx.output import make_outputter
    from cyclonedx.schema import OutputFormat, SchemaVersion
    from packageurl import PackageURL

    with zipfile.ZipFile(wheel) as archive:
        (member,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(member))
        files = [
            Component(
                type=ComponentType.FILE,
                name=name,
                bom_ref=name,
                hashes=[
                    HashType(
                        alg=HashAlgorithm.SHA_256,
                        content=hashlib.sha256(archive.read(name)).hexdigest(),
                    )
                ],
            )
            for name in archive.namelist()
        ]
    licence = LicenseExpression(metadata["License-Expression"])
    name, version = metadata["Name"], metadata["Version"]
    own = Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        bom_ref=f"{name}=={version}",
        purl=PackageURL("pypi", None, name, version),
        licenses=[licence],
        components=files,
    )
    others = []
    for text in metadata.get_all("Requires-Dist", []):
        if "extra ==" in text:
            continue
        match = re.match(r"[A-Za-z0-9._-]+", text)
        assert match is not None, text
        loaded = LOADED.get(wheel.name.split("-")[0]) == match.group(0)
        others.append(
            Component(
                type=ComponentType.LIBRARY,
                name=match.group(0),
                bom_ref=match.group(0),
                purl=PackageURL("pypi", None, match.group(0)),
                scope=ComponentScope.REQUIRED,
                description=f"{text}; its libscipy_openblas.so is loaded" if loaded else text,
            )
        )
    bom = Bom(components=others)
    bom.metadata.component = own
    bom.register_dependency(own, others)
    path = folder / f"{wheel.name.removesuffix('.whl')}.cdx.json"
    written = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6)
    path.write_text(written.output_as_string(indent=1), encoding="utf-8")
    return path


def main(arguments: Sequence[str]) -> int:
    """Check the wheels of the command line; return 1 if there are errors."""
    parser = argparse.ArgumentParser("tools/contents.py")
    parser.add_argument("wheel", nargs="+", type=pathlib.Path)
    parser.add_argument("--glibc", help="the highest version that libraries may need")
    parser.add_argument("--sbom", type=pathlib.Path, help="write bills of materials there")
    flags = parser.parse_args(arguments)
    wrong = [line for wheel in flags.wheel for line in check(wheel, flags.glibc)]
    for line in wrong:
        print(line)
    if flags.sbom:
        flags.sbom.mkdir(parents=True, exist_ok=True)
        for wheel in flags.wheel:
            print(bill(wheel, flags.sbom))
    if not wrong:
        print(f"contents: {len(flags.wheel)} wheels hold what the manifest says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
