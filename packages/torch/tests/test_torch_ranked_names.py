"""The names of PyTorch that two or more packages use are there: `used_names.json` ranks them.

`tools/used_names.py` wrote the table from the sources of packages that depend on PyTorch.
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import warnings

import plait_torch
from plait_torch.names import first_missing

_SPARSE = "sparse tensors are classes of their own, which have these methods"
_QUANTIZED = "plait has no quantized tensors"
_REMOVED = "PyTorch's method raises; the function does so too, and says what to use"
_BINARY = "a part of PyTorch's binary, which is not here"
# names that are not there, and why
_OF_TENSORS = {
    """_coalesced_ _indices _nnz _values ccol_indices coalesce col_indices crow_indices indices
    is_coalesced row_indices values""": _SPARSE,
    "_nested_tensor_size to_padded_tensor": "there are no nested tensors",
    "chalf": "there are no complex numbers of 16-bit parts",
    "hash_tensor": "PyTorch's checks of its compiler use it",
    """dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points
    q_scale q_zero_point qscheme""": _QUANTIZED,
    "eig lstsq solve symeig": _REMOVED,
    """__setstate__ _backward_hooks _grad _python_dispatch _typed_storage is_distributed
    storage_type""": _BINARY,
    "index name": "counted for other classes, which have it",
    "xpu": "there are no devices of the type xpu",
}
EXCEPTIONS = {
    **{
        f"torch.Tensor.{name}": reason
        for names, reason in _OF_TENSORS.items()
        for name in names.split()
    },
    "torch.ao.quantization.HistogramObserver.with_args": _QUANTIZED,
    "torch._C.TensorType.get": _BINARY,
    "torch.classes": _BINARY,
    "torch.nn.Module.xpu": "there are no devices of the type xpu",
    "torch.nn.functional._Reduction.get_enum": _BINARY,
    "torch.package.PackageImporter": "files of torch.package contain code",
    "torch.utils.cmake_prefix_path": "there is no build of C++ against PyTorch's headers",
    "torch.utils.data.DataLoader._DataLoader__initialized": "an attribute of each loader",
    "torch.utils.data.DataLoader.multiprocessing_context": "an attribute of each loader",
}


def test_names_that_packages_use_are_there() -> None:
    file = pathlib.Path(__file__).with_name("used_names.json")
    table = json.loads(file.read_text(encoding="utf-8"))
    assert table["packages"] >= 300
    names = {
        f"{place}.{name}" for place, text in table["names"].items() for name in text.split()[::2]
    }
    assert len(names) > 2300 and names >= EXCEPTIONS.keys()
    with plait_torch.installed(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        missing = {name for name in names if first_missing(name)}
    if importlib.util.find_spec("plait_ray") is None:
        missing -= {"torch.distributed.rpc.is_available"}
    if importlib.util.find_spec("tensorboard") is None:
        missing -= {"torch.utils.tensorboard.SummaryWriter"}
    assert missing - EXCEPTIONS.keys() == set()
