"""`python -m plait_torch.names`: which names of torch a library uses, read from its files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from plait_torch import names

SOURCE = """
from __future__ import annotations
from typing import TYPE_CHECKING
import torch
import torch.nn.functional as F
from torch import nn as layers, no_such_start
from torch.no_such_module import thing as other
from .torch import own

if TYPE_CHECKING:
    from torch import no_such_type
try:
    from torch import no_such_try
except (ImportError, KeyError):
    pass
init = torch.nn.init


def run(x: torch.no_such_annotation) -> torch.no_such_result:
    layers.Linear.no_such_method(x)
    torch.float32.no_such_attribute
    torch.no_such_place = 3
    torch.ops.library.no_such_operator(x)
    init.normal_(init.no_such_init)
    if hasattr(torch, "no_such_question"):
        torch.no_such_question(x)
    elif torch.__version__ > "2":
        torch.no_such_version(x)
    return F.no_such_function(F.relu(x).no_such_tensor_method())
"""


def test_uses_are_resolved() -> None:
    results = {use.name: use for use in names.uses(SOURCE)}
    assert results["torch.nn.functional"].line == 5 and results["torch.nn.functional"].on_import
    assert "torch.nn.functional.relu" in results and "torch.nn.Linear.no_such_method" in results
    assert not results["torch.nn.init.normal_"].on_import
    assert not any("own" in name or "no_such_place" in name for name in results)
    guards = {name.rpartition("_")[2]: use.guard for name, use in results.items() if use.guard}
    assert guards["type"] == guards["annotation"] == guards["result"] == "types"
    assert guards["try"] == "try" and guards["question"] == guards["version"] == "asked"
    assert results["torch.no_such_start"].guard == results["torch.no_such_start"].guard == ""
    evaluated = names.uses("import torch\ndef f(x: torch.a): pass\ny = [torch.b for _ in x]")
    assert [(use.name, use.guard, use.on_import) for use in evaluated[1:]] == [
        ("torch.a", "", True),
        ("torch.b", "", True),
    ]


def test_missing_names_are_ranked(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    package = tmp_path / "made_up"
    (package / "tests").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    (package / "run.py").write_text(SOURCE)
    (package / "tests" / "test_run.py").write_text("import torch.no_such_test")
    (package / "broken.py").write_text("import torch as (")
    (tmp_path / "other.py").write_text("from torch.nn import functional as F; F.no_such_function")
    libraries = [names.library("made_up", str(tmp_path)), names.library(str(tmp_path / "other.py"))]
    results = {entry.name: entry for entry in names.missing(libraries)}
    assert set(results) == {
        *(f"torch.no_such_{name}" for name in ("start", "module", "type", "try", "annotation")),
        *(f"torch.no_such_{name}" for name in ("result", "question", "version")),
        "torch.nn.functional.no_such_function",
        "torch.nn.init.no_such_init",
        "torch.nn.Linear.no_such_method",
    }
    first = next(iter(results.values()))
    assert first.name == "torch.nn.functional.no_such_function" and first.files == first.uses == 2
    assert first.libraries == {"made_up", "other"} and first.on_import == 1
    assert results["torch.no_such_try"].uses == 0 and results["torch.no_such_try"].guarded == {
        "try": 1
    }
    monkeypatch.setattr(sys, "argv", ["names"])
    names._main(["made_up", "--path", str(tmp_path), "--markdown", "--top", "1"])
    assert "| `torch." in capsys.readouterr().out
    with pytest.raises(ModuleNotFoundError, match="no library no_such_library"):
        names.library("no_such_library")
    monkeypatch.chdir(package)
    assert len(names.library(".").files) == 3 and names.library(".").name == "made_up"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    with pytest.raises(SystemExit):
        names._main(["other"])
    assert "no library other; the folder is ./other" in capsys.readouterr().err
