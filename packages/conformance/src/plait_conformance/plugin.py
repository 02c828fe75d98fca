"""The pytest plug-in with the options of the kit."""

from __future__ import annotations

import importlib.util
import os
import pathlib
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from plait_conformance._cases import Case
    from plait_conformance._device import Device
    from plait_conformance._executor import Executor
    from plait_conformance._graphs import Compiler
    from plait_conformance._kernels import Registered
    from plait_conformance._members import Provider
    from plait_conformance._memory import Pool

__all__ = [
    "load_libraries",
    "pytest_generate_tests",
    "pytest_ignore_collect",
    "pytest_load_initial_conftests",
    "pytest_report_header",
    "pytest_runtest_call",
    "pytest_terminal_summary",
]

ROLES = {
    "kernels.cpu": ("test_kernels_cpu",),
    "engine": ("test_engine", "test_engine_writes"),
    "optimizer": ("test_optimizer",),
    "communicator": ("test_communicator",),
    "device": (
        *("test_device_kernels", "test_device_streams", "test_device_copies"),
        *("test_device_functions", "test_device_memory", "test_device_sharing"),
        "test_allocator",
    ),
    "allocator": ("test_allocator",),
    "executor": ("test_executor",),
    "compiler": ("test_compiler",),
}
"""The modules whose tests belong to a role."""

KERNELS = pytest.StashKey["list[Registered]"]()
"""The kernels under test, watched by probes until the session ends."""

DEVICE = pytest.StashKey["Device"]()
"""The device under test."""


RUNS = pytest.StashKey[bool]()
"""Set if the command line names the kit."""


def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Add the options where the kit is run: other projects have some of the same names."""
    if any("plait_conformance" in word for word in args):
        early_config.stash[RUNS] = True
        add_options(parser)


def add_options(parser: pytest.Parser) -> None:
    """Add the options that say what is tested."""
    group = parser.getgroup("plait conformance")
    group.addoption(
        "--role", default="kernels.cpu", choices=list(ROLES), help="the role that is tested"
    )
    group.addoption(
        "--provider",
        default=None,
        help="the plug-in that is tested, package:Class,... of optimizers, or the name of a "
        "communicator; default: the active one",
    )
    group.addoption(
        "--device",
        default=None,
        help="the device that is tested, or that of the tested allocator; default: the first one "
        "that is no CPU, and the CPU's allocator",
    )
    group.addoption(
        "--operators",
        default=None,
        metavar="NAME,...",
        help="of kernels: the operators that are tested; default: all",
    )
    group.addoption(
        "--load", action="append", default=[], metavar="PATH", help="a plug-in to load first"
    )
    group.addoption(
        "--import",
        action="append",
        default=[],
        dest="modules",
        metavar="MODULE",
        help="of a communicator: a module that members import first",
    )
    group.addoption(
        "--launcher",
        default=None,
        metavar="COMMAND",
        help="of a communicator: what starts the members, such as 'mpiexec -n {}'; {} is replaced "
        "by their number",
    )
    group.addoption(
        "--where",
        default="shm:{}",
        help="where groups of a communicator are opened; {} is replaced by a fresh text",
    )
    group.addoption(
        "--members", type=int, default=4, help="the most members of a communicator's groups"
    )


def pytest_ignore_collect(collection_path: pathlib.Path, config: pytest.Config) -> bool | None:
    """Skip the tests of other roles."""
    if collection_path.parent != pathlib.Path(__file__).parent:
        return None
    modules = {module for role in ROLES.values() for module in role}
    selection = ROLES[config.getoption("--role", default="kernels.cpu")]
    return True if collection_path.stem in modules - set(selection) else None


def load(config: pytest.Config) -> None:
    """Load operators, the core component, and the libraries of ``--load``."""
    load_libraries(config.getoption("--load"))


def load_libraries(paths: Sequence[str]) -> None:
    """Load operators, the core component, and plug-ins."""
    import plait_abi
    import plait_ops

    plait_ops.load()
    core = plait_abi.choose("core")  # loads its kernels, and tensors for results
    if importlib.util.find_spec(core):
        importlib.import_module(core)
    for path in paths:
        plait_abi.load(path)


def start_engine(config: pytest.Config) -> None:
    """Load the engine: of ``--load``, or of the chosen package."""
    import plait_abi
    from plait_conformance._engine import engine_in_force

    load(config)
    if engine_in_force() is None:
        plait_abi.require("engine")
    provider = config.getoption("--provider")
    if provider not in (None, engine_in_force()):
        raise pytest.UsageError(
            f"the active engine is {engine_in_force()!r}, not {provider!r}: load it with "
            "--load PATH, or choose its package with PLAIT_COMPONENTS=autograd=PACKAGE"
        )


def communicator_under_test(config: pytest.Config) -> Provider:
    """Load the requested libraries and modules, and find the communicator."""
    from plait_abi import binding
    from plait_conformance._members import Provider, load_provider

    libraries = tuple(os.path.abspath(path) for path in config.getoption("--load"))
    modules = tuple(config.getoption("modules"))
    launcher = config.getoption("--launcher")
    load_provider(libraries, () if launcher else modules)
    name = config.getoption("--provider") or binding.provided("communicator")
    if name is None:
        raise pytest.UsageError("no communicator is provided: load one with --load PATH")
    return Provider(name, config.getoption("--where"), libraries, modules, launcher)


def kernels_under_test(config: pytest.Config) -> list[Registered]:
    """Load the requested libraries; watch the provider's kernels, or those that come first."""
    if KERNELS in config.stash:
        return config.stash[KERNELS]
    from plait_conformance._kernels import registered

    load(config)
    provider = config.getoption("--provider")
    kernels = list(registered(provider))
    if not kernels and provider is not None:
        raise pytest.UsageError(f"no kernel is provided by {provider!r}: load it with --load PATH")
    for kernel in kernels:
        config.add_cleanup(kernel.probe.close)
    config.stash[KERNELS] = kernels
    return kernels


