"""bitsandbytes: 8 and 4 bits on the processor: quantization, linear layers, embeddings."""

import bitsandbytes as bnb
import torch
from recording import array, fill, record

weight = array(0, 64, 64)
for kind in ("nf4", "fp4"):
    packed, state = bnb.functional.quantize_4bit(weight, blocksize=64, quant_type=kind)
    record(f"{kind} packed", packed)
    record(f"{kind} back", bnb.functional.dequantize_4bit(packed, state))
packed, state = bnb.functional.quantize_blockwise(weight, blocksize=256)
record("blockwise", packed)
record("blockwise back", bnb.functional.dequantize_blockwise(packed, state))
layer = bnb.nn.Linear4bit(64, 64, compute_dtype=torch.float32, quant_type="nf4")
fill(layer)
x = array(1, 3, 64).requires_grad_()
output = layer.to("cpu")(x)
record("linear", output, rtol=1e-2)
output.sum().backward()
record("gradient", x.grad, rtol=1e-2)
