"""Write the reference pages of modules with many names: one page for each topic.

    python tools/reference_pages.py docs/reference/names

A topic is the file that defines a name: `plait_nn._conv` is the page "Convolution layers" of
`plait.nn`. Each page has the first sentence of the file, a table of its public names and then their
docstrings; the page of the module has all tables. Names are those of the umbrella package.
Operators are left out, as they have pages of their own. A class with many members has a page for
its attributes and one for its methods in place beside the page of the class.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pathlib
import re
import shutil
import sys
from types import ModuleType
from typing import Any

import plait_abi

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "docs"))
from public_names import public, rewritten

__all__ = ["main", "pages_of"]

MODULES = (
    "plait_autograd",
    "plait_core",
    "plait_core.accelerator",
    "plait_core.array_api",
    "plait_core.array_api.fft",
    "plait_core.array_api.linalg",
    "plait_core.overrides",
    "plait_core.sparse",
    "plait_distributed",
    "plait_distributed.nn.functional",
    "plait_distributed.algorithms.ddp_comm_hooks.default_hooks",
    "plait_distributed.algorithms.join",
    "plait_distributed.optim",
    "plait_distributed.run",
    "plait_distributed.fsdp",
    "plait_distributed.fsdp.wrap",
    "plait_distributed.device_mesh",
    "plait_distributed.elastic",
    "plait_distributed.tensor",
    "plait_distributed.tensor.parallel",
    "plait_distributed.pipelining",
    "plait_distributed.checkpoint",
    "plait_distributed.algorithms.ddp_comm_hooks.powerSGD_hook",
    "plait_distributed.algorithms.ddp_comm_hooks.post_localSGD_hook",
    "plait_distributed.algorithms.model_averaging.averagers",
    "plait_func",
    "plait_func.pytree",
    "plait_graph",
    "plait_graph.interpreter",
    "plait_graph.passes",
    "plait_nn",
    "plait_nn.distributions",
    "plait_nn.functional",
    "plait_nn.init",
    "plait_nn.utils",
    "plait_onnx",
    "plait_optim",
    "plait_optim.lr_scheduler",
    "plait_profiler",
)
# names that the page of another package documents
ELSEWHERE = ("plait_abi",)
# pages of objects without a file in Python
COMPILED = {"plait_core": "Tensor", "plait_core._core": "Settings", "": "Constants"}
# titles of topics, where the name of the file says too little
TITLES = {
    "plait_nn._activation": "Activations",
    "plait_nn._adaptive_softmax": "Adaptive softmax",
    "plait_nn._attention": "Attention",
    "plait_nn._containers": "Containers",
    "plait_nn._conv": "Convolution layers",
    "plait_nn._dropout": "Dropout layers",
    "plait_nn._embedding": "Embeddings",
    "plait_nn._hooks": "Hooks of all modules",
    "plait_nn._lazy": "Lazy layers",
    "plait_nn._linear": "Linear layers",
    "plait_nn._loss": "Losses and distances",
    "plait_nn._normalization": "Normalization layers",
    "plait_nn._padding": "Padding layers",
    "plait_nn._parameter": "Parameters and buffers",
    "plait_nn._pooling": "Pooling layers",
    "plait_nn._rearrangement": "Shapes and upsampling",
    "plait_nn._rnn": "Recurrent layers",
    "plait_nn._transformer": "Transformer layers",
    "plait_nn.functional._activation": "Activations",
    "plait_nn.functional._conv": "Convolution",
    "plait_nn.functional._ctc": "CTC loss",
    "plait_nn.functional._distance": "Distances",
    "plait_nn.functional._loss": "Losses",
    "plait_optim._asgd": "ASGD",
    "plait_optim._lbfgs": "LBFGS",
    "plait_optim._sgd": "SGD",
    "plait_optim._rprop": "Rprop and RMSprop",
    "plait_optim.lr_scheduler._decays": "Decays",
    "plait_optim.lr_scheduler._cosine": "Cosine schedules",
    "plait_optim.lr_scheduler._cycles": "Cycles",
    "plait_optim.lr_scheduler._composed": "Compositions of schedules",
    "plait_optim.lr_scheduler._functions": "Schedules from functions",
}
# what people type who look for a page, for its search
SEARCHED = {
    "plait_nn._attention": "! attention",
    "plait_nn._dropout": "! dropout",
    "plait_nn._loss": "! loss, ! loss function",
    "plait_nn._rnn": "! RNN, ! LSTM, ! GRU",
    "plait_nn._transformer": "! transformer",
}
# a class with more members has pages of their kinds
MANY = 110


def _topic(module: ModuleType, name: str) -> str | None:
    """Return the file that defines a name; None if it has no place in the module's pages."""
    value = getattr(module, name)
    if isinstance(value, (plait_abi.Operator, ModuleType)):
        return None
    # a wrapper of a function may have the public module as its `__module__`
    home = getattr(inspect.unwrap(value) if callable(value) else value, "__module__", None) or ""
    if home.split(".")[0] in ELSEWHERE:
        return None
    if home != module.__name__ and home in MODULES and hasattr(value, "__qualname__"):
        return None  # the pages of the module that defines it have it
    ours = home in COMPILED or home.startswith(module.__name__.split(".")[0] + ".")
    return home if ours else ""


