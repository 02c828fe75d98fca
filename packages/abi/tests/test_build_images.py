"""Tests of the build helper's images of GPU kernels, with a program in the place of nvcc."""

from __future__ import annotations

import pathlib

import pytest

from plait_abi.build import BuildError, DeviceImages
from plait_abi.build._nvcc import ALL, code_flags
from plait_abi.build._project import Project

# It writes its command to the image, and a make rule with the source and one header.
NVCC = """#!/bin/sh
[ "$1" = --version ] && { echo "compilation tools, release 1.2"; exit 0; }
command="$*"
while [ $# -gt 0 ]; do
  case "$1" in
    -o) out=$2; shift ;;
    -MF) rule=$2; shift ;;
    *.cpp) source=$1 ;;
  esac
  shift
done
grep -q WRONG "$source" && { echo "no such kernel"; exit 1; }
echo "$command" > "$out"
echo "object: $source $(dirname "$source")/all.h" > "$rule"
"""


class Trial:
    """A package with two kernels and a header."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.write("cpp/kernels/linalg/dense.cpp", "")
        self.write("cpp/kernels/fills.cpp", "")
        self.write("cpp/kernels/all.h", "")
        self.write("cpp/kernels/linalg/all.h", "")
        self.write("src/plait_toy/__init__.py", "")

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def build(self) -> list[str]:
        """Build and return the names of the images that were compiled."""
        lines: list[str] = []
        images = [DeviceImages(["cpp/kernels/**/*.cpp"], {"fills.cpp": ["-fmad=false"]}, ["cpp"])]
        project = Project(self.root, "plait_toy", images=images, log=lines.append)
        project.build(self.root / "src")
        outputs = {path for path in project.outputs() if path.suffix == ".fatbin"}
        assert outputs == {path.relative_to(self.root / "src") for path in self.images}
        return sorted(line.rsplit(" ", 1)[-1] for line in lines if line.startswith("["))

    @property
    def images(self) -> list[pathlib.Path]:
        return sorted((self.root / "src/plait_toy/kernels").glob("*"))


@pytest.fixture
def trial(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    nvcc = tmp_path / "tools" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text(NVCC)
    nvcc.chmod(0o755)
    monkeypatch.setenv("PLAIT_NVCC", str(nvcc))
    monkeypatch.setenv("PLAIT_CUDA_ARCHITECTURES", "90")
    monkeypatch.delenv("PLAIT_BUILD_DIR", raising=False)
    return Trial(tmp_path)


def test_each_source_is_an_image(trial: Trial) -> None:
    assert trial.build() == ["fills", "linalg_dense"]
    assert [path.name for path in trial.images] == ["fills.fatbin", "linalg_dense.fatbin"]
    fills, dense = (path.read_text() for path in trial.images)
    assert "-fmad=false" in fills and "-fmad=false" not in dense
    assert all(text.count("-gencode") == 1 and "sm_90" in text for text in (fills, dense))


def test_images_are_compiled_when_their_files_change(trial: Trial) -> None:
    trial.build()
    assert trial.build() == []
    trial.write("cpp/kernels/linalg/all.h", "// changed")
    assert trial.build() == ["linalg_dense"]
    (trial.root / "cpp/kernels/fills.cpp").unlink()
    assert trial.build() == []
    assert [path.name for path in trial.images] == ["linalg_dense.fatbin"]


def test_architectures(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_CUDA_ARCHITECTURES", "all")
    trial.build()
    text = trial.images[0].read_text()
    assert all(f"code=sm_{number}" in text for number in ALL)
    assert text.count("code=compute_") == 1 and f"code=compute_{ALL[-1]}" in text
    monkeypatch.setenv("PLAIT_CUDA_ARCHITECTURES", "120, 90")
    assert trial.build() == ["fills", "linalg_dense"]
    assert " ".join(code_flags(["90", "120"])) in trial.images[0].read_text()


@pytest.mark.parametrize("text", ["", "none"])
def test_no_architecture_needs_no_nvcc(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    trial.build()
    monkeypatch.setenv("PLAIT_NVCC", "no-such-compiler")
    monkeypatch.setenv("PLAIT_CUDA_ARCHITECTURES", text)
    assert trial.build() == []
    assert trial.images == []


def test_errors_name_what_is_wrong(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    trial.write("cpp/kernels/fills.cpp", "WRONG")
    with pytest.raises(BuildError, match="compiling failed: kernels: fills"):
        trial.build()
    monkeypatch.setenv("PLAIT_NVCC", "no-such-compiler")
    with pytest.raises(BuildError, match="PLAIT_NVCC: a program is required; got 'no-such"):
        trial.build()
    monkeypatch.setenv("PLAIT_CUDA_ARCHITECTURES", "sm_90")
    with pytest.raises(BuildError, match="numbers such as 90,120 are required; got 'sm_90'"):
        trial.build()
