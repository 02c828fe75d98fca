"""Build a page that recognises drawn digits and learns from corrections, without a server's help.

    python examples/browser/build_page.py
    python -m http.server --directory results/browser

A small network is trained on MNIST and written as two graphs: one gives probabilities, the other
makes a step of training with any number of digits. `plait.graph.bundle` compiles one module of
WebAssembly for both, which needs Emscripten (Debian: apt install emscripten). The folder that is
written has all that the page needs; any web server can serve it.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import mnist  # noqa: E402
import mnist_files  # noqa: E402

import plait  # noqa: E402
from plait import nn, optim  # noqa: E402
from plait.graph import bundle, export  # noqa: E402

PAGE = ("index.html", "page.css", "page.js", "drawing.js")
F = nn.functional


class SmallNet(nn.Module):
    """Two convolutions and two linear layers: 28x28 images, white on black in [0, 1], to scores."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x: plait.Tensor) -> plait.Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def write_graphs(model: nn.Module, folder: Path, rate: float = 0.05) -> list[Path]:
    """Write the graph of probabilities and that of a training step; return the files."""
    images, labels = plait.rand(4, 1, 28, 28), plait.tensor([0, 1, 2, 3])
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = optim.SGD(model.parameters(), lr=rate)  # without a state: a smaller file

    def step(images: plait.Tensor, labels: plait.Tensor) -> plait.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    # `export` makes steps on these images; the page begins with the weights of the other graph.
    free = {"images": {0: "batch"}, "labels": {0: "batch"}}
    export(step, (images, labels), folder / "train.safetensors", training=True, dynamic=free)
    model.load_state_dict(weights)

    def probabilities(image: plait.Tensor) -> plait.Tensor:
        return F.softmax(model(image), 1)

    export(probabilities, (images[:1],), folder / "predict.safetensors")
    return [folder / "predict.safetensors", folder / "train.safetensors"]


def train(epochs: int, limit: int | None, data: Path) -> nn.Module:
    """Train the network on MNIST and print its accuracy."""
    mnist_files.write_files(data)
    scale = plait.tensor(0.3081), plait.tensor(0.1307)

    def load(is_training: bool) -> plait.utils.data.TensorDataset:
        images, labels = mnist.load(data, train=is_training).tensors
        return plait.utils.data.TensorDataset(images * scale[0] + scale[1], labels)

    digits = load(True)
    count = len(digits) if limit is None else min(limit, len(digits))
    model = SmallNet()
    chosen = plait.utils.data.Subset(digits, range(count))
    mnist.train(model, chosen, load(False), epochs)
    return model


def sizes(folder: Path) -> list[tuple[str, int, int]]:
    """Return the files of a page: name, bytes, bytes when they are compressed by gzip."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return [(f.name, f.stat().st_size, len(gzip.compress(f.read_bytes(), 9))) for f in files]


def main(arguments: list[str] | None = None) -> None:
    """Read the flags, train, export, compile and copy."""
    parser = argparse.ArgumentParser(description="Build a page that recognises and learns digits.")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--limit", type=int, help="train on the first LIMIT digits only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=mnist_files.default_folder())
    parser.add_argument("--output", type=Path, default=Path("results/browser"))
    flags = parser.parse_args(arguments)
    plait.manual_seed(flags.seed)
    flags.output.mkdir(parents=True, exist_ok=True)
    files = write_graphs(train(flags.epochs, flags.limit, flags.data), flags.output)
    bundle(files, flags.output / "digits.wasm", target="wasm32")
    for name in PAGE:
        shutil.copyfile(HERE / name, flags.output / name)
    rows = sizes(flags.output)
    rows.append(("together", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    for name, nbytes, compressed in rows:
        print(f"{name:24} {nbytes:8} bytes, {compressed:7} by gzip")


if __name__ == "__main__":
    main()