def _title(topic: str) -> str:
    if topic in COMPILED or topic in TITLES:
        return COMPILED.get(topic) or TITLES[topic]
    return topic.rpartition(".")[2].strip("_").replace("_", " ").capitalize()


def _kinds(value: type) -> dict[str, list[str]]:
    """Return the members of a large class that are on other pages, by the kind in their titles."""
    members = {
        name: member
        for name, member in sorted(vars(value).items())
        if not name.startswith("_")
        and getattr(member, "__doc__", None)
        and not isinstance(member, plait_abi.Operator)
    }
    if len(members) <= MANY:
        return {}
    attributes = [name for name, member in members.items() if not callable(member)]
    in_place = [name for name in members if name.endswith("_") and name not in attributes]
    return {"attributes": attributes, "methods in place": in_place}


def _summary(value: Any) -> str:
    """Return the first sentence of a docstring as Markdown, for a row of a table."""
    doc = inspect.getdoc(value) if callable(value) else None
    paragraph = " ".join((doc or "").partition("\n\n")[0].split())
    sentence = re.split(r"(?<=\.) (?=[A-Z`])", paragraph, maxsplit=1)[0]
    sentence = re.sub(r":math:`(.+?)`", r"$\1$", sentence)
    return rewritten([sentence])[0].replace("|", "\\|")


def _table(module: ModuleType, names: list[str]) -> str:
    home = public(module.__name__)
    rows = [
        f"| {{py:obj}}`{name} <{home}.{name}>` | {_summary(getattr(module, name))} |"
        for name in names
    ]
    return "\n".join(["| Name | What it is |", "| --- | --- |", *rows])


def _directive(module: ModuleType, name: str) -> list[str]:
    value: Any = getattr(module, name)
    full = f"{public(module.__name__)}.{name}"
    if isinstance(value, type):
        elsewhere = ", ".join(member for kind in _kinds(value).values() for member in kind)
        left_out = [f"   :exclude-members: {elsewhere}"] if elsewhere else []
        return [f".. autoclass:: {full}", "   :members:", *left_out, ""]
    if callable(value):
        return [f".. autofunction:: {full}", ""]
    return [f".. py:data:: {full}", f"   :type: {type(value).__name__}", ""]


def _page(module: ModuleType, topic: str, names: list[str]) -> str:
    lines = [f"# {_title(topic)}", ""]
    if topic in SEARCHED:
        lines += [f"```{{index}} {SEARCHED[topic]}", "```", ""]
    text = getattr(sys.modules.get(topic), "__doc__", None) if topic not in COMPILED else None
    if text:
        lines += ["```{eval-rst}", *rewritten(text.strip().partition("\n\n")[0].split("\n"))]
        lines += ["```", ""]
    if len(names) > 1:
        lines += [_table(module, names), ""]
    lines += ["```{eval-rst}"]
    for name in names:
        lines += _directive(module, name)
    return "\n".join([*lines, "```", ""])


def _kind_page(module: ModuleType, name: str, kind: str, members: list[str]) -> str:
    value = getattr(module, name)
    lines = [f"# {name}: {kind}", "", "```{eval-rst}"]
    for member in members:
        result = vars(value)[member]
        directive = "automethod" if callable(result) else "autoattribute"
        directive = "autoproperty" if isinstance(result, property) else directive
        lines += [f".. {directive}:: {public(module.__name__)}.{name}.{member}", ""]
    return "\n".join([*lines, "```", ""])


def pages_of(module: ModuleType) -> dict[str, str]:
    """Return the pages of a module's public names by their file names, `index` among them."""
    topics: dict[str, list[str]] = {}
    for name in sorted(getattr(module, "__all__", ()), key=lambda n: (n.lower(), n)):
        topic = None if name.startswith("_") else _topic(module, name)
        if topic is not None:
            topics.setdefault(topic, []).append(name)
    pages, listed = {}, []
    for topic, names in sorted(topics.items(), key=lambda item: _title(item[0])):
        file = _title(topic).lower().replace(" ", "_")
        pages[file] = _page(module, topic, names)
        listed += [f"## {{doc}}`{_title(topic)} <{file}>`", "", _table(module, names), ""]
        for name in names:
            value = getattr(module, name)
            for kind, members in (_kinds(value) if isinstance(value, type) else {}).items():
                file = f"{name.lower()}_{kind.replace(' ', '_')}"
                pages[file] = _kind_page(module, name, kind, members)
                text = ", ".join(f"`{member}`" for member in members)
                listed += [f"{{doc}}`{name}: {kind} <{file}>`: {text}", ""]
    home = public(module.__name__)
    head = [f"# `{home}`", "", "```{eval-rst}"]
    head += [f".. automodule:: {home}", "   :no-members:", "```", ""]
    tree = ["```{toctree}", ":hidden:", "", *pages, "```", ""]
    pages["index"] = "\n".join([*head, *listed, *tree])
    return pages


def main(arguments: list[str]) -> int:
    """Write the pages to the folder of the command line."""
    parser = argparse.ArgumentParser("tools/reference_pages.py", description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    folder: pathlib.Path = parser.parse_args(arguments).folder
    shutil.rmtree(folder, ignore_errors=True)
    for name in MODULES:
        there = folder / name
        there.mkdir(parents=True)
        for file, text in pages_of(importlib.import_module(name)).items():
            (there / f"{file}.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
