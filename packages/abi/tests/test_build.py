"""Tests of the build helper: what it compiles when, a library's exports, and error texts."""

from __future__ import annotations

import ctypes
import os
import pathlib
import subprocess
import sys
import sysconfig
import zipfile

import pytest

import plait_abi
import plait_abi.build
from plait_abi.build import BuildError, Extension, Generate, Library, _toolchain
from plait_abi.build._project import Project

HEADER = "#define PLAIT_ANSWER 41\n"
FIRST = """
#include "answer.h"
#include <vector>
extern "C" __attribute__((visibility("default"))) int plait_first(int n) {
  return std::vector<int>(n, PLAIT_ANSWER).back() + 1;
}
extern "C" __attribute__((visibility("default"))) int foreign_name() { return 0; }
"""
SECOND = """
extern "C" __attribute__((visibility("default"))) int plait_second() {
#ifdef SPECIAL
  return SPECIAL;
#else
  return 0;
#endif
}
"""
C_FILE = (
    'int plait_c(void);\n__attribute__((visibility("default"))) int plait_c(void) { return 3; }\n'
)
MODULE = """
#include <plait/python.h>
#include <pybind11/pybind11.h>
extern "C" int plait_first(int);
PYBIND11_MODULE(_toy, m) {
  m.def("first", &plait_first);
  m.def("twice_the_size", [](pybind11::tuple t) {
    return PyTuple_GET_SIZE(t.ptr()) + plait::python::Items(t.ptr()).size();
  });
}
"""


