"""`plait.x` is `plait_x`: the same modules and classes, at any depth, loaded on demand."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import pytest

import plait


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize(
    ("statement", "real"),
    [
        ("import plait.nn as m", "plait_nn"),
        ("from plait import nn as m", "plait_nn"),
        ("import plait.nn.functional as m", "plait_nn.functional"),
        ("from plait.nn import functional as m", "plait_nn.functional"),
        ("import plait.optim as m", "plait_optim"),
        ("import plait.autograd as m", "plait_autograd"),
        (
            "from plait.autograd.function import once_differentiable, Function; import "
            "plait.autograd.function as m",
            "plait_autograd.function",
        ),
        ("from plait.utils import checkpoint as m", "plait_autograd.checkpointing"),
        (
            "from plait.utils.checkpoint import checkpoint; import plait.utils.checkpoint as m",
            "plait_autograd.checkpointing",
        ),
        ("import plait.multiprocessing as m", "plait_multiprocessing"),
        ("import plait.profiler as m", "plait_profiler"),
        ("import plait.distributed as m", "plait_distributed"),
        ("import plait.distributed.nn.functional as m", "plait_distributed.nn.functional"),
        ("import plait.core as m", "plait_core"),
        ("import plait.ops.spec as m", "plait_ops.spec"),
        ("import plait.abi as m", "plait_abi"),
        ("import plait.utils.data as m", "plait_data"),
        ("from plait.utils import data as m", "plait_data"),
        ("from plait.utils.data import collate as m", "plait_data.collate"),
        ("import plait.utils.data.collate as m", "plait_data.collate"),
        ("import plait; m = plait.nn.functional", "plait_nn.functional"),
        ("import plait; m = plait.utils.data", "plait_data"),
    ],
)
def test_an_alias_is_the_module_itself(statement: str, real: str) -> None:
    out = run(
        f"{statement}\nimport importlib\nprint(m is importlib.import_module({real!r}), m.__name__)"
    )
    assert out.split() == ["True", real]


def test_the_real_module_may_come_first() -> None:
    out = run(
        "import plait_nn.functional, plait\nfrom plait.nn import functional\n"
        "print(functional is plait_nn.functional)"
    )
    assert out.strip() == "True"


def test_classes_exist_once_and_pickle_under_the_strands_name() -> None:
    import plait_nn

    assert plait.nn.Linear is plait_nn.Linear
    assert b"plait_nn" in pickle.dumps(plait.nn.Linear)
    assert pickle.loads(pickle.dumps(plait.nn.Linear)) is plait_nn.Linear


def test_importing_the_umbrella_loads_nothing() -> None:
    names = ("core", "nn", "optim", "autograd", "data", "multiprocessing", "profiler", "ops")
    out = run(
        f"import sys, plait\nprint([n for n in {names} if 'plait_' + n in sys.modules], "
        "'numpy' in sys.modules)"
    )
    assert out.strip() == "[] False"


def test_names_of_core_and_autograd() -> None:
    import plait_autograd
    import plait_core

    assert plait.randn is plait_core.randn
    assert plait.Tensor is plait_core.Tensor
    assert plait.float32 is plait_core.float32
    assert plait.no_grad is plait_autograd.no_grad
    assert plait.ones(2).tolist() == [1, 1]
    assert isinstance(plait.default_generator, plait.Generator)
    with plait.no_grad():
        assert not plait.is_grad_enabled()
    assert {"nn", "randn", "no_grad", "use", "report", "utils"} <= set(dir(plait))


@pytest.mark.parametrize("name", ["nothing", "data", "nn_", "__wrapped__"])
def test_names_that_are_not_there(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'plait' has no attribute '{name}'"):
        getattr(plait, name)


@pytest.mark.parametrize(
    ("name", "place"),
    [("gelu", "plait.nn.functional.gelu"), ("view", "plait.Tensor.view"), ("add_", "Tensor.add_")],
)
def test_the_error_for_a_moved_name_says_its_module(name: str, place: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; it is .*{place}$"):
        getattr(plait, name)


@pytest.mark.parametrize("name", ["no_grad", "vmap"])
def test_core_says_where_a_name_of_another_package_is(name: str) -> None:
    with pytest.raises(
        AttributeError, match=rf"no attribute '{name}'; it is plait_.*plait.{name}$"
    ):
        getattr(plait.core, name)
    for component in ("nn", "optim", "data"):
        with pytest.raises(AttributeError, match=rf"; it is the package plait_{component}, or pl"):
            getattr(plait.core, component)


def test_the_version_is_a_module() -> None:
    import plait.version

    assert plait.version.__version__ == plait.__version__ and plait.version.cuda is None
    assert plait.version.git_version == f"v{plait.__version__}"


def test_an_optional_package_without_its_own_needs_says_what_to_install() -> None:
    out = run(
        """
