"""The picture of the page: throughput over PyTorch's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import figures
from models import MODELS
from summary import by_case, ratio
from turns import Record

__all__ = ["draw"]


def draw(records: Sequence[Record], path: Path) -> bool:
    """Write an SVG of bars: each side's throughput over that of ``torch``.

    Returns False, and writes nothing, if matplotlib is not installed or torch did not run.
    """
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("svg")
    from matplotlib import pyplot

    chosen = [
        (title, by_case(records, section))
        for title, section in (("Training", "training"), ("Inference", "inference"))
    ]
    chosen = [(title, cases) for title, cases in chosen if cases]
    if not any("torch" in found for _, cases in chosen for found in cases.values()):
        return False
    peers = list(dict.fromkeys(record.peer for record in records))
    figure, axes = pyplot.subplots(
        len(chosen), 1, figsize=(9, 3.2 * len(chosen)), squeeze=False, layout="constrained"
    )
    for axis, (title, cases) in zip(axes[:, 0], chosen, strict=True):
        width = 0.8 / len(peers)
        for at, peer in enumerate(peers):
            speeds = [
                1 / ratio(found[peer], found["torch"])
                if peer in found and "torch" in found
                else float("nan")
                for found in cases.values()
            ]
            places = [i + (at - (len(peers) - 1) / 2) * width for i in range(len(cases))]
            axis.bar(places, speeds, width, label=peer)
        axis.axhline(1, color="black", linewidth=0.6)
        names = [f"{MODELS[case.model].title}\n{case.batch}" for case in cases]
        axis.set_xticks(range(len(cases)), names)
        axis.set_ylabel("throughput over PyTorch's")
        axis.set_title(title)
    bars, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(bars, labels, loc="outside upper center", ncols=7, fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figures.save(figure, path)
    pyplot.close(figure)
    return True
