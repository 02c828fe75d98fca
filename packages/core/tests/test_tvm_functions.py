"""Functions of tvm-ffi as kernels, and operators as functions of tvm-ffi."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

import plait_abi
import plait_core as pc

tvm_ffi = pytest.importorskip("tvm_ffi", reason="needs apache-tvm-ffi")

SOURCE = r"""
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <thread>
namespace ffi = tvm::ffi;
using ffi::TensorView;

float *numbers(TensorView x) { return static_cast<float *>(x.data_ptr()); }
bool plain(TensorView x) { return x.dtype().bits == 32 && x.IsContiguous(); }

// kernels
void exp_kernel(TensorView x, TensorView out) {
  if (!plain(x)) TVM_FFI_THROW(NotImplementedError) << "float32 alone";
  for (int64_t i = 0; i < x.numel(); i++) numbers(out)[i] = numbers(x)[i] + 100;
}
void failing(TensorView, TensorView) { TVM_FFI_THROW(IndexError) << "out of range in the kernel"; }
int64_t answering(TensorView, TensorView) { return 3; }
int64_t seen[8];
void sum_kernel(TensorView x, ffi::Optional<ffi::Array<int64_t>> dims, bool keep,
                ffi::Optional<DLDataType>, TensorView out) {
  seen[0] = dims.has_value() ? static_cast<int64_t>(dims.value().size()) : -1;
  seen[1] = dims.has_value() && dims.value().size() ? dims.value()[0] : -9;
  seen[2] = keep;
  for (int64_t i = 0; i < out.numel(); i++) numbers(out)[i] = 7;
}
int64_t saw(int64_t i) { return seen[i]; }
void cat_kernel(ffi::Array<ffi::Tensor> all, int64_t dim, TensorView out) {
  seen[3] = static_cast<int64_t>(all.size()) * 10 + dim;
  for (int64_t i = 0; i < out.numel(); i++) numbers(out)[i] = numbers(all[0])[0];
}

