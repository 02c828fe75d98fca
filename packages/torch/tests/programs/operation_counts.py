"""Libraries count operations by functions that they put in the place of PyTorch's."""

import collections
import copy
import warnings

import torch
import torch.nn.functional as F
from torch import distributions, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")

torch.manual_seed(0)
x0, x1, x2 = torch.rand(2, 4), torch.rand(2, 4, 8), torch.rand(2, 4, 8, 8)
x3, label = torch.rand(2, 4, 8, 8, 8), torch.tensor([1, 2])
ones = torch.ones(2, 4)
scores = torch.randn(6, 2, 4).log_softmax(2)
# the layer, the function that it calls, the layer's arguments, and its inputs
LAYERS = [
    ("ReLU", "relu", (), (x0,)),
    ("ReLU6", "hardtanh", (), (x0,)),
    ("ELU", "elu", (), (x0,)),
    ("SELU", "selu", (), (x0,)),
    ("CELU", "celu", (), (x0,)),
    ("GELU", "gelu", (), (x0,)),
    ("SiLU", "silu", (), (x0,)),
    ("Mish", "mish", (), (x0,)),
    ("Hardtanh", "hardtanh", (), (x0,)),
    ("Hardswish", "hardswish", (), (x0,)),
    ("Hardsigmoid", "hardsigmoid", (), (x0,)),
    ("Softplus", "softplus", (), (x0,)),
    ("Softsign", "softsign", (), (x0,)),
    ("Tanhshrink", "tanhshrink", (), (x0,)),
    ("Hardshrink", "hardshrink", (), (x0,)),
    ("Softshrink", "softshrink", (), (x0,)),
    ("LeakyReLU", "leaky_relu", (), (x0,)),
    ("LogSigmoid", "logsigmoid", (), (x0,)),
    ("RReLU", "rrelu", (), (x0,)),
    ("PReLU", "prelu", (), (x0,)),
    ("GLU", "glu", (), (x0,)),
    ("AlphaDropout", "alpha_dropout", (), (x0,)),
    ("Softmax", "softmax", (1,), (x0,)),
    ("LogSoftmax", "log_softmax", (1,), (x0,)),
    ("Softmin", "softmin", (1,), (x0,)),
    ("Threshold", "threshold", (0.1, 0.2), (x0,)),
    ("Softmax2d", "softmax", (), (x2,)),
    ("Linear", "linear", (4, 3), (x0,)),
    ("Bilinear", "bilinear", (4, 4, 3), (x0, x0)),
    ("Conv1d", "conv1d", (4, 3, 3), (x1,)),
    ("ConvTranspose1d", "conv_transpose1d", (4, 3, 3), (x1,)),
    ("BatchNorm1d", "batch_norm", (4,), (x1,)),
    ("InstanceNorm1d", "instance_norm", (4,), (x1,)),
    ("MaxPool1d", "max_pool1d", (2,), (x1,)),
    ("AvgPool1d", "avg_pool1d", (2,), (x1,)),
    ("AdaptiveAvgPool1d", "adaptive_avg_pool1d", (2,), (x1,)),
    ("AdaptiveMaxPool1d", "adaptive_max_pool1d", (2,), (x1,)),
    ("LPPool1d", "lp_pool1d", (2, 2), (x1,)),
    ("ConstantPad1d", "pad", (1, 0.5), (x1,)),
    ("ReflectionPad1d", "pad", (1,), (x1,)),
    ("ReplicationPad1d", "pad", (1,), (x1,)),
    ("ZeroPad1d", "pad", (1,), (x1,)),
    ("CircularPad1d", "pad", (1,), (x1,)),
    ("Dropout1d", "dropout1d", (), (x1,)),
    ("Conv2d", "conv2d", (4, 3, 3), (x2,)),
    ("ConvTranspose2d", "conv_transpose2d", (4, 3, 3), (x2,)),
    ("BatchNorm2d", "batch_norm", (4,), (x2,)),
    ("InstanceNorm2d", "instance_norm", (4,), (x2,)),
    ("MaxPool2d", "max_pool2d", (2,), (x2,)),
    ("AvgPool2d", "avg_pool2d", (2,), (x2,)),
    ("AdaptiveAvgPool2d", "adaptive_avg_pool2d", (2,), (x2,)),
    ("AdaptiveMaxPool2d", "adaptive_max_pool2d", (2,), (x2,)),
    ("LPPool2d", "lp_pool2d", (2, 2), (x2,)),
    ("ConstantPad2d", "pad", (1, 0.5), (x2,)),
    ("ReflectionPad2d", "pad", (1,), (x2,)),
    ("ReplicationPad2d", "pad", (1,), (x2,)),
    ("ZeroPad2d", "pad", (1,), (x2,)),
    ("CircularPad2d", "pad", (1,), (x2,)),
    ("Dropout2d", "dropout2d", (), (x2,)),
    ("Conv3d", "conv3d", (4, 3, 3), (x3,)),
    ("ConvTranspose3d", "conv_transpose3d", (4, 3, 3), (x3,)),
    ("BatchNorm3d", "batch_norm", (4,), (x3,)),
    ("InstanceNorm3d", "instance_norm", (4,), (x3,)),
    ("MaxPool3d", "max_pool3d", (2,), (x3,)),
    ("AvgPool3d", "avg_pool3d", (2,), (x3,)),
    ("AdaptiveAvgPool3d", "adaptive_avg_pool3d", (2,), (x3,)),
    ("AdaptiveMaxPool3d", "adaptive_max_pool3d", (2,), (x3,)),
    ("LPPool3d", "lp_pool3d", (2, 2), (x3,)),
    ("ConstantPad3d", "pad", (1, 0.5), (x3,)),
    ("ReflectionPad3d", "pad", (1,), (x3,)),
    ("ReplicationPad3d", "pad", (1,), (x3,)),
    ("ZeroPad3d", "pad", (1,), (x3,)),
    ("CircularPad3d", "pad", (1,), (x3,)),
    ("Dropout3d", "dropout3d", (), (x3,)),
    ("Dropout", "dropout", (), (x1,)),
    ("FeatureAlphaDropout", "feature_alpha_dropout", (), (x2,)),
    ("FractionalMaxPool2d", "fractional_max_pool2d", (2, 4), (x2,)),
    ("FractionalMaxPool3d", "fractional_max_pool3d", (2, 4), (x3,)),
    ("GroupNorm", "group_norm", (2, 4), (x2,)),
    ("LayerNorm", "layer_norm", (8,), (x1,)),
    ("RMSNorm", "rms_norm", (8,), (x1,)),
    ("LocalResponseNorm", "local_response_norm", (2,), (x1,)),
    ("Upsample", "interpolate", (None, 2.0), (x2,)),
    ("PixelShuffle", "pixel_shuffle", (2,), (x2,)),
    ("PixelUnshuffle", "pixel_unshuffle", (2,), (x2,)),
    ("ChannelShuffle", "channel_shuffle", (2,), (x2,)),
    ("Fold", "fold", ((9, 9), 2), (torch.rand(2, 8, 64),)),
    ("Unfold", "unfold", (2,), (x2,)),
    ("Embedding", "embedding", (5, 3), (label,)),
    ("EmbeddingBag", "embedding_bag", (5, 3), (label[None],)),
    ("CosineSimilarity", "cosine_similarity", (), (x0, x0)),
    ("PairwiseDistance", "pairwise_distance", (), (x0, x0)),
    ("L1Loss", "l1_loss", (), (x0, ones)),
    ("MSELoss", "mse_loss", (), (x0, ones)),
    ("SmoothL1Loss", "smooth_l1_loss", (), (x0, ones)),
    ("HuberLoss", "huber_loss", (), (x0, ones)),
    ("BCELoss", "binary_cross_entropy", (), (x0, ones)),
    ("KLDivLoss", "kl_div", (), (x0, ones)),
    ("BCEWithLogitsLoss", "binary_cross_entropy_with_logits", (), (x0, ones)),
    ("SoftMarginLoss", "soft_margin_loss", (), (x0, ones)),
    ("PoissonNLLLoss", "poisson_nll_loss", (), (x0, ones)),
    ("MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", (), (x0, ones)),
    ("HingeEmbeddingLoss", "hinge_embedding_loss", (), (x0, ones)),
    ("CrossEntropyLoss", "cross_entropy", (), (x0, label)),
    ("NLLLoss", "nll_loss", (), (x0, label)),
    ("MultiMarginLoss", "multi_margin_loss", (), (x0, label)),
    (
        "MultiLabelMarginLoss",
        "multilabel_margin_loss",
        (),
        (x0, torch.tensor([[1, -1, 0, 0], [2, -1, 0, 0]])),
    ),
    ("CosineEmbeddingLoss", "cosine_embedding_loss", (), (x0, x0, ones[:, 0])),
    ("MarginRankingLoss", "margin_ranking_loss", (), (x0[:, 0], x0[:, 1], ones[:, 0])),
    ("TripletMarginLoss", "triplet_margin_loss", (), (x0, x0, x0)),
    ("TripletMarginWithDistanceLoss", "triplet_margin_with_distance_loss", (), (x0, x0, x0)),
    ("GaussianNLLLoss", "gaussian_nll_loss", (), (x0, x0, ones)),
    ("CTCLoss", "ctc_loss", (), (scores, ones[:, :2].long(), label * 0 + 6, label * 0 + 2)),
    ("MultiheadAttention", "multi_head_attention_forward", (8, 2), (x1, x1, x1)),
    ("TransformerEncoderLayer", "linear", (8, 2, 16), (x1,)),
    ("TransformerDecoderLayer", "linear", (8, 2, 16), (x1, x1)),
    ("Transformer", "linear", (8, 2, 1, 1, 16), (x1, x1)),
]
# the layers that consist of several functions in other ways, and layers without a function
MORE = [
    ("RNN", (8, 4), (x1,)), ("LSTM", (8, 4), (x1,)), ("GRU", (8, 4), (x1,)),
    ("RNNCell", (4, 3), (x0,)), ("LSTMCell", (4, 3), (x0,)), ("GRUCell", (4, 3), (x0,)),
    ("Flatten", (), (x2,)), ("Identity", (), (x0,)), ("CrossMapLRN2d", (2,), (x2,)),
    ("AdaptiveLogSoftmaxWithLoss", (4, 6, [2, 4]), (x0, label)),
    ("MaxUnpool2d", (2,), F.max_pool2d(x2, 2, return_indices=True)),
    ("UpsamplingNearest2d", (None, 2), (x2,)), ("UpsamplingBilinear2d", (None, 2), (x2,)),
    ("NLLLoss2d", (), (x2, torch.zeros(2, 8, 8, dtype=torch.long))),
    ("SyncBatchNorm", (4,), (x2,)),
]  # fmt: skip
heads, w, numbers = torch.rand(2, 2, 3, 4), torch.rand(4, 4), torch.zeros(2, 8, 8).long()
attention = nn.MultiheadAttention(8, 2)
stick = distributions.StickBreakingTransform()
CALLS = {
    "attention with sizes": lambda: nn.MultiheadAttention(8, 2, kdim=4, vdim=4)(
        x1, x1[..., :4], x1[..., :4]
    ),
    "attention of another": lambda: attention(x1, x1 + 1, x1 + 1),
    "attention of two": lambda: attention(x1, (y := x1 + 1), y),
    "attention of two in batches": lambda: nn.MultiheadAttention(8, 2, batch_first=True)(
        x1, (y := x1 + 1), y
    ),
    "decoder in batches": lambda: nn.TransformerDecoder(
        nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 1
    )(x1, x1 + 1),
    "attention without weights": lambda: attention(x1, x1, x1, need_weights=False),
    "attention with a mask": lambda: nn.MultiheadAttention(8, 2, dropout=0.5)(
        x1, x1, x1, key_padding_mask=torch.zeros(4, 2).bool()
    ),
    "attention with more keys": lambda: nn.MultiheadAttention(
        8, 2, add_bias_kv=True, add_zero_attn=True
    )(x1, x1, x1),
    "scaled_dot_product_attention": lambda: F.scaled_dot_product_attention(heads, heads, heads),
    "with dropout": lambda: F.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.5),
    "encoder": lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, activation="gelu"), 1
    )(x1),
    "encoder with padding": lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1
    ).eval()(x1, src_key_padding_mask=torch.zeros(2, 4).bool()),
    "decoder": lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 1)(x1, x1),
    "gumbel_softmax": lambda: F.gumbel_softmax(x0), "normalize": lambda: F.normalize(x0),
    "relu in place": lambda: F.relu(x0 + 1, inplace=True), "softmin": lambda: F.softmin(x0, 0),
    "elu in place": lambda: F.elu(x0 + 1, inplace=True), "relu6": lambda: F.relu6(x0),
    "tanhshrink": lambda: F.tanhshrink(x0), "softsign": lambda: F.softsign(x0),
    "threshold_": lambda: F.threshold_(x0 + 0, 0.1, 0.2), "pdist": lambda: F.pdist(x0),
    "upsample": lambda: F.upsample(x2, scale_factor=2), "one_hot": lambda: F.one_hot(label),
    "upsample_nearest": lambda: F.upsample_nearest(x2, scale_factor=2),
    "upsample_bilinear": lambda: F.upsample_bilinear(x2, scale_factor=2),
    "bilinear": lambda: F.interpolate(x2, scale_factor=2, mode="bilinear"),
    "area 1": lambda: F.interpolate(x1, scale_factor=2, mode="area"),
    "area 2": lambda: F.interpolate(x2, scale_factor=2, mode="area"),
    "area 3": lambda: F.interpolate(x3, scale_factor=2, mode="area"),
    "grid_sample": lambda: F.grid_sample(x2, torch.zeros(2, 3, 3, 2)),
    "affine_grid": lambda: F.affine_grid(torch.zeros(2, 2, 3), (2, 1, 3, 3)),
    "probabilities": lambda: F.cross_entropy(x0, x0.softmax(1)),
    "label smoothing": lambda: F.cross_entropy(x0, label, label_smoothing=0.1),
    "nll_loss of images": lambda: F.nll_loss(x2, numbers),
    "swapped": lambda: F.triplet_margin_loss(x0, x0, x0, swap=True),
    "distances": lambda: F.triplet_margin_with_distance_loss(x0, x0, x0, swap=True),
    "own distance": lambda: F.triplet_margin_with_distance_loss(
        x0, x0, x0, distance_function=nn.PairwiseDistance()
    ),
    "max_norm": lambda: F.embedding(label, w.clone(), max_norm=1.0),
    "max_unpool1d": lambda: F.max_unpool1d(*F.max_pool1d(x1, 2, return_indices=True), 2),
    "circular": lambda: nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular")(x2),
    "same": lambda: nn.Conv2d(4, 4, 3, padding="same", padding_mode="reflect")(x2),
    "log_prob": lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4]).log_prob(x0),
    "Bernoulli": lambda: distributions.Bernoulli(logits=x0).log_prob(ones),
    "Categorical": lambda: distributions.Categorical(logits=x0).log_prob(label),
    "its probabilities": lambda: distributions.Categorical(logits=x0).probs,
    "Geometric": lambda: distributions.Geometric(logits=x0).log_prob(ones),
    "Binomial": lambda: distributions.Binomial(3, logits=x0).log_prob(ones),
    "SigmoidTransform": lambda: distributions.SigmoidTransform().log_abs_det_jacobian(x0, x0),
    "TanhTransform": lambda: distributions.TanhTransform().log_abs_det_jacobian(x0, x0),
    "SoftplusTransform": lambda: distributions.transforms.SoftplusTransform()(x0),
    "StickBreaking": lambda: stick.log_abs_det_jacobian(x0, stick(x0)),
    "spectral norm": lambda: nn.utils.spectral_norm(nn.Linear(4, 4))(x0),
    "parametrized": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))(x0),
    "weight norm": lambda: nn.utils.weight_norm(nn.Linear(4, 4))(x0),
    "checkpoint": lambda: checkpoint(nn.Linear(4, 4), x0, use_reentrant=False),
}  # fmt: skip
# plait computes maxima with and without indices in one function, and `avg_pool3d` by `avg_pool2d`
HELPERS = {"assert_int_or_pair", "boolean_dispatch", "handle_torch_function"}
NAMES = [
    name
    for name in dir(F)
    if name.islower() and name[0] != "_" and callable(getattr(F, name))
    and not isinstance(getattr(F, name), type) and name not in HELPERS
    and not name.startswith("has_torch") and not name.endswith("with_indices")
]  # fmt: skip
counts = collections.Counter()