class Trial:
    """A package folder to build in, with a log of what was compiled."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.lines: list[str] = []
        self.write("cpp/answer.h", HEADER)
        self.write("cpp/first.cpp", FIRST)
        self.write("cpp/second.cpp", SECOND)
        self.write("cpp/third.c", C_FILE)
        self.write("src/plait_toy/__init__.py", "")

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def build(
        self,
        library: Library | None = None,
        *,
        generate: list[Generate] | None = None,
        extensions: list[Extension] | None = None,
        keep_going: bool = False,
    ) -> list[str]:
        """Build and return the names of the source files that were compiled."""
        self.lines = []
        project = Project(
            self.root,
            "plait_toy",
            generate=generate or [],
            libraries=[library or Library("plait_toy", ["cpp/*.cpp", "cpp/*.c"])],
            extensions=extensions or [],
            log=self.lines.append,
        )
        project.build(self.root / "src", keep_going=keep_going)
        compiled = [line for line in self.lines if line.startswith("[")]
        return sorted(line.rsplit("/", 1)[-1] for line in compiled)

    def load(self) -> ctypes.CDLL:
        # Each load has a name of its own, as the dynamic linker keeps what it has opened.
        built = self.root / "src/plait_toy/lib/libplait_toy.so"
        copy = self.root / f"copy{len(list(self.root.iterdir()))}.so"
        copy.write_bytes(built.read_bytes())
        return ctypes.CDLL(str(copy))


@pytest.fixture
def trial(tmp_path: pathlib.Path) -> Trial:
    return Trial(tmp_path)


def test_builds_a_library_without_python(trial: Trial) -> None:
    assert trial.build() == ["first.cpp", "second.cpp", "third.c"]
    library = trial.load()
    assert (library.plait_first(3), library.plait_second(), library.plait_c()) == (42, 0, 3)
    with pytest.raises(AttributeError):
        library.foreign_name  # noqa: B018  only plait_* leaves a library
    path = trial.root / "src/plait_toy/lib/libplait_toy.so"
    dynamic = subprocess.run(
        ["readelf", "-d", str(path)], capture_output=True, text=True, check=True
    ).stdout
    assert "soname: [libplait_toy.so]" in dynamic
    assert "python" not in dynamic


def test_a_second_build_does_nothing(trial: Trial) -> None:
    trial.build()
    assert trial.build() == []
    assert "nothing to do" in trial.lines[-1]


def test_only_dependents_of_a_changed_header_are_compiled(trial: Trial) -> None:
    trial.build()
    trial.write("cpp/answer.h", HEADER.replace("41", "6"))
    assert trial.build() == ["first.cpp"]
    assert trial.load().plait_first(1) == 7


def test_a_new_time_without_new_content_compiles_nothing(trial: Trial) -> None:
    trial.build()
    os.utime(trial.root / "cpp/answer.h", (1, 1))
    assert trial.build() == []


def test_flags_of_single_files(trial: Trial) -> None:
    trial.build()
    library = Library(
        "plait_toy", ["cpp/*.cpp", "cpp/*.c"], flags={"cpp/sec*.cpp": ["-DSPECIAL=9"]}
    )
    assert trial.build(library) == ["second.cpp"]
    assert trial.load().plait_second() == 9
    # The objects of the first configuration are still there.
    assert trial.build() == []
    assert trial.load().plait_second() == 0


def test_flags_of_the_environment(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_BUILD_FLAGS", "-DSPECIAL='5'")
    trial.build()
    assert trial.load().plait_second() == 5


def test_objects_can_be_in_another_folder(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("PLAIT_BUILD_DIR", str(tmp_path / "objects"))
    trial.build()
    assert list((tmp_path / "objects" / "plait_toy").rglob("*.o"))
    assert not (trial.root / "build").exists()


def test_a_copy_of_the_sources_uses_the_same_objects(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("PLAIT_BUILD_DIR", str(tmp_path / "objects"))
    other = Trial(tmp_path / "copy" / trial.root.name)
    assert trial.build() == ["first.cpp", "second.cpp", "third.c"]
    assert other.build() == []
    assert other.load().plait_first(3) == 42
    header = other.write("cpp/answer.h", HEADER.replace("41", "40"))
    time = (trial.root / "cpp/answer.h").stat().st_mtime_ns
    os.utime(header, ns=(time, time))  # another file of the same size and time
    assert other.build() == ["first.cpp"]
    other.write("cpp/answer.h", HEADER.replace("41", "6"))
    assert other.build() == ["first.cpp"]
    assert trial.build() == ["first.cpp"]
    assert (other.load().plait_first(1), trial.load().plait_first(1)) == (7, 42)


def test_another_python_or_pybind11_does_not_use_the_objects(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    library = Library("plait_toy", ["cpp/second.cpp"])
    extensions = [Extension("plait_toy._toy", ["cpp/python/*.cpp"], pybind11=True)]
    trial.write("cpp/python/module.cpp", '#include "Python.h"\n#include "pybind11/pybind11.h"\n')
    result = sysconfig.get_config_var
    for name, compiled in (("first", 2), ("second", 1), ("first", 0)):
        python = trial.write(f"{name}/python/Python.h", "").parent
        trial.write(f"{name}/other/pybind11/pybind11.h", "")
        trial.write(f"{name}/other/pybind11/detail/common.h", "")
        monkeypatch.setattr(_toolchain, "python_headers", lambda python=python: python)
        monkeypatch.setattr(
            _toolchain, "pybind11_headers", lambda python=python: python.parent / "other"
        )
        monkeypatch.setattr(
            "sysconfig.get_config_var",
            lambda key, name=name: name if key == "SOABI" else result(key),
        )
        assert len(trial.build(library, extensions=extensions)) == compiled
    trial.write("first/other/pybind11/detail/common.h", "#define PYBIND11_VERSION_MAJOR 9\n")
    assert trial.build(library, extensions=extensions) == ["module.cpp"]


def test_a_removed_source_leaves_the_library(trial: Trial) -> None:
    trial.build()
    (trial.root / "cpp/second.cpp").unlink()
    assert trial.build() == []
    assert not hasattr(trial.load(), "plait_second")


def test_patterns_take_files_out_again(trial: Trial) -> None:
    trial.write("cpp/python/module.cpp", "#error not for the library\n")
    library = Library("plait_toy", ["cpp/**/*.cpp", "!cpp/python/*"])
    assert trial.build(library) == ["first.cpp", "second.cpp"]


def test_no_sources_is_an_error(trial: Trial) -> None:
    with pytest.raises(BuildError, match=r"`sources` must name at least one file.*nowhere/\*.cpp"):
        trial.build(Library("plait_toy", ["nowhere/*.cpp"]))


def test_a_string_of_flags_is_an_error(trial: Trial) -> None:
    with pytest.raises(BuildError, match="a sequence of strings is required"):
        trial.build(Library("plait_toy", ["cpp/*.cpp"], flags="-O1"))


def test_a_library_for_another_machine_is_omitted(trial: Trial) -> None:
    assert trial.build(Library("plait_toy", ["cpp/*.cpp"], machine="pdp11")) == []


def test_a_library_may_have_a_file_of_its_own(trial: Trial) -> None:
    trial.build(Library("plait_toy", ["cpp/*.cpp"], output="place/libother.so.1"))
    built = trial.root / "src/plait_toy/place/libother.so.1"
    assert ctypes.CDLL(str(built)).plait_first(2) == 42
    assert b"libother.so.1" in built.read_bytes(), "it is the soname"


@pytest.mark.long
def test_an_extension_finds_its_library_and_names_no_folder_of_this_machine(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial.write("cpp/python/module.cpp", MODULE)
    headers = pathlib.Path(plait_abi.__file__).parent / "include"
    extension = Extension("plait_toy._toy", ["cpp/python/*.cpp"], libraries=["plait_toy"])
    for flags, asserts in (("-O0", False), ("-O0 -UNDEBUG", True)):  # compiles in half the time
        monkeypatch.setenv("PLAIT_BUILD_FLAGS", flags)
        trial.build(extensions=[extension])
        (built,) = (trial.root / "src/plait_toy").glob("_toy*.so")
        data = built.read_bytes()
        # the text of an assertion contains the path of the header that it is in
        assert (b"tupleobject.h" in data) == asserts
        for path in (sysconfig.get_path("include"), str(headers), str(trial.root)):
            assert path.encode() not in data
    code = "from plait_toy import _toy; print(_toy.first(2), _toy.twice_the_size((1, 2, 3)))"
    environment = dict(os.environ, PYTHONPATH=str(trial.root / "src"))
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout == "42 6\n"


def test_generated_files_are_compiled_and_shipped(trial: Trial) -> None:
    number = trial.write("number.txt", "7")

    def write(out: pathlib.Path) -> None:
        (out / "include").mkdir()
        (out / "include/number.h").write_text("#define NUMBER 1\n")
        text = (
            f'extern "C" int plait_made();\nint plait_made() {{ return {number.read_text()}; }}\n'
        )
        visible = '__attribute__((visibility("default"))) '
        (out / "made.cpp").write_text(
            text.replace("int plait_made() {", f"{visible}int plait_made() {{")
        )

    step = Generate(write, inputs=["number.txt"], package_files={"include": "plait_toy/include"})
    library = Library("plait_toy", ["cpp/*.cpp", "{generated}/*.cpp"])
    assert trial.build(library, generate=[step]) == ["first.cpp", "made.cpp", "second.cpp"]
    assert (trial.root / "src/plait_toy/include/number.h").is_file()
    assert trial.build(library, generate=[step]) == []
    number.write_text("8")
    assert trial.build(library, generate=[step]) == ["made.cpp"]
    assert trial.load().plait_made() == 8


def test_a_generator_s_failure_shows_its_output(trial: Trial) -> None:
    step = Generate(["python", "-c", "raise SystemExit('no such operator')"])
    with pytest.raises(BuildError, match="no such operator"):
        trial.build(generate=[step])


def test_a_compile_error_names_the_file(trial: Trial) -> None:
    trial.write("cpp/broken.cpp", "int plait_broken( {\n")
    with pytest.raises(BuildError, match=r"plait_toy: compiling failed: .*broken\.cpp"):
        trial.build()
    assert any("broken.cpp:1" in line for line in trial.lines)
    assert not (trial.root / "src/plait_toy/lib").exists()


def test_an_error_stops_the_files_that_wait(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_BUILD_JOBS", "1")
    for number in range(6):
        trial.write(f"cpp/broken{number}.cpp", "#error broken\n")
    with pytest.raises(BuildError, match="compiling failed"):
        trial.build()
    assert sum("FAILED" in line for line in trial.lines) < 6


def test_keep_going_compiles_the_rest(trial: Trial) -> None:
    trial.write("cpp/broken.cpp", "#error broken\n")
    trial.write("cpp/wrong.cpp", "#error wrong\n")
    with pytest.raises(BuildError, match=r"broken\.cpp, .*wrong\.cpp|wrong\.cpp, .*broken\.cpp"):
        trial.build(keep_going=True)
    (trial.root / "cpp/broken.cpp").unlink()
    (trial.root / "cpp/wrong.cpp").unlink()
    assert trial.build() == []


def test_an_undefined_symbol_fails_the_build(trial: Trial) -> None:
    trial.write("cpp/loose.cpp", "int nowhere();\nint loose() { return nowhere(); }\n")
    with pytest.raises(BuildError, match=r"linking libplait_toy\.so failed[^$]*nowhere"):
        trial.build()


def test_a_missing_compiler_names_the_package(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BuildError, match=r"'no-such-compiler' was not found.*apt install g\+\+"):
        trial.build()


def test_c_alone_needs_no_cxx(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert trial.build(Library("plait_toy", ["cpp/*.c"])) == ["third.c"]


def test_missing_python_headers_name_the_package(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    trial.write("cpp/python/module.cpp", MODULE)
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / "nothing"))
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    with pytest.raises(BuildError, match=rf"no Python\.h.*apt install python{version}-dev"):
        trial.build(extensions=[Extension("plait_toy._toy", ["cpp/python/*.cpp"])])


def test_missing_pybind11_names_the_package(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    trial.write("cpp/python/module.cpp", MODULE)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("plait_abi.build._toolchain.SYSTEM_INCLUDE", (str(tmp_path),))
    with pytest.raises(BuildError, match=r"pip install 'pybind11.*apt install pybind11-dev"):
        trial.build(extensions=[Extension("plait_toy._toy", ["cpp/python/*.cpp"])])


def test_a_missing_required_package_is_named(trial: Trial) -> None:
    library = Library("plait_toy", ["cpp/*.cpp"], requires=["plait_nowhere"])
    with pytest.raises(BuildError, match="'plait_nowhere' is required to build"):
        trial.build(library)


@pytest.mark.parametrize("text", ["0", "-1", "two"])
def test_bad_job_counts_are_refused(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("PLAIT_BUILD_JOBS", text)
    with pytest.raises(BuildError, match=f"PLAIT_BUILD_JOBS: a positive integer .* got '{text}'"):
        trial.build()


def test_an_old_setuptools_is_named(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    from plait_abi.build import setup

    monkeypatch.setitem(sys.modules, "setuptools.command.bdist_wheel", None)
    monkeypatch.delitem(sys.modules, "plait_abi.build._setuptools", raising=False)
    monkeypatch.delattr("plait_abi.build._setuptools", raising=False)
    monkeypatch.setattr("sys.argv", ["setup.py", "bdist_wheel"])
    monkeypatch.chdir(trial.root)
    with pytest.raises(BuildError, match=r"setuptools 70\.1 or newer is required.*pip install"):
        setup(package="plait_toy", libraries=[Library("plait_toy", ["cpp/*.cpp"])])


@pytest.mark.long
def test_pip_builds_a_wheel_with_the_library(trial: Trial) -> None:
    trial.write(
        "setup.py",
        "from plait_abi.build import Library, setup\n"
        "setup(libraries=[Library('plait_toy', ['cpp/*.cpp'])])\n",
    )
    trial.write(
        "pyproject.toml",
        "[build-system]\nrequires = ['setuptools>=77']\n"
        "build-backend = 'setuptools.build_meta'\n"
        "[project]\nname = 'plait-toy'\nversion = '0.1'\n"
        "[tool.setuptools.packages.find]\nwhere = ['src']\nnamespaces = false\n",
    )
    # A module that has left src/ must not come back from an earlier build.
    trial.write("build/lib.linux-x86_64-cpython-311/plait_toy/gone.py", "")
    where = pathlib.Path(plait_abi.build.__file__).parents[2]
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    subprocess.run(
        [*command, "--no-index", "-w", str(trial.root / "out"), str(trial.root)],
        env=dict(os.environ, PYTHONPATH=str(where)),
        capture_output=True,
        check=True,
    )
    (wheel,) = (trial.root / "out").glob("*.whl")
    assert wheel.name.startswith("plait_toy-0.1-py3-none-linux")
    names = zipfile.ZipFile(wheel).namelist()
    assert "plait_toy/lib/libplait_toy.so" in names
    assert not any(name.endswith((".cpp", "gone.py")) for name in names)
