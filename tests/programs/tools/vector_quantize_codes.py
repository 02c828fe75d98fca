"""vector-quantize-pytorch: codebooks: averaged, residual, finite scalar, lookup-free."""

import torch
from recording import array, record
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize

x = array(0, 2, 20, 8)
torch.manual_seed(0)
codes = VectorQuantize(dim=8, codebook_size=16, decay=0.8, commitment_weight=1.0)
losses = []
for _ in range(4):
    output, indices, loss = codes(x)
    losses.append(loss.item())
record("losses", losses, rtol=1e-2)
record("indices", indices)
record("quantized", output)
residual = ResidualVQ(dim=8, num_quantizers=3, codebook_size=8).eval()
for number, layer in enumerate(residual.layers):
    layer._codebook.embed.copy_(array(number + 5, 1, 8, 8))
record("residual", list(residual(x)[:2]))
record("fsq", next(iter(FSQ([8, 5, 5, 5], dim=8).eval()(array(1, 2, 20, 8))[:1])).shape)
plain = FSQ([8, 6, 5])
record("plain", list(plain(array(2, 2, 20, 3))))
record("codes", plain.indices_to_codes(torch.arange(10)))
free = LFQ(codebook_size=16, dim=4, entropy_loss_weight=0.1).eval()
record("free", list(free(array(3, 2, 20, 4))[:2]))
