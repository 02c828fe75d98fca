"""Recurrent layers as code: plait's operators run a whole sequence, PyTorch's do not."""

from __future__ import annotations

_HEAD = """def {name}({arguments}, sizes: List[int], reverse: bool) -> {result}:
  steps = torch.split_with_sizes(gates, sizes)
  outputs = annotate(List[Tensor], [])
  h = hx{more}
  n = torch.len(sizes)
  turned = torch.t(weight)
  for i in range(n):
    at = i
    if reverse:
      at = torch.sub(torch.sub(n, 1), i)
    gate = torch.__getitem__(steps, at)
"""
_TAIL = """    _0 = torch.append(outputs, h)
  if reverse:
    torch.reverse(outputs)
  return (torch.cat(outputs), h{more})
"""
_LSTM = (
    _HEAD.format(
        name="lstm_sequence",
        arguments="gates: Tensor, hx: Tensor, cx: Tensor, weight: Tensor",
        result="Tuple[Tensor, Tensor, Tensor]",
        more="\n  c = cx",
    )
    + """    total = torch.add(gate, torch.matmul(h, turned))
    a, f, g, o, = torch.chunk(total, 4, 1)
    c = torch.add(torch.mul(torch.sigmoid(f), c), torch.mul(torch.sigmoid(a), torch.tanh(g)))
    h = torch.mul(torch.sigmoid(o), torch.tanh(c))
"""
    + _TAIL.format(more=", c")
)
_GRU = (
    _HEAD.format(
        name="gru_sequence",
        arguments="gates: Tensor, hx: Tensor, weight: Tensor, bias: Optional[Tensor]",
        result="Tuple[Tensor, Tensor]",
        more="",
    )
    + """    hidden = torch.matmul(h, turned)
    if bias is not None:
      hidden = torch.add(hidden, bias)
    a, b, c, = torch.chunk(gate, 3, 1)
    d, e, f, = torch.chunk(hidden, 3, 1)
    update = torch.sigmoid(torch.add(b, e))
    new = torch.tanh(torch.add(c, torch.mul(torch.sigmoid(torch.add(a, d)), f)))
    h = torch.add(new, torch.mul(update, torch.sub(h, new)))
"""
    + _TAIL.format(more="")
)

SEQUENCES: dict[str, tuple[str, int, str]] = {
    "lstm_forward": ("lstm_sequence", 3, _LSTM),
    "gru_forward": ("gru_sequence", 2, _GRU),
}
"""The function for an operator, how many results it has, and its code."""
