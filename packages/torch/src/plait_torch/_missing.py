"""Names that PyTorch has and plait does not, with workarounds."""

from __future__ import annotations

__all__ = ["MissingModule", "MissingName", "advice", "explain"]

_QUANTIZED = "plait has no quantized tensors: keep float32, or `half()` for storage"
_SCRIPT = "plait runs Python as it stands and has no graph of it to keep or to show"
_DISTRIBUTED = (
    "several processes of one host are there with the package plait-distributed (process groups, "
    "collectives, DistributedDataParallel, fully_shard); without it "
    "`torch.distributed.is_available()` is False"
)
_CALLS = "remote calls are there with the package plait-ray (pip install plait-ray)"
_PATTERNED = "use `to_sparse_csr()`, or a dense tensor with zeros"
_CUDA = "there is no component for CUDA: ask `torch.cuda.is_available()` first"
_NESTED = "pad with `torch.nn.utils.rnn.pad_sequence`, or pack with `pack_padded_sequence`"
_MASKED = "use `torch.where` and `masked_fill`"
_EXTENSION = (
    "operators in C++ are built with `plait_abi.build`, and in Python with `plait_abi.kernel`"
)
_TRANSFORMS = "the functions of `torch.func` are there, what they are made of is not"
_SCRIPT_NAMES = """
    AnyType Argument Block BoolType ClassType CompilationUnit DictType FloatType FunctionSchema
    Graph IntType InterfaceType ListType NoneType NumberType OptionalType ScriptDict ScriptList
    ScriptObject StringType TensorType TupleType Type Value
"""
_OLD = "PyTorch removed it as well; "

# names below "torch.", or prefixes of names with a dot at the end
_WAYS = {
    "quantize_per_tensor": _QUANTIZED,
    "quantize_per_channel": _QUANTIZED,
    "dequantize": _QUANTIZED,
    "fake_quantize_per_tensor_affine": _QUANTIZED,
    "qint8": _QUANTIZED,
    "quint8": _QUANTIZED,
    "qint32": _QUANTIZED,
    "quint4x2": _QUANTIZED,
    "quint2x4": _QUANTIZED,
    "quantization": _QUANTIZED,
    "ao": _QUANTIZED,
    "nn.quantized": _QUANTIZED,
    "nn.qat": _QUANTIZED,
    "nn.intrinsic": _QUANTIZED,
    "nn.quantizable": _QUANTIZED,
    "fx": _SCRIPT,
    "export": _SCRIPT,
    "package": _SCRIPT,
    "jit": _SCRIPT,
    "jit._get_trace_graph": "count operations with `torch.utils.flop_counter.FlopCounterMode`",
    "jit.load": _SCRIPT + "; load a `state_dict` into the module's class",
    "jit.mobile": _SCRIPT,
    "nested": _NESTED,
    "masked": _MASKED,
    "utils.cpp_extension": _EXTENSION,
    "classes": _EXTENSION,
    **dict.fromkeys(_SCRIPT_NAMES.split(), _SCRIPT),
    "_functorch": _TRANSFORMS,
    "_C._functorch": _TRANSFORMS,
    "_decomp": _SCRIPT,
    "_ops": _SCRIPT,
    "_subclasses": _SCRIPT,
    "_C": "it is the inside of PyTorch's binary, which is not here",
    "onnx": "no exporter is there; `torch.save` the `state_dict`, which PyTorch reads and exports",
    "hub": "it would run code from the network: copy the model's class, and `load` its weights",
    "complex32": "use complex64",
    "chalf": "use complex64",
    "float8_e4m3fn": "use `torch.bfloat16` or `torch.float16`",
    "float8_e4m3fnuz": "use `torch.bfloat16` or `torch.float16`",
    "float8_e5m2fnuz": "use `torch.bfloat16` or `torch.float16`",
    "float8_e8m0fnu": "use `torch.bfloat16` or `torch.float16`",
    "float8_e5m2": "use `torch.bfloat16` or `torch.float16`",
    "sparse.semi_structured": _PATTERNED,
    "nn.utils._per_sample_grad": "use `torch.func.vmap` of `torch.func.grad`",
    "nn.parallel.distributed": _DISTRIBUTED,
    "distributed": _DISTRIBUTED,
    "distributed.rpc": _CALLS,
    "distributed.autograd": _CALLS,
    "distributed.optim.DistributedOptimizer": _CALLS,
    "distributions": "the package is not installed with this version of plait",
    "multiprocessing": "Python's `multiprocessing` works with tensors as arrays (`tensor.numpy()`)",
    "cuda": _CUDA,
    "cuda.nvtx": _CUDA,
    "cuda.nccl": _CUDA,
    "cuda.comm": _CUDA,
    "cuda.profiler": _CUDA,
    "func.functionalize": "it changes no values: call the function itself",
    "lstsq": _OLD + "use `torch.linalg.lstsq`",
    "solve": _OLD + "use `torch.linalg.solve`",
    "eig": _OLD + "use `torch.linalg.eig`",
    "symeig": _OLD + "use `torch.linalg.eigh`",
    "matrix_rank": _OLD + "use `torch.linalg.matrix_rank`",
    "FloatStorage": "a tensor's memory is `tensor.untyped_storage()`",
    "Storage": "a tensor's memory is `tensor.untyped_storage()`",
    "TypedStorage": "a tensor's memory is `tensor.untyped_storage()`",
    "cond": "write `if`",
    "while_loop": "write `while`",
    "utils.data.datapipes": "use a `Dataset` and a `DataLoader`",
    "utils.data.IterDataPipe": "use `torch.utils.data.IterableDataset`",
    "utils.data.MapDataPipe": "use `torch.utils.data.Dataset`",
    "utils._sympy": "sizes are ints, and there are no symbols in the place of them",
    "utils.checkpoint": "everything is computed again: use `checkpoint` without `context_fn`",
    "utils.dlpack": "use `torch.from_dlpack`",
    "utils.mobile_optimizer": _SCRIPT,
    "utils.bottleneck": "use `torch.profiler`",
    "utils.benchmark": "use `timeit`",
    "utils.mkldnn": "kernels choose their own layouts",
}


def advice(fullname: str) -> str:
    """Return the workaround for a missing name, or for a module that contains it; "" if there is
    none.

    Example:
        >>> from plait_torch._missing import advice
        >>> advice("torch.export.Dim") == advice("torch.export") != ""
        True
    """
    name = fullname.removeprefix("torch.")
    while name:
        if name in _WAYS:
            return _WAYS[name]
        name = name.rpartition(".")[0]
    return ""


class MissingName(AttributeError):
    """A name of PyTorch without a counterpart in plait."""


class MissingModule(ModuleNotFoundError):
    """A module of PyTorch without a counterpart in plait."""


def explain(fullname: str) -> str:
    """Return the error text for a missing name, with the workaround if there is one."""
    way = advice(fullname)
    return f"plait_torch: {fullname} is not available" + (f"; {way}" if way else "")
