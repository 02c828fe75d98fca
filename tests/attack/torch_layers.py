"""Random configurations of normalization, losses, attention, recurrent layers and padding."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch_operands import FLOATS, HALVES, Call, drawn, maybe, shape_of, tensor

LOW = FLOATS + HALVES


def normalization(rng: random.Random) -> Call:
    kind = rng.choice(["batch", "layer", "group", "instance", "rms", "local", "normalize"])
    dtype = rng.choice(LOW if kind not in ("local", "normalize") else FLOATS)
    if kind in ("layer", "rms"):
        shape = shape_of(rng, 1, 4)
        own = shape[rng.randrange(len(shape)) :]
        x = tensor(rng, shape, dtype)
        options: dict[str, Any] = {"weight": maybe(rng, 0.6, tensor(rng, own, dtype))}
        if kind == "layer":
            options["bias"] = maybe(rng, 0.6, tensor(rng, own, dtype))
        options["eps"] = rng.choice([1e-5, 0.1])
        return Call(f"nn.functional.{kind}_norm", [x, own], options)
    groups = rng.choice([1, 2, 3])
    channels = groups * rng.choice([1, 2, 3])
    sizes = shape_of(rng, 1 if kind in ("instance", "local") else 0, 3, "filled")
    x = tensor(rng, [rng.randint(1, 3), channels, *sizes], dtype)
    if kind == "local":
        options = {"size": rng.randint(1, 4), "alpha": 0.3, "beta": rng.choice([0.75, 2.0])}
        return Call("nn.functional.local_response_norm", [x], {**options, "k": rng.choice([1, 2])})
    if kind == "normalize":
        # of one element the gradient is 0: what is computed is left of terms that cancel
        dims = [d for d in range(-2, 2) if x.shape[d] > 1]
        options = {"p": rng.choice([1, 2, 3.5, float("inf")]), "dim": rng.choice(dims or [1])}
        return Call("nn.functional.normalize", [x], options)
    weight, bias = (maybe(rng, 0.6, tensor(rng, [channels], dtype)) for _ in range(2))
    if kind == "group":
        if dtype in HALVES:  # PyTorch dies of the gradient in channels_last without a bias
            x = x.detach().contiguous().requires_grad_()
        if not x.requires_grad:  # and of those in channels_last of an input that needs none
            x = x.contiguous()
        return Call("nn.functional.group_norm", [x, groups, weight, bias, 1e-3])
    stats = [
        tensor(rng, [channels], dtype, positive=True, grad=False, layout=False) for _ in range(2)
    ]
    with_stats = rng.random() < 0.6
    training = rng.random() < 0.5 or not with_stats

    def run(m: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any) -> Any:
        norm = getattr(m.nn.functional, f"{kind}_norm")
        result = norm(x, mean, var, weight, bias, training, 0.3, 1e-3)
        return [result] if mean is None else [result, mean, var]

    args = [x, weight, bias, *(stats if with_stats else [None, None])]
    return Call(run, args, {}, f"{kind}_norm[training={training}]")


def soft(rng: random.Random) -> Call:
    name = rng.choice(["softmax", "log_softmax", "softmin", "logsumexp", "glu"])
    shape = shape_of(rng, 1, 4)
    dim = rng.randrange(-len(shape), len(shape))
    x = tensor(rng, shape, rng.choice(LOW))
    if name == "glu":
        shape[dim] *= 2
        return Call("nn.functional.glu", [tensor(rng, shape, rng.choice(LOW)), dim])
    if name == "logsumexp":
        return Call("logsumexp", [x, dim, rng.random() < 0.5])
    options = {"dtype": rng.choice([torch.float32, torch.float64])} if rng.random() < 0.2 else {}
    return Call(f"nn.functional.{name}", [x, dim], options)


def classes(rng: random.Random) -> Call:
    """Cross entropy and its like: targets of classes or probabilities."""
    n, c, dtype = rng.randint(1, 5), rng.randint(1, 6), rng.choice(LOW)
    sizes = shape_of(rng, 0, 2, "filled")
    lead = [n] if rng.random() < 0.8 or sizes else []
    x = tensor(rng, [*lead, c, *sizes], dtype)
    options: dict[str, Any] = {"reduction": rng.choice(["mean", "sum", "none"])}
    options["weight"] = maybe(rng, 0.4, tensor(rng, [c], dtype, positive=True, grad=False))
    target = torch.randint(0, c, [*lead, *sizes])
    ignored = rng.choice([-100, 0, -1])
    if rng.random() < 0.3:
        options["ignore_index"] = ignored
        target = torch.where(torch.rand(target.shape) < 0.3, ignored, target)
        target[(target < 0) & (target != ignored)] = ignored
    if rng.random() < 0.4:
        return Call("nn.functional.nll_loss", [x, target], options)
    options["label_smoothing"] = rng.choice([0.0, 0.1, 0.6])
    if rng.random() < 0.3:
        options.pop("ignore_index", None)
        target = tensor(rng, [*lead, c, *sizes], dtype, positive=True).detach()
    return Call("nn.functional.cross_entropy", [x, target], options)


def loss(rng: random.Random) -> Call:
    """Losses of two tensors, sometimes of shapes that broadcast."""
    name = rng.choice(["mse", "l1", "smooth_l1", "huber", "kl_div", "poisson", "gaussian", "bce",
                       "bce_logits", "soft_margin", "hinge"])  # fmt: skip
    shape, dtype = shape_of(rng, 1, 3, "filled"), rng.choice(FLOATS)
    x, positive = tensor(rng, shape, dtype), tensor(rng, shape, dtype, positive=True)
    y = tensor(rng, shape, dtype)
    signs = (torch.rand(shape) < 0.5).to(dtype) * 2 - 1
    reduction = {"reduction": rng.choice(["mean", "sum", "none"])}
    options: dict[str, Any] = dict(reduction)
    path = f"nn.functional.{name}_loss"
    if name in ("mse", "l1"):
        return Call(path, [x, y], options)
    if name == "smooth_l1":
        return Call(path, [x, y], {**options, "beta": rng.choice([0.0, 0.5, 1.0])})
    if name == "huber":
        return Call(path, [x, y], {**options, "delta": rng.choice([0.2, 1.0])})
    if name == "kl_div":
        options["log_target"] = rng.random() < 0.5
        options["reduction"] = rng.choice(["batchmean", "mean", "sum", "none"])
        return Call("nn.functional.kl_div", [x, y if options["log_target"] else positive], options)
    if name == "poisson":
        options.update(log_input=rng.random() < 0.5, full=rng.random() < 0.5)
        return Call("nn.functional.poisson_nll_loss", [positive, positive.detach() * 4], options)
    if name == "gaussian":
        var = rng.choice([positive, tensor(rng, shape[:-1], dtype, positive=True)])
        options.update(full=rng.random() < 0.5, eps=rng.choice([1e-6, 0.3]))
        return Call("nn.functional.gaussian_nll_loss", [x, y, var], options)
    if name.startswith("bce"):
        weight = maybe(rng, 0.4, tensor(rng, shape, dtype, positive=True, grad=False))
        target = torch.rand(shape, dtype=dtype)
        if name == "bce":
            args = [(positive.detach() / 2).requires_grad_(), target, weight]
            return Call("nn.functional.binary_cross_entropy", args, options)
        options["pos_weight"] = maybe(rng, 0.5, torch.rand(shape[-1:], dtype=dtype))
        args = [x, target, weight]
        return Call("nn.functional.binary_cross_entropy_with_logits", args, options)
    if name == "soft_margin":
        return Call("nn.functional.soft_margin_loss", [x, signs], options)
    return Call("nn.functional.hinge_embedding_loss", [x, signs], {**options, "margin": 0.7})


def margin_loss(rng: random.Random) -> Call:
    n, c, dtype = rng.randint(1, 4), rng.randint(1, 5), rng.choice(FLOATS)
    a, b, other = (tensor(rng, [n, c], dtype) for _ in range(3))
    signs = (torch.rand(n) < 0.5).to(dtype) * 2 - 1
    options: dict[str, Any] = {"reduction": rng.choice(["mean", "sum", "none"])}
    name = rng.choice(["ranking", "cosine", "triplet", "multi", "multilabel", "multilabel_soft"])
    margin = rng.choice([0.0, 0.5, 1.0])
    if name == "ranking":
        args = [tensor(rng, [n], dtype), tensor(rng, [n], dtype), signs]
        return Call("nn.functional.margin_ranking_loss", args, {**options, "margin": margin})
    if name == "cosine":
        options["margin"] = margin
        return Call("nn.functional.cosine_embedding_loss", [a, b, signs], options)
    if name == "triplet":
        options.update(margin=margin, p=rng.choice([1, 2, 3]), swap=rng.random() < 0.5)
        return Call("nn.functional.triplet_margin_loss", [a, b, other], options)
    if name == "multi":
        weight = maybe(rng, 0.5, tensor(rng, [c], dtype, positive=True, grad=False))
        options.update(p=rng.choice([1, 2]), margin=margin or 0.7, weight=weight)  # 0: ties
        return Call("nn.functional.multi_margin_loss", [a, torch.randint(0, c, [n])], options)
    if name == "multilabel":
        labels = torch.stack([torch.randperm(c) for _ in range(n)])
        stops = torch.randint(0, c + 1, [n, 1])
        labels = torch.where(torch.arange(c) < stops, labels, -1)
        return Call("nn.functional.multilabel_margin_loss", [a, labels], options)
    target = (torch.rand(n, c) < 0.5).to(dtype)
    options["weight"] = maybe(rng, 0.5, tensor(rng, [c], dtype, positive=True, grad=False))
    return Call("nn.functional.multilabel_soft_margin_loss", [a, target], options)


def ctc(rng: random.Random) -> Call:
    """Targets in rows or one after the other; some too long for their inputs."""
    t, n, c = rng.randint(1, 12), rng.randint(1, 3), rng.randint(2, 5)
    x = tensor(rng, [t, n, c])
    blank = rng.randrange(c)
    long = [rng.randint(0, 5) for _ in range(n)]
    if sum(long) == 0:
        long[0] = 1
    width = max(long)
    labels = [k for k in range(c) if k != blank]
    rows = torch.tensor([[rng.choice(labels) for _ in range(width)] for _ in range(n)])
    if rng.random() < 0.5:
        rows = torch.cat([row[:k] for row, k in zip(rows, long, strict=True)])
    options = {
        "blank": blank,
        "reduction": rng.choice(["mean", "sum", "none"]),
        "zero_infinity": rng.random() < 0.8,
    }
    lengths = [rng.randint(1, t) for _ in range(n)]
    args = [x, rows, torch.tensor(lengths), torch.tensor(long)]

    def run(m: Any, x: Any, *others: Any, **options: Any) -> Any:
        # of probabilities: PyTorch's gradient is that of a softmax before
        return m.nn.functional.ctc_loss(m.log_softmax(x, -1), *others, **options)

    return Call(run, args, options, "ctc_loss")


def embedding(rng: random.Random) -> Call:
    rows = rng.randint(1, 6)
    weight = tensor(rng, [rows, rng.randint(1, 4)], rng.choice(LOW))
    ids = torch.randint(0, rows, shape_of(rng, 0, 3)).to(rng.choice([torch.int64, torch.int32]))
    options: dict[str, Any] = {}
    if rng.random() < 0.5:
        options["padding_idx"] = rng.randrange(-rows, rows)
    options["scale_grad_by_freq"] = rng.random() < 0.3
    if rng.random() < 0.2:
        weight = weight.detach()
        options["max_norm"] = 0.8
        weight = weight.contiguous()
    return Call("nn.functional.embedding", [ids, weight], options)


def attention(rng: random.Random) -> Call:
    dtype = rng.choice(LOW)
    b, h, n, k, e, v = (
        rng.randint(1, 4),
        rng.choice([1, 2, 4]),
        *(rng.randint(1, 9) for _ in "nkev"),
    )
    heads = rng.choice([1, h]) if rng.random() < 0.3 else h
    lead = [b] if rng.random() < 0.8 or heads != h else []
    q = tensor(rng, [*lead, h, n, e], dtype)
    key, value = tensor(rng, [*lead, heads, k, e], dtype), tensor(rng, [*lead, heads, k, v], dtype)
    options: dict[str, Any] = {"scale": maybe(rng, 0.3, rng.uniform(0.1, 2.0))}
    if heads != h:
        options["enable_gqa"] = True
    if rng.random() < 0.3:
        options["is_causal"] = True
    elif rng.random() < 0.6:
        size = rng.choice([[n, k], [h, n, k], [1, 1, k] if lead else [n, k]])
        if rng.random() < 0.5:
            mask = torch.rand(size) < 0.7
            mask[..., 0] = True
        else:
            mask = drawn(size, dtype)
        options["attn_mask"] = mask
    return Call("nn.functional.scaled_dot_product_attention", [q, key, value], options)


def recurrent(rng: random.Random) -> Call:
    """A recurrent module with drawn weights, over a batch, one sequence or a packed one."""
    kind, dtype = rng.choice(["LSTM", "GRU", "RNN"]), rng.choice(FLOATS)
    size, hidden, layers = rng.randint(1, 4), rng.randint(2, 5), rng.randint(1, 2)
    options: dict[str, Any] = {"num_layers": layers, "bidirectional": rng.random() < 0.5}
    options.update(batch_first=rng.random() < 0.5, bias=rng.random() < 0.8)
    if kind == "LSTM" and rng.random() < 0.4:
        options["proj_size"] = rng.randint(1, hidden - 1)
    if kind == "RNN":
        options["nonlinearity"] = rng.choice(["tanh", "relu"])
    other = getattr(torch.nn, kind)(size, hidden, **options).to(dtype)
    weights = [w.detach().clone() for w in other.parameters()]
    batch, steps = rng.randint(1, 3), rng.randint(1, 5)
    packed, single = rng.random() < 0.3, rng.random() < 0.2
    lead = [batch, steps] if options["batch_first"] else [steps, batch]
    x = tensor(rng, [steps, size] if single and not packed else [*lead, size], dtype)
    lengths = [rng.randint(1, steps) for _ in range(batch)]
    directions = layers * (2 if options["bidirectional"] else 1)
    mid = [] if single and not packed else [batch]
    output = options.get("proj_size", hidden)
    states = [tensor(rng, [directions, *mid, output], dtype)]
    if kind == "LSTM":
        states.append(tensor(rng, [directions, *mid, hidden], dtype))
    is_given = rng.random() < 0.5

    def run(m: Any, x: Any, states: Any, weights: Any) -> Any:
        rnn = getattr(m.nn, kind)(size, hidden, **options).to(getattr(m, str(dtype)[6:]))
        for parameter, w in zip(rnn.parameters(), weights, strict=True):
            parameter.data.copy_(w)
        state = None if not is_given else states[0] if kind != "LSTM" else tuple(states)
        if packed:
            first = {"batch_first": options["batch_first"], "enforce_sorted": False}
            x = m.nn.utils.rnn.pack_padded_sequence(x, lengths, **first)
        out, last = rnn(x, state)
        out = out.data if packed else out
        result = m.autograd.grad([(out * out).sum()], list(rnn.parameters()), retain_graph=True)
        return [out, last, *result]

    return Call(
        run, [x, states, weights], {}, f"{kind}[{options}, packed={packed}, given={is_given}]"
    )


def padding(rng: random.Random) -> Call:
    mode = rng.choice(["constant", "reflect", "replicate", "circular"])
    dims = rng.randint(1, 3)
    sizes = [rng.randint(1, 6) for _ in range(dims)]
    lead = [rng.randint(1, 2), rng.randint(1, 3)][0 if rng.random() < 0.7 else 1 :]
    pads = [rng.randint(0 if mode == "circular" else -1, 3) for _ in range(2 * dims)]
    if mode == "circular" and rng.random() < 0.5:
        pads = [rng.randint(-1, 2) for _ in pads]
    options = {"mode": mode}
    if mode == "constant" and rng.random() < 0.5:
        options["value"] = rng.choice([1.5, -2, 0.0])
    return Call("nn.functional.pad", [tensor(rng, [*lead, *sizes]), pads], options)


def blocks(rng: random.Random) -> Call:
    """unfold and fold, shuffles of pixels and channels."""
    name = rng.choice(["unfold", "fold", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle"])
    options = {
        "kernel_size": rng.choice([2, (1, 3)]),
        "stride": rng.choice([1, (2, 1)]),
        "padding": rng.choice([0, 1, (0, 2)]),
        "dilation": rng.choice([1, 2]),
    }
    lead = [rng.randint(1, 2)] if rng.random() < 0.7 else []
    image = tensor(rng, [*lead, rng.randint(1, 3), rng.randint(1, 7), rng.randint(1, 7)])
    if name == "unfold":
        return Call("nn.functional.unfold", [image], options)
    if name == "fold":

        def run(m: Any, x: Any) -> Any:
            columns = m.nn.functional.unfold(x, **options)
            return m.nn.functional.fold(columns * 2, tuple(x.shape[-2:]), **options)

        return Call(run, [image], {}, f"fold[{options}]")
    r = rng.randint(1, 3)
    lead = shape_of(rng, 0, 2, "filled")  # PyTorch leaves empty batches as they are
    h, w, c = (rng.randint(1, 3) for _ in "hwc")
    if name == "pixel_shuffle":
        return Call(f"nn.functional.{name}", [tensor(rng, [*lead, c * r * r, h, w]), r])
    if name == "pixel_unshuffle":
        return Call(f"nn.functional.{name}", [tensor(rng, [*lead, c, h * r, w * r]), r])
    return Call("nn.functional.channel_shuffle", [tensor(rng, [2, c * r, h, w]), r])


POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 6.0, 20.0, -20.0, 89.0, -89.0, 1e4, -1e4,
          1e-30, -1e-30, 1e30, -1e30, float("inf"), float("-inf"), float("nan")]  # fmt: skip


def activation(rng: random.Random) -> Call:
    """Activations at special values."""
    options_of: dict[str, dict[str, Any]] = {
        "relu": {}, "relu6": {}, "silu": {}, "mish": {}, "selu": {}, "softsign": {}, "sigmoid": {},
        "tanh": {}, "hardswish": {}, "hardsigmoid": {}, "logsigmoid": {}, "tanhshrink": {},
        "gelu": {"approximate": rng.choice(["none", "tanh"])},
        "elu": {"alpha": rng.choice([1.0, 0.5, 2.0])},
        "celu": {"alpha": rng.choice([1.0, 0.5, 2.0])},
        "leaky_relu": {"negative_slope": rng.choice([0.01, 0.3, 0.0])},
        "hardtanh": {"min_val": rng.choice([-1.0, -0.5]), "max_val": rng.choice([1.0, 0.5])},
        "hardshrink": {"lambd": rng.choice([0.5, 0.0])},
        "softshrink": {"lambd": rng.choice([0.5, 0.0])},
        "softplus": {"beta": rng.choice([1, 2, 0.5]), "threshold": rng.choice([20, 5])},
        "threshold": {"threshold": rng.choice([0.0, 0.5]), "value": rng.choice([0.0, -3.0])},
    }  # fmt: skip
    name = rng.choice(sorted(options_of))
    dtype = rng.choice([torch.float32, torch.float64])
    x = torch.tensor(rng.choices(POINTS, k=rng.choice([3, 19])), dtype=dtype)
    return Call(f"nn.functional.{name}", [x.requires_grad_()], options_of[name])


LAYERS = [normalization, soft, classes, loss, margin_loss, ctc, embedding, attention, recurrent,
          padding, blocks, activation]  # fmt: skip
