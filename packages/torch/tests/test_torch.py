"""`plait_torch`: `import torch`, errors of names that are missing, and running programs."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pathlib
import subprocess
import sys
from typing import Any

import pytest

import plait
import plait_torch


def run(*arguments: str, folder: Any = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "plait_torch", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
    )


# ---- names


def test_the_umbrella_has_it_under_its_own_name() -> None:
    import plait.torch

    assert plait.torch is plait_torch
    assert plait_torch.__version__.startswith("2.13.0.")


def test_the_umbrella_runs_programs_too(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import sys, torch\nprint(torch.ones(int(sys.argv[1])))\n")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "plait.torch", str(script), "2"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "tensor([1., 1.])\n", done.stderr


def test_modules_are_plaits(torch: Any) -> None:
    import torch.fft
    import torch.nn.init as init
    import torch.optim.lr_scheduler
    from torch.nn import functional as F
    from torch.utils.data.dataloader import DataLoader

    assert torch.nn.Linear is plait.nn.Linear
    assert torch.fft is plait.fft and init.normal_ is plait.nn.init.normal_
    assert torch.optim.lr_scheduler.StepLR is plait.optim.lr_scheduler.StepLR
    assert F.relu is plait.nn.functional.relu
    assert DataLoader is plait.utils.data.DataLoader
    assert torch.nn.modules.linear.Linear is plait.nn.Linear
    assert torch.Tensor is plait.Tensor and torch.zeros is plait.zeros


def test_every_module_of_the_table_imports(torch: Any) -> None:
    from plait_torch._module_names import PLACES

    for name in PLACES:
        if "tensorboard" in name and importlib.util.find_spec("tensorboard") is None:
            with pytest.raises(ImportError, match="pip install tensorboard"):
                importlib.import_module(name).SummaryWriter  # noqa: B018
            continue
        of_ray = name.endswith(("_distributed_rpc", "distributed.rpc.api"))
        if of_ray and importlib.util.find_spec("plait_ray") is None:
            continue  # its classes are that package's
        module = importlib.import_module(name)
        for each in dir(module):
            if not each.startswith("_"):
                getattr(module, each)


def test_a_name_stays_when_it_was_replaced(torch: Any) -> None:
    before = torch.load
    try:
        torch.load = "mine"
        assert torch.load == "mine" and plait.load != "mine"
    finally:
        torch.load = before


def test_modules_can_be_pickled(torch: Any) -> None:
    import pickle

    import torch.nn.functional as F

    assert pickle.loads(pickle.dumps(F)) is F
    data = pickle.dumps(torch)
    code = f"import pickle\nprint(pickle.loads({data!r}).ones(1))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert done.stdout.strip() == "tensor([1.])", done.stderr


def test_functions_hide_modules_of_their_name(torch: Any) -> None:
    import torch.autograd.gradcheck
    from torch.autograd import gradcheck
    from torch.autograd.gradcheck import gradcheck as the_same

    assert callable(torch.autograd.gradcheck) and gradcheck is the_same


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("classes", "plait_abi.build"),
        ("mobile", ""),
        ("never_heard_of", ""),
    ],
)
def test_what_is_missing_says_so(torch: Any, name: str, way: str) -> None:
    assert not hasattr(torch, name)
    assert getattr(torch, name, 3) == 3
    with pytest.raises(
        plait_torch.MissingName, match=f"plait_torch: torch.{name} is not available"
    ) as e:
        getattr(torch, name)
    assert way in str(e.value)
    with pytest.raises(
        ImportError, match=f"plait_torch: torch.{name} is not available"
    ) as imported:
        exec(f"from torch import {name}")
    assert way in str(imported.value)


def test_missing_modules(torch: Any) -> None:
    with pytest.raises(plait_torch.MissingModule, match=r"torch\.package\.x is not .*no programs"):
        importlib.import_module("torch.package.x")
    with pytest.raises(ModuleNotFoundError, match=r"torch\.nothing"):
        importlib.import_module("torch.nothing")
    with pytest.raises(ImportError, match=r"torch.nn.utils.nothing is not available"):
        exec("from torch.nn.utils import nothing")


def test_star_imports(torch: Any) -> None:
    names: dict[str, Any] = {}
    exec("from torch.nn import *", names)
    assert names["Linear"] is plait.nn.Linear and "Sequential" in names
    assert not any(name.startswith("_") for name in names if name != "__builtins__")


def test_version(torch: Any) -> None:
    from plait_torch._version import TorchVersion

    version = torch.__version__
    assert isinstance(version, str) and version.startswith("2.13.0+")
    assert version >= "2.0" and version > (1, 9) and version < "3" and version >= (2, 13)
    assert version == "2.13.0+plait" and version != "2.13.0" and not version <= (2, 12, 9)
    assert TorchVersion("2.9.1") < "2.13" and TorchVersion("2.9") == (2, 9, 0)
    assert torch.version.cuda is None
    with pytest.raises(TypeError, match="a version such as"):
        assert version > "new"


# ---- installing


def test_install_and_uninstall() -> None:
    here = importlib.util.find_spec("torch")
    with plait_torch.installed():
        spec = importlib.util.find_spec("torch")
        assert spec is not None and "plait" in str(spec.origin)
        assert importlib.metadata.version("torch") == "2.13.0+plait"
        assert plait.ones(1).type() == "torch.FloatTensor"
        with plait_torch.installed():  # the inner one leaves it there
            pass
        import torch

        assert torch.nn.ReLU is plait.nn.ReLU
    assert importlib.util.find_spec("torch") == here or here is not None
    assert "torch" not in sys.modules and "torch.nn" not in sys.modules
    assert plait.ones(1).type() == "plait.float32"
    assert not hasattr(plait.Tensor, "new")
    with pytest.raises(TypeError, match="add_"):
        plait.ones(1).add_(1.0, plait.ones(1))
    plait_torch.uninstall()  # nothing is there: nothing happens


def test_install_refuses_beside_another_torch() -> None:
    code = (
        "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\n"
        "import plait_torch\n"
        "try: plait_torch.install()\n"
        "except RuntimeError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert "torch is imported already" in done.stdout, done.stderr


def test_importing_it_loads_no_component() -> None:
    code = (
        "import sys, plait_torch\n"
        "print([n for n in ('plait_core', 'plait_nn', 'numpy', 'torch') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert done.stdout.strip() == "[]", done.stderr


# ---- running programs


def test_a_script_sees_the_same_as_under_python(tmp_path: pathlib.Path) -> None:
    (tmp_path / "beside.py").write_text("import torch\nvalue = torch.ones(2).sum().item()\n")
    script = tmp_path / "program.py"
    script.write_text(
        "import sys, beside, torch\n"
        "print(__name__, sys.argv[1:], beside.value, __file__.endswith('program.py'))\n"
        "print(sys.modules['__main__'].__dict__ is globals())\n"
        "sys.exit(3)\n"
    )
    done = run(str(script), "--lr", "0.1")
    assert done.returncode == 3, done.stderr
    assert done.stdout.splitlines() == ["__main__ ['--lr', '0.1'] 2.0 True", "True"]


def test_modules_and_usage(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "prog"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(
        "import sys, torch, prog\nprint(torch.eye(1), sys.argv[1:])\n"
    )
    done = run("-m", "prog.train", "a", folder=tmp_path)
    assert done.stdout.strip() == "tensor([[1.]]) ['a']", done.stderr
    assert run().returncode == 2 and "usage" in run().stderr
    assert run("--help").returncode == 0
    assert "no such script: 'nothing.py'" in run("nothing.py").stderr


def test_errors_keep_the_programs_lines(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("import torch\ntorch.ones(2) @ torch.ones(3)\n")
    done = run(str(script))
    assert done.returncode == 1 and "broken.py" in done.stderr and "ShapeError" in done.stderr


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_have_it_as_well(tmp_path: pathlib.Path, method: str) -> None:
    script = tmp_path / "many.py"
    script.write_text(
        "import multiprocessing as mp\n"
        "import torch\n"
        "def work(n, queue):\n"
        "    queue.put(float(torch.ones(n).sum()))\n"
        "if __name__ == '__main__':\n"
        f"    context = mp.get_context({method!r})\n"
        "    queue = context.Queue()\n"
        "    process = context.Process(target=work, args=(3, queue))\n"
        "    process.start()\n"
        "    print(queue.get(timeout=240))\n"
        "    process.join()\n"
    )
    done = run(str(script), folder=tmp_path)
    assert done.stdout.strip() == "3.0", done.stderr


def test_submodules_are_there_after_the_block() -> None:
    code = (
        "import plait_torch\n"
        "with plait_torch.installed():\n"
        "    import torch\n"
        "assert not torch.cuda.is_available()\n"
        "assert torch.nn.functional.relu is not None\n"
        "import sys; assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=240)
