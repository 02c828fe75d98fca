"""The package bindings/node, and the programs in examples/node beside the same in Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import need, of_guide, run


@pytest.fixture(name="built", scope="module")
def build_addon(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """The environment, after the addon was compiled."""
    need("node", environment)
    for words in of_guide("node bindings", folder):
        run(words, environment)
    return environment


def test_the_tests_of_the_package_pass(built: dict[str, str]) -> None:
    text = run(["node", "--test", "bindings/node/test"], built)
    assert "# fail 0" in text
    assert "# pass 15" in text


def test_programs_print_the_losses_of_python(
    built: dict[str, str], folder: Path, losses: list[str]
) -> None:
    lines: list[str] = []
    for words in of_guide("node examples", folder):
        lines += run(words, built).splitlines()
    assert lines == losses
