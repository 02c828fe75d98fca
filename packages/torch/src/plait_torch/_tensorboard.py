"""`torch.utils.tensorboard`: a `SummaryWriter` over the package `tensorboard`."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

from plait_abi.frames import warn
from plait_torch._missing import MissingName

try:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    from plait_torch import _summaries
except ImportError as error:
    raise ImportError(
        "torch.utils.tensorboard: the package tensorboard is required: "
        f"pip install tensorboard ({error})",
        name="tensorboard",
    ) from error

__all__ = ["SummaryWriter", "hparams"]

hparams = _summaries.hparams

_NO_GRAPH = "plait_torch: SummaryWriter.add_graph: plait keeps no graph; nothing is written"


class _FileWriter:
    """What writes records that a program made itself into the writer's folder."""

    def __init__(self, writer: SummaryWriter) -> None:
        self._writer = writer

    def add_summary(
        self, summary: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a record."""
        self._writer._add(summary, global_step, walltime)

    def get_logdir(self) -> str:
        """Return the folder."""
        return self._writer.get_logdir()

    def flush(self) -> None:
        """Write buffered events."""
        self._writer.flush()


class SummaryWriter:
    """A writer of summaries to a folder that TensorBoard reads.

    Args:
        log_dir: the folder; by default ``runs/<date>_<host><comment>``.
        comment: see `log_dir`.
        purge_step: existing steps from this one on are hidden.
        max_queue, flush_secs: the number of buffered events, and the seconds between flushes.
        filename_suffix: the end of the file's name.
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            when = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{when}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self._options = (max_queue, flush_secs, filename_suffix)
        self._projector: Any = None  # the list of embeddings
        self._writers = {self.log_dir: self._open(self.log_dir)}
        if purge_step is not None:
            self._add(None, purge_step, session=purge_step)

    def _open(self, folder: str) -> Any:
        writer = EventFileWriter(folder, *self._options)
        return writer

    def _add(
        self,
        summary: Any,
        step: int | None,
        walltime: float | None = None,
        folder: str | None = None,
        session: int | None = None,
    ) -> None:
        folder = self.log_dir if folder is None else folder
        if folder not in self._writers:
            self._writers[folder] = self._open(folder)
        event = Event(wall_time=time.time() if walltime is None else walltime, summary=summary)
        if session is not None:
            event.session_log.status = event.session_log.START
        if step is not None:
            event.step = int(step)
        self._writers[folder].add_event(event)

    def _get_file_writer(self) -> _FileWriter:
        return _FileWriter(self)

    def get_logdir(self) -> str:
        """Return the folder."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Write a number."""
        self._add(_summaries.scalar(tag, scalar_value), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write numbers of one chart, each to a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            self._add(_summaries.scalar(main_tag, value), global_step, walltime, folder)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Write a histogram of values."""
        self._add(_summaries.histogram(tag, values, bins), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Write a picture: bytes, or floats in [0, 1]."""
        self._add(_summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Write pictures, side by side."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Write a figure of matplotlib, or several of one size."""
        self.add_image(tag, _summaries.drawn(figure, close), global_step, walltime, "NHWC")

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write a text in Markdown."""
        self._add(_summaries.text(tag, text_string), global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: Any = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Write hyperparameters and metrics, to a folder of their own."""
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        for summary in _summaries.hyperparameters(hparam_dict, metric_dict):
            self._add(summary, None, None, folder)
        for tag, value in metric_dict.items():
            self._add(_summaries.scalar(tag, value), global_step or 0, None, folder)

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Write points for the projector, with labels and small pictures if they are given.

        Args:
            mat: the points, a matrix with a row for each.
            metadata: a label for each point, or with `metadata_header` a list of fields.
            label_img: a picture for each point: (points, 3, height, width), as in `add_image`.
            global_step, tag: name the embedding.
            metadata_header: the names of the fields.

        Raises:
            ValueError: for points that are no matrix, or labels or pictures of another number.
        """
        from plait_torch import _embeddings

        if self._projector is None:
            self._projector = _embeddings.ProjectorConfig()
        step = 0 if global_step is None else int(global_step)
        points = (mat, metadata, label_img, step, tag, metadata_header)
        _embeddings.write(self.get_logdir(), self._projector, *points)

    def add_graph(self, model: Any, input_to_model: Any = None, *args: Any, **kwargs: Any) -> None:
        """Warn: there is no graph to write."""
        warn(_NO_GRAPH, UserWarning)

    def flush(self) -> None:
        """Write buffered events."""
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """Write buffered events and close the files; what is added later goes to new ones."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        raise MissingName(
            f"plait_torch: SummaryWriter.{name} is not available; scalars, histograms, "
            "pictures, figures, texts and hparams are",
            name=name,
            obj=self,
        )