import sys
sys.modules["mpi4py"] = None
import importlib.util, plait
if importlib.util.find_spec("plait_mpi") is None:
    print("False", "plait_mpi needs mpi4py, pip install plait-mpi")
else:
    try: import plait.mpi
    except ModuleNotFoundError as error: text = error
    print(hasattr(plait, "mpi"), text)
"""
    )
    assert out.startswith("False") and "needs mpi4py" in out and "pip install plait-mpi" in out


def test_the_module_itself_prints_what_a_report_needs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plait"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PLAIT_JOB_SECRET": "hidden-words", "PLAIT_NUM_THREADS": "1"},
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    facts = [line.split() for line in done.stdout.splitlines()]
    assert ["plait", plait.__version__] in facts and ["threads", "1"] in facts
    assert ["PLAIT_NUM_THREADS", "1"] in facts and ["PLAIT_JOB_SECRET", "(set)"] in facts
    assert "hidden-words" not in done.stdout and "Error" not in done.stdout
    for word in ("plait-core", "numpy", "kernels", "memory", "Python"):
        assert any(line[:1] == [word] for line in facts), word
    assert any(line[:2] == ["role", "engine"] for line in facts)


def test_the_launcher_runs_under_the_umbrellas_name(tmp_path: Any) -> None:
    program = tmp_path / "rank.py"
    program.write_text("import os; print(os.environ['RANK'], os.environ['WORLD_SIZE'])")
    words = ["-m", "plait.distributed.run", "--nproc-per-node", "2", str(program)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120)
    assert sorted(done.stdout.splitlines()) == ["0 2", "1 2"], done.stderr


@pytest.mark.parametrize("name", ["jit", "autocast", "backends"])
def test_a_name_of_programs_for_pytorch_says_where(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; .*python -m plait.torch"):
        getattr(plait, name)


def test_what_serves_other_packages_is_no_name() -> None:
    for name in ("arguments", "attribute_lookup", "engine", "instruction_sets"):
        assert not hasattr(plait, name), name


def test_modules_that_are_not_there() -> None:
    import importlib

    for name in ("plait.nothing", "plait.nn.nothing", "plait.data"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)
    with pytest.raises(
        ModuleNotFoundError, match=r"is plait\.distributed\.DistributedDataParallel"
    ):
        importlib.import_module("plait.nn.parallel")


def test_a_chosen_component_takes_the_place(tmp_path: Any) -> None:
    (tmp_path / "other_nn.py").write_text("Linear = 'mine'\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    for code, environment in [
        ("import plait; plait.use(nn='other_nn'); import plait.nn; print(plait.nn.Linear)", {}),
        ("import plait; print(plait.nn.Linear)", {"PLAIT_COMPONENTS": "nn=other_nn"}),
    ]:
        assert run(code, PYTHONPATH=path, **environment).strip() == "mine"
    out = run(
        "import plait\nplait.nn\ntry: plait.use(nn='other_nn')\nexcept RuntimeError as e: print(e)",
        PYTHONPATH=path,
    )
    assert "nn is already loaded from plait_nn" in out


def test_a_missing_component_names_its_package() -> None:
    out = run(
        """
import plait
try: plait.nn
except AttributeError as e: print(e)
try: import plait.nn
except ModuleNotFoundError as e: print(e)
print(hasattr(plait, "nn"), "nn" in dir(plait), "optim" in dir(plait))
""",
        PLAIT_COMPONENTS="nn=plait_missing",
    )
    attribute, module, answers = out.splitlines()
    assert attribute.startswith("module 'plait' has no attribute 'nn'")
    assert "pip install plait-missing" in attribute and "pip install plait-missing" in module
    assert answers == "False False True"


def test_distributions_do_not_depend_on_the_provider_of_nn(tmp_path: Any) -> None:
    (tmp_path / "other_nn.py").write_text("Linear = 'mine'\n")
    out = run(
        """
import plait
print(plait.distributions.Normal(0.0, 1.0).mean.item(), plait.nn.Linear)
from plait.distributions.normal import Normal
print(Normal is plait.distributions.Normal)
""",
        PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]),
        PLAIT_COMPONENTS="nn=other_nn",
    )
    assert out.split() == ["0.0", "mine", "True"]


def test_distributions_without_their_package_name_it() -> None:
    out = run(
        """
import sys

class Hidden:
    def find_spec(self, name, path, module=None):
        if name == "plait_nn":
            raise ModuleNotFoundError("No module named 'plait_nn'", name="plait_nn")

