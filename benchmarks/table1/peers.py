"""The sides of the table: what each installs, which module has its models, how it is set up."""

from __future__ import annotations

import ctypes.util
import os
from dataclasses import dataclass, field

__all__ = ["PEERS", "Peer", "environment"]


@dataclass(frozen=True)
class Peer:
    """One row of the table.

    Attributes:
        name: in tables and on the command line.
        side: the module of ``sides`` with its models.
        place: the name of its virtual environment; rows may share one.
        requirements: what pip installs there.
        tuned: ``side`` is told to use what its own performance guide recommends.
        preload: libraries for LD_PRELOAD, by their linker names, where the system has them.
        avx2: environment variables that keep it to AVX2.
        note: what the page says about it.
    """

    name: str
    side: str
    place: str
    requirements: tuple[str, ...]
    tuned: bool = False
    preload: tuple[str, ...] = ()
    avx2: dict[str, str] = field(default_factory=dict)
    note: str = ""

    def preloaded(self) -> str | None:
        """The first of ``preload`` that the system has, as the loader finds it, or None."""
        result = (ctypes.util.find_library(name) for name in self.preload)
        return next((name for name in result if name), None)


TORCH = ("torch==2.13.0", "numpy")
ONEDNN = {"ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
TORCH_AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", **ONEDNN}

PEERS = {
    peer.name: peer
    for peer in (
        Peer("plait", "plait_side", "plait", (), avx2={"PLAIT_CPU": "avx2"}),
        Peer("torch", "torch_side", "torch", TORCH, avx2=TORCH_AVX2, note="as it is installed"),
        Peer(
            "torch tuned",
            "torch_side",
            "torch",
            TORCH,
            tuned=True,
            preload=("tcmalloc_minimal", "tcmalloc"),
            avx2=TORCH_AVX2,
            note="channels_last for images, fused optimizers, inference_mode, tcmalloc",
        ),
        Peer(
            "tensorflow",
            "tensorflow_side",
            "tensorflow",
            ("tensorflow-cpu",),
            avx2=ONEDNN,
            note="a step is one tf.function; images are channels-last",
        ),
        Peer(
            "jax",
            "jax_side",
            "jax",
            ("jax[cpu]",),
            avx2={"XLA_FLAGS": "--xla_cpu_max_isa=AVX2"},
            note="a step is one jitted function that donates its buffers",
        ),
        Peer(
            "paddle",
            "paddle_side",
            "paddle",
            ("paddlepaddle", "setuptools"),
            avx2=ONEDNN,
            note="eager, the models of paddle.vision",
        ),
        Peer(
            "mxnet",
            "mxnet_side",
            "mxnet",
            ("mxnet==1.9.1", "numpy<1.24"),
            avx2=ONEDNN,
            note="hybridized, the models of gluon.model_zoo",
        ),
    )
}


def environment(peer: Peer, threads: int, avx2: bool) -> dict[str, str]:
    """Return the environment variables of a worker: ours, the threads, the instruction set."""
    values = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", PYTHONHASHSEED="0")
    # of libraries that read the number only when they are loaded
    values |= {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    if avx2:
        values |= peer.avx2
    if library := peer.preloaded():
        values["LD_PRELOAD"] = library
    return values
