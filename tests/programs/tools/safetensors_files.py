"""safetensors: files written and read whole and in parts, shared weights, models, metadata."""

import torch
from recording import array, fill, record
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from torch import nn

kinds = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8)
tensors = {str(kind).split(".")[-1]: (array(0, 4, 5).abs() * 9).to(kind) for kind in kinds}
tensors["flags"] = array(1, 7) > 0
tensors["empty"] = torch.zeros(0, 3)
save_file(tensors, "all.safetensors", metadata={"made by": "a program"})
record("read", load_file("all.safetensors"))
record("bytes", load(save(tensors)))
record("size", len(save(tensors)))
with safe_open("all.safetensors", framework="pt", device="cpu") as file:
    record("keys", sorted(file.keys()))
    record("metadata", file.metadata())
    record("shape", list(file.get_slice("float32").get_shape()))
    record("part", file.get_slice("float32")[1:3, 2:])
    record("whole", file.get_tensor("int64"))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        self.out = nn.Linear(4, 9, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, ids):
        return self.out(self.embedding(ids).tanh())


model = fill(Tied())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(20):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.arange(9)), torch.arange(9).flip(0)).backward()
    optimizer.step()
save_model(model, "tied.safetensors")
loaded = Tied()
record("missing", [list(names) for names in load_model(loaded, "tied.safetensors")])
record("loaded", loaded(torch.arange(9)))
try:
    save_file(model.state_dict(), "refused.safetensors")
except RuntimeError as error:
    record("refused", "share memory" in str(error))
