"""Pages of docs/benchmarks with figures of one processor, and the index page of each kind.

``docs/benchmarks/<kind>/<processor>.json`` has what was measured, a page and perhaps a picture of
the same name show it, and ``docs/benchmarks/<kind>.md`` lists the processors. The index is made
from the JSON files, so that pages of other processors stay as they were.
"""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["DOCS", "KINDS", "Processor", "read", "this_processor", "write", "write_index"]

DOCS = Path(__file__).parent.parent / "docs" / "benchmarks"
MAKERS = {"AuthenticAMD": "AMD", "GenuineIntel": "Intel"}

KINDS = {
    "table1": (
        "Table 1: whole models",
        "Training steps and inference of the models in Table 1 of PyTorch's paper, with plait, "
        "PyTorch and other libraries in turns.",
    ),
    "inference": (
        "Inference beside engines that compile",
        "Forward passes of plait, PyTorch, torch.compile, ONNX Runtime and OpenVINO in turns.",
    ),
    "sweep": (
        "The long tail: operators beside PyTorch",
        "Operators of every kind, small to large, forward and backward, beside PyTorch in one "
        "process.",
    ),
}
"""Heading and first sentence of each index."""

INDEX = """# {heading}

{sentence} Each page has the figures of one processor; those of one say little of another one.

| processor | date | |
|---|---|---|
{rows}

```{{toctree}}
:hidden:

{pages}
```
"""


@dataclass(frozen=True)
class Processor:
    """A kind of processor.

    Args:
        stem: the name of its files.
        title: as pages call it.
    """

    stem: str
    title: str

    def file(self, kind: str, suffix: str, docs: Path = DOCS) -> Path:
        """Return the path of a file of this processor."""
        return docs / kind / f"{self.stem}{suffix}"


def this_processor(cpuinfo: str | None = None) -> Processor:
    """Return the processor by the text of ``/proc/cpuinfo``: by maker, family and model."""
    if cpuinfo is None:
        try:
            cpuinfo = Path("/proc/cpuinfo").read_text()
        except OSError:
            cpuinfo = ""
    facts = dict(
        (part.strip() for part in line.split(":", 1))
        for line in cpuinfo.splitlines()
        if ":" in line
    )
    maker = facts.get("vendor_id", facts.get("CPU implementer", platform.machine()))
    maker = MAKERS.get(maker, maker)
    family = facts.get("cpu family", facts.get("CPU architecture", "unknown"))
    model = facts.get("model", facts.get("CPU part", "unknown"))
    stem = "-".join((maker, family, model)).lower().replace(" ", "-")
    name = facts.get("model name", maker)
    return Processor(stem, f"{name}, family {family}, model {model}")


def read(kind: str, docs: Path = DOCS) -> dict[str, Any]:
    """Return what is stored of this processor; nothing where there is none."""
    path = this_processor().file(kind, ".json", docs)
    return json.loads(path.read_text()) if path.exists() else {}


def write(kind: str, page: str, summary: str, values: dict[str, Any], docs: Path = DOCS) -> None:
    """Write the page and the values of this processor, and the index.

    Args:
        kind: one of KINDS.
        page: the text of the page.
        summary: what the index says of it.
        values: what `read` returns later; it has a ``date``. Lists get a line for each entry.
        docs: the folder with the indices.
    """
    processor = this_processor()
    known = {"processor": processor.title, "summary": summary, **values}
    path = processor.file(kind, ".json", docs)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(map(_member, known.items())) + "\n}\n")
    path.with_suffix(".md").write_text(page)
    write_index(kind, docs)


def _member(item: tuple[str, Any]) -> str:
    name, value = item
    if isinstance(value, list):
        return f'"{name}": [\n' + ",\n".join(json.dumps(each) for each in value) + "\n]"
    return f'"{name}": {json.dumps(value)}'


def write_index(kind: str, docs: Path = DOCS) -> None:
    """Write the page that lists the processors with a page of this kind."""
    heading, sentence = KINDS[kind]
    rows, pages = [], []
    for path in sorted((docs / kind).glob("*.json")):
        facts = json.loads(path.read_text())
        link = f"[{facts['processor']}]({kind}/{path.stem}.md)"
        rows.append(f"| {link} | {facts['date']} | {facts['summary']} |")
        pages.append(f"{kind}/{path.stem}")
    text = INDEX.format(
        heading=heading, sentence=sentence, rows="\n".join(rows), pages="\n".join(pages)
    )
    (docs / f"{kind}.md").write_text(text)