def device_under_test(config: pytest.Config) -> Device:
    """Load the requested libraries; return the device of ``--device``, or the first one."""
    if DEVICE in config.stash:
        return config.stash[DEVICE]
    load(config)
    from plait_abi import components
    from plait_conformance._device import Device, devices_in_force

    choice = (config.getoption("--device") or "").partition(":")[0]
    if choice not in ("", "cpu", *devices_in_force()):
        components.load_device(choice)  # an installed package may bring it
    result = list(devices_in_force())
    name = config.getoption("--device") or (result[0] if result else "")
    if name.partition(":")[0] not in result:
        raise pytest.UsageError(
            f"there is no device {name!r}, only {['cpu', *result]}: load one with --load PATH"
        )
    config.stash[DEVICE] = Device(name)
    if config.getoption("--role") == "device":
        check_provider(config)
    return config.stash[DEVICE]


def check_provider(config: pytest.Config) -> None:
    """Raise an error if another plug-in than that of ``--provider`` fills the role."""
    import plait_abi

    role, provider = config.getoption("--role"), config.getoption("--provider")
    filled = {
        record.provider
        for record in plait_abi.records()
        if (record.kind, record.name, record.active) == ("role", role, True)
    }
    if provider is not None and provider not in filled:
        raise pytest.UsageError(
            f"the role {role} is filled by {', '.join(filled)}, not by {provider!r}: load it with "
            "--load PATH"
        )


def allocator_under_test(config: pytest.Config) -> Pool:
    """Load the requested libraries; return the allocator of ``--device``, or the CPU's."""
    load(config)
    from plait_conformance._memory import Pool

    of_device = config.getoption("--role") == "device"
    on_host = config.getoption("--device") in (None, "cpu") and not of_device
    pool = Pool(None if on_host else device_under_test(config))
    if not of_device:
        check_provider(config)
    return pool


def executor_under_test(config: pytest.Config) -> Executor:
    """Load the requested libraries; return the executor in force."""
    load(config)
    from plait_conformance._executor import Executor

    check_provider(config)
    return Executor()


def compiler_under_test(config: pytest.Config) -> Compiler:
    """Load plait-graph and the requested libraries; return the compiler in force."""
    if importlib.util.find_spec("plait_graph") is None:
        raise pytest.UsageError("--role compiler: needs plait-graph (pip install plait-graph)")
    from plait_conformance._graphs import Compiler

    load(config)
    check_provider(config)
    return Compiler()


