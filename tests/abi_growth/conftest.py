"""A runtime of a later minor version: the sources of plait-abi, with a field more in every struct
that may grow, one operator flag, one kind of event and one role more.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_abi  # noqa: E402  (found through the line above)

MAJOR, MINOR = (int(number) for number in check_abi.version().split("."))
GUARD = f"#if PLAIT_TARGET >= PLAIT_VERSION({MAJOR}, {MINOR + 1})"


def _replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
    return text.replace(old, new)


def grow_header(text: str) -> str:
    """Return abi.h as the next minor version could be."""
    for name in check_abi.structs(check_abi.INCLUDE / "plait" / "abi.h"):
        if name in check_abi.FROZEN:
            continue
        text, count = re.subn(
            rf"\n?\}} {name};", f"\n{GUARD}\n  uint64_t grown[3];\n#endif\n}} {name};", text
        )
        assert count == 1, name
    define = "#define PLAIT_ABI_MINOR"
    text = _replaced(text, f"{define} {MINOR}", f"{define} {MINOR + 1}")
    return _replaced(
        text,
        "typedef const plait_header *const *plait_role;",
        "typedef const plait_header *const *plait_role;\n"
        f"{GUARD}\ntypedef struct plait_grown {{\n  plait_header h;\n  const char *name;\n"
        '}} plait_grown; /* role "grown" */\n#endif'.replace("}}", "}"),
    )


def grow_sources(folder: pathlib.Path) -> None:
    """Give the sources of plait-abi in ``folder`` the later header, and a role more."""
    header = folder / "src" / "plait_abi" / "include" / "plait" / "abi.h"
    header.write_text(grow_header(header.read_text(encoding="utf-8")), encoding="utf-8")
    roles = folder / "cpp" / "roles.cpp"
    text = _replaced(
        roles.read_text(encoding="utf-8"),
        '  if (role == "engine") return as(&roles.engine);',
        '  if (role == "engine") return as(&roles.engine);\n'
        "  static const plait_grown *grown = nullptr;\n"
        '  if (role == "grown") return as(&grown);',
    )
    roles.write_text(text, encoding="utf-8")


@pytest.fixture(scope="session")
def later_runtime(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with plait_abi of the later version, for the front of the module path."""
    home = tmp_path_factory.mktemp("later")
    sources = home / "abi"
    result = shutil.ignore_patterns("build", "*.so", "*.egg-info", "__pycache__", "tests")
    shutil.copytree(ROOT / "packages" / "abi", sources, ignore=result)
    (sources / "src" / "plait_abi" / "build").mkdir(exist_ok=True)
    shutil.copytree(
        ROOT / "packages" / "abi" / "src" / "plait_abi" / "build",
        sources / "src" / "plait_abi" / "build",
        dirs_exist_ok=True,
    )
    grow_sources(sources)
    target = home / "site"
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
    ]
    # initialisers that know nothing of the new fields are what is tested: warnings are none
    environment = {k: v for k, v in os.environ.items() if k != "PLAIT_BUILD_WERROR"}
    command += ["--target", str(target), str(sources)]
    subprocess.run(command, env=environment, check=True)
    return target
