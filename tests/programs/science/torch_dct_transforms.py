"""torch-dct: cosine transforms of one to three dimensions, their inverse, gradients, as a layer."""

import torch_dct as dct
from recording import array, record

x = array(0, 4, 6, 8).requires_grad_()
for name in ("dct", "idct", "dct1", "idct1", "dct_2d", "idct_2d", "dct_3d", "idct_3d"):
    x.grad = None
    output = getattr(dct, name)(x)
    output.square().sum().backward()
    record(name, output)
    record(f"{name} gradient", x.grad)
record("normal", dct.dct(x, norm="ortho"))
layer = dct.LinearDCT(8, "dct", norm="ortho")
record("layer", layer(x))
record("frozen", [name for name, p in layer.named_parameters() if p.requires_grad] or "none")
record(
    "inverse",
    dct.apply_linear_2d(x, dct.LinearDCT(8, "idct")) if x.shape[1] == 8 else dct.idct(dct.dct(x)),
)
