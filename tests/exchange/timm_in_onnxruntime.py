"""timm's models, exported by `torch.onnx.export` under the facade and run by onnxruntime.

    python -m plait.torch tests/exchange/timm_in_onnxruntime.py [NAME ...]

Prints a line for each model: the largest difference from plait's outputs, divided by the largest
output; the numbers of nodes and of parameters whose names the file has; seconds. It ends with an
error if a difference is larger than 0.001 or a model is not exported.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import onnxruntime
import timm
import torch

NAMES = {
    **dict.fromkeys(("resnet50", "resnet18", "resnet34", "resnet101", "resnext50_32x4d"), 96),
    **dict.fromkeys(("wide_resnet50_2", "efficientnet_b0", "efficientnet_b3"), 96),
    **dict.fromkeys(("tf_efficientnetv2_s", "mobilenetv3_large_100"), 96),
    **dict.fromkeys(("mobilenetv3_small_100", "mobilenetv2_100", "convnext_tiny"), 96),
    **dict.fromkeys(("convnextv2_tiny", "densenet121", "regnety_016", "vgg16"), 96),
    **dict.fromkeys(("inception_v3", "xception41", "nfnet_l0", "seresnext50_32x4d"), 96),
    **dict.fromkeys(("ghostnet_100", "edgenext_small", "mobilevit_s"), 96),
    **dict.fromkeys(("vit_tiny_patch16_224", "vit_base_patch16_224", "mixer_b16_224"), 224),
    **dict.fromkeys(("deit_small_patch16_224", "swin_tiny_patch4_window7_224"), 224),
    **dict.fromkeys(("eva02_tiny_patch14_224", "maxvit_tiny_tf_224", "levit_128"), 224),
    **dict.fromkeys(("efficientformer_l1", "coatnet_0_rw_224"), 224),
}
LARGEST = 1e-3


def difference(name: str, size: int) -> tuple[float, Any, Any]:
    """Return the difference of a model, the model, and the ONNX model."""
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=10).eval()
    for parameter in model.parameters():  # some begin with zeros, as do last layers
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
    if name.startswith(("vit", "eva")):
        size = model.default_cfg["input_size"][-1]
    x = torch.randn(2, 3, size, size)
    with torch.no_grad():
        proto = torch.onnx.export(model, (x,)).model_proto
        expected = model(x).numpy()
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (output,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    return float(np.abs(output - expected).max() / np.abs(expected).max()), model, proto


def main(names: list[str]) -> int:
    """Compare the models and return the exit code."""
    failed = []
    for name in names:
        start = time.perf_counter()
        try:
            error, model, proto = difference(name, NAMES.get(name, 224))
        except Exception as problem:
            print(f"{name}: {type(problem).__name__}: {problem}", flush=True)
            failed.append(name)
            continue
        own = {parameter for parameter, _ in model.named_parameters()}
        kept = len(own & {tensor.name for tensor in proto.graph.initializer})
        seconds = time.perf_counter() - start
        line = f"{name}: {error:.1e}, {len(proto.graph.node)} nodes"
        print(f"{line}, {kept} of {len(own)} names, {seconds:.0f} s", flush=True)
        if not error <= LARGEST:
            failed.append(name)
    print(f"{len(names) - len(failed)} of {len(names)} models; failed: {', '.join(failed) or '-'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(NAMES)))
