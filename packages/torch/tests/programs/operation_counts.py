"""Libraries count operations by functions that they put in the place of PyTorch's."""

import collections
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

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
    ("LocalResponseNorm", "local_response_norm", (2,), (x2,)),
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
NAMES = {name for _, name, _, _ in LAYERS}
counts = collections.Counter()


def counted(name, function):
    def call(*args, **kwargs):
        counts[name] += 1
        return function(*args, **kwargs)

    return call


originals = {name: getattr(F, name) for name in NAMES}
for name, function in originals.items():
    setattr(F, name, counted(name, function))
for kind, name, arguments, inputs in LAYERS:
    for training in (True, False):
        layer = getattr(nn, kind)(*arguments).train(training)
        counts.clear()
        layer(*inputs)
        print(kind, training, name, counts[name] > 0)

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
        for key, found in ((func._overloadpacket, table), (func, overloads)):
            if key in found:
                counts[found[key]] += 1
        return func(*args, **(kwargs or {}))


with Counts():
    model.eval()(x2)
    nn.MultiheadAttention(8, 2)(x1, x1, x1)
print(sorted(counts.items()))
functions = [torch.add, torch.matmul, torch.Tensor.add, torch.Tensor.mul_, F.linear, F.conv2d]
functions += [F.relu, torch.linalg.norm, torch.fft.fft, torch.float32, torch.strided]
print([copy.deepcopy(each) is each and copy.copy(each) is each for each in functions])
