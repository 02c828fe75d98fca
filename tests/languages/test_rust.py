"""The crate bindings/rust, and the programs in examples/rust beside the same in Python."""

from __future__ import annotations

from pathlib import Path

from commands import need, of_guide, run

CRATES = ("bindings/rust/Cargo.toml", "examples/rust/Cargo.toml")


def test_sources_are_formatted_and_without_warnings(environment: dict[str, str]) -> None:
    need("cargo-clippy", environment)
    for crate in CRATES:
        run(["cargo", "fmt", "--check", "--manifest-path", crate], environment)
        words = ["cargo", "clippy", "--quiet", "--all-targets", "--manifest-path", crate]
        run([*words, "--", "-D", "warnings"], environment)
    words = ["cargo", "doc", "--quiet", "--no-deps", "--manifest-path", CRATES[0]]
    run(words, {**environment, "RUSTDOCFLAGS": "-D warnings"})


def test_the_tests_of_the_crate_pass(environment: dict[str, str]) -> None:
    need("cargo", environment)
    text = run(["cargo", "test", "--quiet", "--manifest-path", CRATES[0]], environment)
    assert "test result: ok. 8 passed" in text


def test_programs_print_the_losses_of_python(
    environment: dict[str, str], folder: Path, losses: list[str]
) -> None:
    need("cargo", environment)
    lines: list[str] = []
    for words in of_guide("cargo run", folder):
        lines += run(words, environment).splitlines()
    assert lines == losses
