"""x-transformers: a decoder with rotary embeddings for 20 steps, an encoder, generation."""

import torch
from recording import fill, gradients, record
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

ids = torch.arange(64).reshape(4, 16) * 7 % 50
layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, ff_glu=True, use_rmsnorm=True)
model = fill(
    AutoregressiveWrapper(TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=layers))
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for _ in range(20):
    loss = model(ids)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses)
record("gradients", gradients(model), rtol=5e-3)
record("trained", dict(model.named_parameters()), atol=1e-4)
model.eval()
record("generated", model.generate(ids[:, :4], 12, temperature=0.0))

for name, options in {
    "alibi": {"alibi_pos_bias": True},
    "relative": {"rel_pos_bias": True},
    "flash": {"attn_flash": True},
    "memory": {"attn_num_mem_kv": 4},
    "gated": {"attn_gate_values": True, "attn_qk_norm": True},
}.items():
    encoder = Encoder(dim=32, depth=2, heads=4, **options)
    net = fill(TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=encoder)).eval()
    record(name, net(ids, mask=ids > 3))