import importlib.util as util, plait
real = util.find_spec
util.find_spec = lambda name, *more: name != "plait_nn" and real(name, *more) or None
sys.meta_path.insert(0, Hidden())
print(hasattr(plait, "distributions"))
try: import plait.distributions
except ModuleNotFoundError as error: print(error)
"""
    )
    assert out.splitlines() == [
        "False",
        "plait: the package plait-nn is not installed (pip install plait-nn)",
    ]


def test_without_the_package_of_vmap_its_names_say_what_to_install() -> None:
    out = run(
        """
import importlib.util as util, sys
real = util.find_spec
util.find_spec = lambda name, *more: name != "plait_func" and real(name, *more) or None
sys.modules["plait_func"] = None
import plait
print(hasattr(plait, "vmap"), hasattr(plait, "func"), {"vmap", "func"} & set(dir(plait)))
try: plait.vmap
except AttributeError as error: print(error)
print(plait.ones(2).sum().item())
"""
    )
    first, error, last = out.splitlines()
    assert (first, last) == ("False False set()", "2.0")
    assert "pip install plait-func" in error


def test_without_the_package_of_graphs_its_names_say_what_to_install() -> None:
    code = """
import sys
sys.modules["plait_graph"] = None
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "plait_graph" else find(name, *rest)
import plait
for name in ("compile", "export", "graph"):
    assert not hasattr(plait, name) and name not in dir(plait), name
    try:
        getattr(plait, name)
    except AttributeError as error:
        assert f"no attribute {name!r}" in str(error) and "pip install plait-graph" in str(error)
try:
    import plait.graph
except ImportError as error:
    assert "pip install plait-graph" in str(error), error
else:
    raise AssertionError("plait.graph was imported")
"""
    run(code)


def test_graphs_are_those_of_their_package() -> None:
    plait_graph = pytest.importorskip("plait_graph")
    assert plait.graph is plait_graph and plait.compile is plait_graph.compile
    assert plait.export is plait_graph.export and {"compile", "export"} <= set(dir(plait))


def test_vmap_is_that_of_func() -> None:
    import plait_func

    assert plait.vmap is plait.func.vmap is plait_func.vmap and plait.func is plait_func
    assert {"vmap", "func"} <= set(dir(plait))


def test_distributions_are_those_of_nn() -> None:
    out = run(
        """
import plait
from plait.distributions.normal import Normal
import plait_nn.distributions as own
print(plait.distributions is own, Normal is own.Normal, Normal.__module__)
"""
    )
    assert out.split() == ["True", "True", "plait_nn.distributions.normal"]


def test_every_name_in_dir_is_there_and_ours() -> None:
    import inspect

    names = {name for name, _ in inspect.getmembers(plait)}
    assert names >= set(dir(plait))
    for space in (plait, plait.fft, plait.linalg, plait.special, plait.sparse, plait.array_api,
                  plait.array_api.fft, plait.array_api.linalg, plait.nn, plait.nn.functional,
                  plait.testing, plait.cuda, plait.distributions):  # fmt: skip
        leaks = {"Any", "TYPE_CHECKING", "annotations", "call", "Callable", "Sequence", "importlib"}
        assert not leaks & set(dir(space)), space.__name__
    assert not hasattr(plait, "Any") and not hasattr(plait, "annotations")


def test_batches_are_tensors_and_the_seed_governs_the_order() -> None:
    out = run(
        """
import numpy as np, plait
from plait.utils.data import DataLoader, TensorDataset
orders = []
for _ in range(2):
    plait.manual_seed(1)
    loader = DataLoader(TensorDataset(np.arange(20)), batch_size=5, shuffle=True)
    batches = [batch[0] for batch in loader]
    assert all(type(batch) is plait.Tensor for batch in batches), batches
    orders.append([batch.tolist() for batch in batches])
print(orders[0] == orders[1], sorted(sum(orders[0], [])) == list(range(20)))
"""
    )
    assert out.split() == ["True", "True"]


def test_report_goes_through() -> None:
    assert "plait_core" in str(plait.report())


def test_a_strand_beyond_the_umbrella_says_what_to_install() -> None:
    hidden = (
        "import importlib.util as util, sys, runpy\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, *more: name != 'plait_torch' and real(name, *more) or None\n"
        "sys.modules['plait_torch'] = None\n"
    )
    text = "plait-torch, which is not installed (pip install plait-torch)"
    out = run(
        hidden + "import plait\nprint(hasattr(plait, 'torch'))\n"
        "for how in (lambda: __import__('plait.torch'), "
        "lambda: runpy.run_module('plait.torch', run_name='__main__')):\n"
        "    try: how()\n"
        "    except ImportError as error: print(error)\n"
    ).splitlines()
    assert out[0] == "False"
    assert text in out[1] and text in out[2]
