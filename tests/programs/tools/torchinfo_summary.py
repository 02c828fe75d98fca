"""torchinfo: summaries of three models with shapes, kernels and operations."""

import torch
import torchvision
from recording import record
from torchinfo import summary

columns = ("input_size", "output_size", "num_params", "kernel_size", "mult_adds", "trainable")
record(
    "text",
    str(summary(torchvision.models.resnet18(), (1, 3, 64, 64), col_names=columns, verbose=0)),
)
model = torch.nn.LSTM(8, 16, 2, bidirectional=True)
result = summary(model, (5, 2, 8), verbose=0, row_settings=("var_names", "depth"))
record("lstm", str(result))
record("numbers", [result.total_params, result.total_mult_adds, result.total_output_bytes])
model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, 32), 2).eval()
record("encoder", str(summary(model, (5, 2, 16), verbose=0, depth=4)))
