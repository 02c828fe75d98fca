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

    selection = [
        (title, by_case(records, section))
        for title, section in (("Training", "training"), ("Inference", "inference"))
    ]
    selection = [(title, cases) for title, cases in selection if cases]
    if not any("torch" in result for _, cases in selection for result in cases.values()):
        return False
    peers = list(dict.fromkeys(record.peer for record in records))
    figure, axes = pyplot.subplots(
        len(selection), 1, figsize=(9, 3.2 * len(selection)), squeeze=False, layout="constrained"
    )
    for axis, (title, cases) in zip(axes[:, 0], selection, strict=True):
        width = 0.8 / len(peers)
        for at, peer in enumerate(peers):
            speeds = [
                1 / ratio(result[peer], result["torch"])
                if peer in result and "torch" in result
                else float("nan")
                for result in cases.values()
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
