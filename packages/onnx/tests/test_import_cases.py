"""The test cases that the package onnx has for backends: of nodes, and of small models.

A part of them runs by default, all of them with ``--slow``. The file onnx_cases.json has those that
fail, with the reasons.
"""

import fnmatch
import glob
import json
import os
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import plait_autograd
import plait_core as pc
import plait_onnx
from plait_onnx import _dtypes

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from onnx_cases import SLOW, elements_in, is_of_default_domain, node_cases, tensor_of

EACH = 8  # one of so many runs by default
BFLOAT16 = 2.0**-6  # the tolerance of onnx's own comparison
with open(os.path.join(os.path.dirname(__file__), "onnx_cases.json"), encoding="utf-8") as stream:
    EXCEPTIONS = json.load(stream)


def assert_close(name, result, expected, rtol, atol):
    if isinstance(expected, list):
        assert len(result) == len(expected), name
        for one, other in zip(result, expected, strict=True):
            assert_close(name, one, other, rtol, atol)
        return
    expected = tensor_of(expected)
    if expected is None:
        assert result is None, name
        return
    assert result.shape == expected.shape and result.dtype == expected.dtype, name
    if expected.is_floating_point() and expected.itemsize < 4:
        rtol = max(rtol, BFLOAT16) if expected.dtype == pc.bfloat16 else rtol
        result, expected = result.float(), expected.float()
    result, expected = result.detach().numpy(), expected.numpy()
    np.testing.assert_allclose(result, expected, rtol, atol, err_msg=name)


def run(name, module, inputs, outputs, rtol, atol):
    with plait_autograd.no_grad():
        results = module(*(tensor_of(value) for value in inputs))
    results = list(results) if isinstance(results, tuple) else [results]
    assert_close(name, results, list(outputs), rtol, atol)


def exception_for(name):
    for kind, entry in EXCEPTIONS.items():
        ours = any(fnmatch.fnmatch(name, pattern) for pattern in entry["cases"])
        if ours and not any(fnmatch.fnmatch(name, p) for p in entry.get("but", ())):
            return kind
    return None


def check_nodes(cases):
    """Run cases of the default domain for our dtypes: 95 % must pass, and each other be known."""
    passed, failed, unknown = 0, [], []
    for case in cases:
        if not is_of_default_domain(case.model):
            continue
        if not elements_in(case.model) <= set(_dtypes.DTYPES):
            continue
        try:
            module = plait_onnx.load(case.model)
            for inputs, outputs in case.data_sets:
                run(case.name, module, inputs, outputs, case.rtol, case.atol)
            passed += 1
        except Exception as error:
            failed.append(case.name)
            if exception_for(case.name) is None:
                unknown.append(f"{case.name}: {type(error).__name__}: {error}")
    print(f"{passed} of {passed + len(failed)} cases pass")
    assert not unknown, "\n".join(unknown)
    assert passed >= 0.95 * (passed + len(failed))
    return passed


def test_nodes():
    assert check_nodes(node_cases(SLOW)[::EACH]) > 150


@pytest.mark.slow
def test_all_nodes():
    assert check_nodes(node_cases()) > 1700


def value_of(path, kind):
    with open(path, "rb") as stream:
        data = stream.read()
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return onnx.TensorProto.FromString(data)


def check_models(kind, each):
    folder = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", kind)
    paths = sorted(glob.glob(os.path.join(folder, "*", "model.onnx")))
    assert paths
    count = 0
    for path in paths[::each]:
        model = onnx.load(path)
        if not is_of_default_domain(model) or not elements_in(model) <= set(_dtypes.DTYPES):
            continue
        module = plait_onnx.load(path)
        inputs = [v for v in model.graph.input if v.name in module._required]
        for case in glob.glob(os.path.join(os.path.dirname(path), "test_data_set_*")):
            pair = [
                [
                    value_of(os.path.join(case, f"{name}_{i}.pb"), value.type.WhichOneof("value"))
                    for i, value in enumerate(values)
                ]
                for name, values in (("input", inputs), ("output", model.graph.output))
            ]
            run(path, module, *pair, 1e-3, 1e-5)
            count += 1
    assert count


KINDS = ["simple", "pytorch-converted", "pytorch-operator"]


@pytest.mark.parametrize("kind", KINDS)
def test_models(kind):
    check_models(kind, EACH)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_models(kind):
    check_models(kind, 1)
