"""The package bindings/node, and the programs in examples/node beside the same in Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import need, run


@pytest.fixture(name="built", scope="module")
def build_addon(environment: dict[str, str]) -> dict[str, str]:
    """The environment, after the addon was compiled."""
    need("node", environment)
    run(["node", "bindings/node/build.js"], environment)
    return environment


def test_the_tests_of_the_package_pass(built: dict[str, str]) -> None:
    text = run(["node", "--test", "bindings/node/test"], built)
    assert "# fail 0" in text
    assert "# pass 14" in text


def test_programs_print_the_losses_of_python(
    built: dict[str, str], folder: Path, losses: list[str]
) -> None:
    lines: list[str] = []
    for name in ("train_file", "train_eagerly"):
        lines += run(["node", f"examples/node/{name}.js", str(folder)], built).splitlines()
    assert lines == losses
