"""Systems beside this one, made of Debian's packages by debootstrap: an older or newer release in a
folder, for chroot, and a Python of another processor, which QEMU runs in user mode.

Nothing is registered with the kernel and nothing stays mounted: the emulated Python is a script
that calls QEMU, so programs that it starts by ``sys.executable`` are emulated too, while compilers
that it starts are this machine's; and mounts of the chroot are in a namespace of their own.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from collections.abc import Sequence

__all__ = [
    "codename",
    "emulated_python",
    "installed_debian",
    "missing_for_chroot",
    "missing_for_emulation",
    "run_inside",
]

PACKAGES = ("python3", "python3-venv")
EMULATOR = ("qemu-aarch64-static", "qemu-aarch64")
CROSS = ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++")
# Folders of this machine that the emulated Python sees, as QEMU looks into its own ones first.
THIS_MACHINES = ("dev", "home", "proc", "root", "run", "sys", "tmp")


def codename() -> str:
    """Return the name of this machine's Debian release, or that of a usual one elsewhere."""
    words = pathlib.Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    known = dict(word.split("=", 1) for word in words if "=" in word)
    return known.get("VERSION_CODENAME", "trixie") if known.get("ID") == "debian" else "trixie"


def missing_for_chroot() -> str:
    """Return what is missing to run another release in a folder, or an empty text."""
    if os.geteuid() != 0:
        return "chroot needs root"
    return _missing("debootstrap", "chroot", "unshare")


def missing_for_emulation() -> str:
    """Return what is missing for the emulated Python and for compiling for it."""
    if not _emulator():
        return f"{EMULATOR[0]} is missing (Debian: qemu-user-static)"
    if os.geteuid() != 0:
        return "debootstrap needs root"
    return _missing("debootstrap", "dpkg-deb", *CROSS)


def _missing(*programs: str) -> str:
    absent = [name for name in programs if shutil.which(name) is None]
    return f"{', '.join(absent)} missing" if absent else ""


def _emulator() -> str | None:
    return next((path for path in map(shutil.which, EMULATOR) if path), None)


def _debootstrap(folder: pathlib.Path, suite: str, *options: str) -> None:
    command = ["debootstrap", "--variant=minbase", *options, suite, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr}")


def installed_debian(folder: pathlib.Path, suite: str) -> pathlib.Path:
    """Return the folder with a Debian release and its Python, made on first use."""
    done = folder / "installed-by-plait"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _debootstrap(folder, suite, f"--include={','.join(PACKAGES)}")
        done.touch()
    return folder


def run_inside(root: pathlib.Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in the folder of another system, with /proc, /dev/shm and no network."""
    script = (
        'mount -t proc proc "$0/proc" && mkdir -p "$0/dev/shm" && '
        'mount -t tmpfs tmpfs "$0/dev/shm" && exec chroot "$0" "$@"'
    )
    words = ["unshare", "--mount", "--net", "--fork", "sh", "-c", script, str(root), *command]
    clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    return subprocess.run(words, env=clean, capture_output=True, text=True, check=False)


def emulated_python(folder: pathlib.Path, suite: str) -> pathlib.Path:
    """Return the path of a Python of aarch64 with its headers, made on first use.

    Debian's packages are unpacked and not configured, as their scripts would run on that processor.
    """
    folder = folder.resolve()
    program = folder / "usr" / "bin" / "python3"
    done = folder / "unpacked-by-plait"
    if done.exists():
        return program
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    required = ",".join((*PACKAGES, "python3-dev"))
    _debootstrap(folder, suite, "--arch=arm64", "--foreign", f"--include={required}")
    for package in sorted((folder / "var/cache/apt/archives").glob("*.deb")):
        unpack = 'dpkg-deb --fsys-tarfile "$0" | tar -x --keep-directory-symlink -C "$1"'
        subprocess.run(["sh", "-c", unpack, str(package), str(folder)], check=True)
    for name in THIS_MACHINES:
        path = folder / name
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(folder / "var")
    real = program.resolve()
    # Debian's pyconfig.h includes the processor's one from a folder that its compilers search.
    headers = folder / "usr" / "include"
    (own,) = headers.glob(f"*-linux-gnu/{real.name}/pyconfig.h")
    shutil.copyfile(own, headers / real.name / "pyconfig.h")
    binary = real.rename(real.with_name(f"{real.name}-of-aarch64"))
    call = f'exec {_emulator()} -L "{folder}" -0 "$0" "{binary}" "$@"'
    real.write_text(f"#!/bin/sh\n{call}\n", encoding="utf-8")
    real.chmod(0o755)
    done.touch()
    return program