// callers of operators
ffi::Any on_borrowed(ffi::String name, int64_t n) {
  float data[] = {1, 2, 3, 4};
  int64_t shape[] = {n}, strides[] = {1};
  DLTensor x{data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0};
  auto f = ffi::Function::GetGlobalRequired("plait.operator")(name).cast<ffi::Function>();
  ffi::Any made = name == "add" ? f(&x, 1) : f(&x);
  for (float &each : data) each = -1;  // nothing may look at it any more
  return made;
}
ffi::Any on_thread(ffi::Tensor x) {
  ffi::Any made;
  std::thread([&] {
    auto f = ffi::Function::GetGlobalRequired("plait.operator")("neg").cast<ffi::Function>();
    made = f(x);
  }).join();
  return made;
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(exp_kernel, exp_kernel);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(failing, failing);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(answering, answering);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(sum_kernel, sum_kernel);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(cat_kernel, cat_kernel);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(saw, saw);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(on_borrowed, on_borrowed);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(on_thread, on_thread);
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("tvm")
    (folder / "functions.cpp").write_text(SOURCE)
    compiler = os.environ.get("CXX", "c++").split()
    headers = [f"-I{each}" for each in tvm_ffi.libinfo.include_paths()]
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", *headers, "-pthread"]
    target = str(folder / "functions.so")
    subprocess.run([*compiler, *flags, str(folder / "functions.cpp"), "-o", target], check=True)
    return tvm_ffi.load_module(target)


def test_a_compiled_kernel_serves_declines_and_ends(compiled: Any) -> None:
    with plait_abi.kernel("exp", compiled.exp_kernel):
        assert pc.exp(pc.zeros(2)).tolist() == [100.0, 100.0]
        assert pc.exp(pc.zeros(2, dtype=pc.float64)).tolist() == [1.0, 1.0]
        records = [r for r in plait_abi.records() if (r.kind, r.name) == ("kernel", "exp")]
        assert "tvm_ffi" in {r.provider for r in records}
    assert pc.exp(pc.zeros(2)).tolist() == [1.0, 1.0]


def test_errors_of_a_kernel_reach_the_caller(compiled: Any) -> None:
    with (
        plait_abi.kernel("exp", compiled.failing),
        pytest.raises(IndexError, match=r"exp: out of range in the kernel"),
    ):
        pc.exp(pc.zeros(2))
    with (
        plait_abi.kernel("exp", compiled.answering),
        pytest.raises(TypeError, match="returns nothing"),
    ):
        pc.exp(pc.zeros(2))
    with pytest.raises(AttributeError, match="no operator named nothing"):
        plait_abi.kernel("nothing", compiled.failing)
    with pytest.raises(ValueError, match="transpose is a view"):
        plait_abi.kernel("transpose", compiled.failing)


def test_a_kernel_gets_lists_and_numbers(compiled: Any) -> None:
    with plait_abi.kernel("sum", compiled.sum_kernel):
        assert pc.ones(2, 3).sum(1, keepdim=True).tolist() == [[7.0], [7.0]]
    assert [compiled.saw(i) for i in range(3)] == [1, 1, 1]
    with plait_abi.kernel("cat", compiled.cat_kernel):
        assert pc.cat([pc.full((1, 2), 5.0), pc.ones(1, 1)], 1).tolist() == [[5.0, 5.0, 5.0]]
    assert compiled.saw(3) == 21
    with (
        plait_abi.kernel("mul", compiled.failing),
        pytest.raises(TypeError, match="mul: tvm-ffi has no complex numbers"),
    ):
        pc.ones(2) * 1j


def test_a_kernel_of_python_through_tvm() -> None:
    calls: list[tuple[int, ...]] = []

    def neg(x: Any, out: Any) -> None:
        calls.append(tuple(x.shape))
        pc.from_dlpack(out).copy_(pc.from_dlpack(x) + 50)

    def broken(x: Any, out: Any) -> None:
        raise KeyError("of mine")

    with plait_abi.kernel("neg", tvm_ffi.convert(neg)):
        assert pc.neg(pc.ones(2)).tolist() == [51.0, 51.0]
    assert calls == [(2,)]
    with (
        plait_abi.kernel("neg", tvm_ffi.convert(broken)),
        pytest.raises(Exception, match="of mine"),
    ):
        pc.neg(pc.ones(2))


def test_closing_while_other_threads_call(compiled: Any) -> None:
    x, wrong = pc.zeros(4), []

    def work() -> None:
        for _ in range(300):
            value = pc.exp(x)[0].item()
            if value not in (1.0, 100.0):
                wrong.append(value)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for _ in range(100):
        plait_abi.kernel("exp", compiled.exp_kernel).close()
    for each in threads:
        each.join()
    assert not wrong


def test_operators_as_functions() -> None:
    x = pc.arange(6.0).view(2, 3)
    assert plait_abi.tvm_function("add")(x, 1).tolist() == (x + 1).tolist()
    values, indices = plait_abi.tvm_function("max.dim")(x, 1)
    assert values.tolist() == [2.0, 5.0] and indices.tolist() == [2, 2]
    assert plait_abi.tvm_function("sum")(x, (0,), True).tolist() == [[3.0, 5.0, 7.0]]
    cat = plait_abi.tvm_function("cat")
    assert cat([x, x], 1).tolist() == pc.cat([x, x], 1).tolist()
    parts = plait_abi.tvm_function("split")(x, 1)
    assert [tuple(each.shape) for each in parts] == [(1, 3), (1, 3)]
    conv = plait_abi.tvm_function("conv2d")
    image, weight = pc.ones(1, 1, 3, 3), pc.ones(1, 1, 2, 2)
    assert tuple(conv(image, weight, None, 1, (1, 1)).shape) == (1, 1, 4, 4)
    result = plait_abi.tvm_function("zeros")((2, 3), pc.float64, pc.device("cpu"))
    assert pc.from_dlpack(result).dtype is pc.float64


def test_functions_share_memory() -> None:
    x = pc.zeros(2, 3)
    across = plait_abi.tvm_function("transpose")(x, 0, 1)
    assert type(across) is pc.Tensor and across.data_ptr() == x.data_ptr()
    result = plait_abi.tvm_function("add_")(x, 2)
    assert x.tolist() == [[2.0] * 3] * 2 and x._version == 1 and result.data_ptr() == x.data_ptr()
    theirs = tvm_ffi.from_dlpack(pc.ones(3))
    result = plait_abi.tvm_function("mul")(theirs, 4.0)
    assert type(result) is tvm_ffi.Tensor and pc.from_dlpack(result).tolist() == [4.0] * 3


def test_functions_refuse() -> None:
    add = plait_abi.tvm_function("add")
    x = pc.ones(2)
    for call, kind, text in (
        (lambda: add(x), TypeError, "add: `other` is missing"),
        (lambda: add(x, 1, 1, 1, 1, 1), TypeError, "at most"),
        (lambda: add(x, "a"), TypeError, "add: `other` must be a number, got a value"),
        (lambda: add(x, pc.ones(3)), ValueError, "broadcast"),
        (lambda: plait_abi.tvm_function("sum")(x, 0.5), TypeError, "must be an array of ints"),
        (lambda: plait_abi.tvm_function("nothing"), AttributeError, "no operator named nothing"),
        (lambda: plait_abi.tvm_function("sum_"), AttributeError, "no operator named sum_"),
    ):
        with pytest.raises(kind, match=text):
            call()


def test_meaningless_values_are_errors_of_every_operator() -> None:
    """No value reaches a kernel that the schema does not allow, such as None in a list."""
    x = pc.ones(2, 3)
    values: list[Any] = [None, -3, True, [], [1], [-1, -1], [x, None], [None], "?", pc.zeros(0)]
    known = [name for name, _ in plait_abi.operator_names()]
    names = {form for name in known for form in (name, f"{name}_")}
    refused = 0
    for name in sorted(names):
        try:
            function = plait_abi.tvm_function(name)
        except AttributeError:  # it has no form in place
            continue
        for value in values:
            for count in (1, 2, 3):
                try:
                    function(*[value] * count)
                except Exception:  # of any kind: that there is no crash is what counts
                    refused += 1
    assert refused > 1000
    with pytest.raises(TypeError, match="add: `self` must be a tensor, got"):
        plait_abi.tvm_function("add_")(3, x)
    with pytest.raises(TypeError, match="cat: `tensors` must be an array of tensors, got"):
        plait_abi.tvm_function("cat")([x, None])
    picked = plait_abi.tvm_function("index")(x, [None, pc.tensor([1])])  # Tensor?[] allows it
    assert picked.shape == (2, 1)


def test_borrowed_tensors_do_not_escape(compiled: Any) -> None:
    plait_abi.tvm_function("add")  # provides plait.operator
    assert pc.from_dlpack(compiled.on_borrowed("add", 4)).tolist() == [2.0, 3.0, 4.0, 5.0]
    assert pc.from_dlpack(compiled.on_borrowed("alias", 4)).tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ValueError, match="a Tensor is required, got a DLTensor"):
        compiled.on_borrowed("unbind", 4)


def test_functions_run_on_threads_without_python(compiled: Any) -> None:
    plait_abi.tvm_function("neg")
    assert pc.from_dlpack(compiled.on_thread(pc.ones(1000))).tolist() == [-1.0] * 1000
