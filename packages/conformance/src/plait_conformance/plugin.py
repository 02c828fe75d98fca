"""Options of the kit, as a pytest plug-in: ``pytest --pyargs plait_conformance`` knows them."""

from __future__ import annotations

import importlib.util

import pytest

__all__ = ["pytest_addoption", "pytest_generate_tests", "pytest_report_header"]

ROLES = ("kernels.cpu",)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--role``, ``--provider`` and ``--load``."""
    group = parser.getgroup("plait conformance")
    group.addoption("--role", default="kernels.cpu", choices=ROLES, help="the role that is tested")
    group.addoption(
        "--provider",
        default=None,
        help="the plug-in whose kernels are tested; default: all in force",
    )
    group.addoption(
        "--load", action="append", default=[], metavar="PATH", help="a plug-in to load first"
    )


def provided_names(config: pytest.Config) -> set[str] | None:
    """Load what was asked for; give the operators that the provider has kernels for (None: all)."""
    import plait_abi
    import plait_ops

    plait_ops.load()
    core = plait_abi.choose("core")  # its kernels, and tensors as results
    if importlib.util.find_spec(core):
        importlib.import_module(core)
    for path in config.getoption("--load"):
        plait_abi.load(path)
    provider = config.getoption("--provider")
    if provider is None:
        return None
    names = {
        record.name
        for record in plait_abi.records()
        if (record.kind, record.provider) == ("kernel", provider)
    }
    if not names:
        raise pytest.UsageError(f"no kernel is provided by {provider!r}: load it with --load PATH")
    return names


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test a sample, and one an error fact."""
    if not metafunc.module.__name__.startswith("plait_conformance."):
        return
    from plait_conformance._cases import cases
    from plait_ops import specs
    from plait_ops.samples import Sampler

    names = provided_names(metafunc.config)
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", list(cases(names)), ids=str)
    elif "fact" in metafunc.fixturenames:
        facts = [
            pytest.param(operator, fact, fact.call(Sampler(0)), id=f"{operator.name}-{number}")
            for operator in specs.all()
            if names is None or operator.name in names
            for number, fact in enumerate(operator.error_facts())
        ]
        metafunc.parametrize(("operator", "fact", "sample"), facts)


def pytest_report_header(config: pytest.Config) -> str:
    """Say what is tested."""
    role, provider = config.getoption("--role"), config.getoption("--provider")
    return f"plait conformance: role {role}, provider {provider or 'any'}"