def operators_under_test(config: pytest.Config) -> set[str]:
    """Return the operators of the kernels; without a provider all that can have a kernel."""
    from plait_ops import specs

    if config.getoption("--role") == "device":
        names = {operator.name for operator in specs.all()}
    else:
        names = {kernel.name for kernel in kernels_under_test(config)}
        if config.getoption("--provider") is None:
            names |= {o.name for o in specs.all() if o.kind not in ("view", "composite")}
    selection = config.getoption("--operators")
    if selection is None:
        return names
    if unknown := set(selection.split(",")) - names:
        raise pytest.UsageError(f"--operators: not under test: {', '.join(sorted(unknown))}")
    return set(selection.split(","))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize the tests by samples, errors of operators, and kernels."""
    if not metafunc.module.__name__.startswith("plait_conformance."):
        return
    if metafunc.config.getoption("--role") == "engine":
        start_engine(metafunc.config)
        if "derivative" in metafunc.fixturenames:
            from plait_conformance._gradients import derivatives

            metafunc.parametrize("derivative", list(derivatives()), ids=str)
        return
    if metafunc.config.getoption("--role") == "optimizer":
        if "optimizer" in metafunc.fixturenames:
            from plait_conformance._optimizers import optimizer_cases

            load(metafunc.config)
            subjects = list(optimizer_cases(metafunc.config.getoption("--provider")))
            metafunc.parametrize("optimizer", subjects, ids=str)
        return
    if metafunc.config.getoption("--role") == "communicator":
        most = metafunc.config.getoption("--members")
        for fixture, fewest in (("size", 1), ("several", 2)):
            if fixture in metafunc.fixturenames:
                metafunc.parametrize(fixture, range(fewest, most + 1))
        return
    if "executor" in metafunc.fixturenames:
        metafunc.parametrize("executor", [executor_under_test(metafunc.config)], ids=str)
    if "compiler" in metafunc.fixturenames:
        metafunc.parametrize("compiler", [compiler_under_test(metafunc.config)], ids=str)
    if "pool" in metafunc.fixturenames:
        metafunc.parametrize("pool", [allocator_under_test(metafunc.config)], ids=str)
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", [device_under_test(metafunc.config)], ids=str)
    if "kernel" in metafunc.fixturenames:
        metafunc.parametrize("kernel", kernels_under_test(metafunc.config), ids=str)
        return
    for fixture in {"case", "any_case", "draw_case", "fact"} & set(metafunc.fixturenames):
        parametrize_calls(metafunc, fixture)


def parametrize_calls(metafunc: pytest.Metafunc, fixture: str) -> None:
    """Make one test a sample, or an error fact, of the operators under test.

    ``case`` is for operators with kernels of their own, ``any_case`` for all that are under test,
    ``draw_case`` for those whose values are not known before.
    """
    from plait_conformance._cases import cases
    from plait_ops import specs
    from plait_ops.samples import error_facts
    from plait_ops.sampling import Sampler

    names = operators_under_test(metafunc.config)
    if metafunc.config.getoption("--role") == "device" and fixture in ("case", "fact"):
        excluded = ("view", "composite") if fixture == "case" else ("view",)
        names -= {operator.name for operator in specs.all() if operator.kind in excluded}
    if fixture == "fact":
        facts = [
            pytest.param(operator, fact, fact.call(Sampler(0)), id=f"{operator.name}-{number}")
            for operator in specs.all()
            if operator.name in names
            for number, fact in enumerate(error_facts(operator))
        ]
        metafunc.parametrize(("operator", "fact", "sample"), facts)
        return
    result = list(cases(names, unpredictable=fixture == "draw_case"))
    metafunc.parametrize(fixture, result, ids=str)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Skip the test of an operator or dtype that the device lacks; the summary lists it."""
    device = item.config.stash.get(DEVICE, None)
    if device is None:
        return (yield)
    arguments = getattr(item, "funcargs", {})
    cases = [arguments[name] for name in ("case", "any_case", "draw_case") if name in arguments]
    names = [case.operator.name for case in cases]
    for name in names:
        device.tests.setdefault(name, False)
    try:
        result = yield
        # a test of a form may call nothing, and results without elements need no kernel
        for case in cases if item.name.startswith(("test_values", "test_unpredictable")) else ():
            name = case.operator.name
            device.tests[name] |= case.operator.unpredictable or has_elements(case)
        return result
    except NotImplementedError as error:
        device.note(error, names[0] if names else item.name)
        pytest.skip(f"missing: {error}")


def has_elements(case: Case) -> bool:
    """Whether a result of a case has elements."""
    from plait_conformance._checks import expected

    return any(array.size for array in expected(case))


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return a header line with the tested component, where the kit is run."""
    if RUNS not in config.stash:
        return None
    role, provider = config.getoption("--role"), config.getoption("--provider")
    return f"plait conformance: role {role}, provider {provider or 'any'}"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """List the operators and dtypes that the device under test does not have."""
    if DEVICE not in config.stash:
        return
    device = config.stash[DEVICE]
    if device.missing:
        terminalreporter.section(f"{len(device.missing)} operators are missing on {device}")
        terminalreporter.line(", ".join(sorted(device.missing)))
    declined = {n: dtypes for n, dtypes in device.declined.items() if n not in device.missing}
    if declined:
        terminalreporter.section(f"{len(declined)} operators declined dtypes on {device}")
        for name, dtypes in sorted(declined.items()):
            terminalreporter.line(f"{name}: {'; '.join(sorted(dtypes))}")
