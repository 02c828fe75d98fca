"""The pictures that the examples draw; matplotlib is needed only here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["digit_grid", "learning_curve", "training_summary"]

Images = npt.NDArray[Any]


def training_summary(
    path: Path,
    losses: Sequence[float],
    accuracies: Sequence[float],
    images: Images,
    labels: Sequence[int],
    predictions: Sequence[int],
) -> Path | None:
    """Draws loss and accuracy by epoch above a row of test images with their predictions.

    Args:
        path: the PNG file to write; its folder is made.
        losses, accuracies: one number an epoch, accuracies in [0, 1].
        images: (n, rows, columns); labels, predictions: n digits.

    Returns:
        ``path``, or None with a message where matplotlib is not installed.
    """
    figure_type = _figure_type()
    if figure_type is None:
        return None
    figure = figure_type(figsize=(11, 6), layout="constrained")
    curves, row = figure.subfigures(2, 1, height_ratios=[2, 1])
    loss_axes, accuracy_axes = curves.subplots(1, 2)
    epochs = range(1, len(losses) + 1)
    loss_axes.plot(epochs, losses, marker="o")
    loss_axes.set(xlabel="epoch", ylabel="mean training loss", xticks=list(epochs))
    accuracy_axes.plot(epochs, [100 * a for a in accuracies], marker="o", color="C2")
    accuracy_axes.set(xlabel="epoch", ylabel="test accuracy (%)", xticks=list(epochs))
    columns = max(len(images), 1)
    for axes, image, label, guess in zip(
        np.ravel(row.subplots(1, columns)), images, labels, predictions, strict=True
    ):
        axes.imshow(image, cmap="gray_r")
        axes.set_axis_off()
        axes.set_title(f"{guess}", color="C2" if guess == label else "C3")
        if guess != label:
            axes.text(0.5, -0.15, f"is {label}", transform=axes.transAxes, ha="center")
    return _save(figure, path)


def digit_grid(path: Path, images: Images, title: str) -> Path | None:
    """Draws images of shape (n, rows, columns) in a square grid; returns as above."""
    figure_type = _figure_type()
    if figure_type is None:
        return None
    side = max(int(len(images) ** 0.5), 1)
    figure = figure_type(figsize=(6, 6.4), layout="constrained")
    figure.suptitle(title)
    for axes, image in zip(np.ravel(figure.subplots(side, side)), images, strict=False):
        axes.imshow(image, cmap="gray_r")
        axes.set_axis_off()
    return _save(figure, path)


def learning_curve(
    path: Path, values: Sequence[float], names: tuple[str, str], lines: dict[str, float]
) -> Path | None:
    """Draws one number a step, with horizontal lines to compare with; returns as above.

    Args:
        path: as above.
        values: the numbers, of which the first is that of step 1.
        names: those of a step and of a number.
        lines: the height of each line by its name.
    """
    figure_type = _figure_type()
    if figure_type is None:
        return None
    figure = figure_type(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(range(1, len(values) + 1), values)
    for number, (name, height) in enumerate(lines.items(), 1):
        axes.axhline(height, color=f"C{number}", linestyle="--", label=name)
    axes.set(xlabel=names[0], ylabel=names[1])
    if lines:
        axes.legend()
    return _save(figure, path)


def _figure_type() -> Any:
    try:
        from matplotlib.figure import Figure  # draws without pyplot, hence without a display
    except ImportError:
        print("no picture: matplotlib is not installed (pip install matplotlib)")
        return None
    return Figure


def _save(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    return path