def counted(name, function):
    def call(*args, **kwargs):
        counts[name] += 1
        return function(*args, **kwargs)

    return call


def show(label, call):
    counts.clear()
    call()
    print(label, *(f"{name}:{count}" for name, count in sorted(counts.items())))


originals = {name: getattr(F, name) for name in NAMES}
for name, function in originals.items():
    setattr(F, name, counted(name, function))
for kind, name, arguments, inputs in LAYERS + [(kind, "", *rest) for kind, *rest in MORE]:
    for training in (True, False):
        layer = getattr(nn, kind)(*arguments).train(training)
        show(f"{kind} {training}", lambda layer=layer, inputs=inputs: layer(*inputs))
        assert not name or counts[name], f"{kind} does not call {name}"
for what, call in CALLS.items():
    show(what, call)

model = nn.Sequential(
    nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 1), nn.ReLU(),
    nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 8), nn.GELU(), nn.Linear(8, 8), nn.LayerNorm(8),
)  # fmt: skip
for training in (True, False):
    for recorded in (True, False):
        with torch.set_grad_enabled(recorded):
            counts.clear()
            model.train(training)(x2)
            print(training, recorded, sorted(counts.items()))

for name, function in originals.items():
    setattr(F, name, function)
counts.clear()
model(x2)
print("restored", dict(counts), F.relu is originals["relu"])

# ---- tables of operators, which libraries copy

aten = torch.ops.aten
table = copy.deepcopy({aten.convolution: "convolution", aten.addmm: "addmm", aten.mm: "mm"})
overloads = copy.deepcopy({aten.addmm.default: "overload of addmm"})


class Counts(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        for key, result in ((func._overloadpacket, table), (func, overloads)):
            if key in result:
                counts[result[key]] += 1
        return func(*args, **(kwargs or {}))


with Counts():
    model.eval()(x2)
    nn.MultiheadAttention(8, 2)(x1, x1, x1)
print(sorted(counts.items()))
functions = [torch.add, torch.matmul, torch.Tensor.add, torch.Tensor.mul_, F.linear, F.conv2d]
functions += [F.relu, torch.linalg.norm, torch.fft.fft, torch.float32, torch.strided]
print([copy.deepcopy(each) is each and copy.copy(each) is each for each in functions])
