"""The models of the benchmarks, exported and run by onnxruntime, also at other sizes."""

from __future__ import annotations

from typing import Any

import pytest
from models import MODELS, PAPER, gpt2
from run_model import check, kinds

import plait
from plait import nn
from plait.abi import operator

FREE = {"gpt2": {0: "n", 1: "length"}, "bert": {0: "n", 1: "length"}}


def inputs(name: str, batch: int, **options: Any) -> tuple[Any, ...]:
    model = MODELS[name]
    arrays = model.data(batch, **{**model.small[1], **options})
    return tuple(map(plait.from_numpy, arrays[:-1] if model.trained else arrays))


@pytest.mark.parametrize("name", [*PAPER, "bert", "gpt2"])
def test_a_model(name: str, run: Any) -> None:
    plait.manual_seed(0)
    model = MODELS[name].build(plait, **MODELS[name].small[0]).eval()
    args = inputs(name, 2)
    free = [FREE.get(name, {0: "n"})] * len(args)
    other = inputs(name, 3, **({"length": 7} if name in FREE else {}))
    proto = check(model, args, other, run=run, digits=1e-3, dynamic=free)
    weights = {tensor.name for tensor in proto.graph.initializer}
    assert {parameter for parameter, _ in model.named_parameters()} <= weights
    if name in ("resnet50", "mobilenet"):
        assert set(kinds(proto)) <= {
            *("Conv", "BatchNormalization", "Relu", "Clip", "Add", "MaxPool", "ReduceMean"),
            *("Reshape", "Gemm"),
        }


class Step(nn.Module):
    """One word of GPT-2 after five others, whose keys and values are in caches."""

    def __init__(self) -> None:
        super().__init__()
        self.model = gpt2.build(plait, 1 / 6, layers=2, words=50)

    def forward(self, x: Any, *caches: Any) -> Any:
        caches = tuple(cache.clone() for cache in caches)
        return self.model(x, 5, caches), *caches


def test_gpt2_with_its_cache(run: Any) -> None:
    plait.manual_seed(0)

    def args(n: int) -> tuple[Any, ...]:
        caches = [plait.randn(2, n, 2, 1024, 64) for _ in range(2)]
        return (plait.randint(0, 50, (n, 1)), *caches)

    free = [{0: "n"}, {1: "n"}, {1: "n"}]
    check(Step().eval(), args(2), args(3), run=run, digits=1e-3, dynamic=free)


class Detector(nn.Module):
    """Boxes of one stage, decoded, rated, and suppressed where they overlap."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.boxes, self.scores = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 4, 1)

    def forward(self, image: Any) -> Any:
        features = self.body(image)
        moved = self.boxes(features)[0].permute(1, 2, 0).reshape(-1, 4)
        rated = self.scores(features)[0].permute(1, 2, 0).reshape(-1, 2).softmax(1)[:, 1]
        near = moved[:, :2] * 4
        boxes = plait.cat([near, near + moved[:, 2:].exp() * 3], 1)
        scores, order = rated.topk(64)
        boxes = boxes[order].clamp(0, 32)
        likely = scores > 0.4
        boxes, scores = boxes[likely], scores[likely]
        kept = operator("nms")(boxes, scores, 0.3)[:20]
        return boxes[kept], scores[kept]


def test_a_detector(run: Any) -> None:
    plait.manual_seed(0)
    images = [(plait.randn(1, 3, 32, 32),) for _ in range(3)]
    check(Detector().eval(), *images, run=run, digits=1e-3)
