"""Layers as functions, with the parameters as arguments.

Names, argument order and defaults are PyTorch's. Several of the functions are operators of
``plait_core``.
"""

from plait_abi.arguments import name_arguments as _name_arguments
from plait_nn.functional._activation import (
    celu,
    elu,
    gelu,
    glu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    relu_,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softsign,
    tanh,
    tanhshrink,
)
from plait_nn.functional._adaptive_pooling import (
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from plait_nn.functional._aliases import (
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices,
    conv_tbc,
    max_pool1d_with_indices,
    max_pool2d_with_indices,
    max_pool3d_with_indices,
    native_channel_shuffle,
    upsample_bilinear,
    upsample_nearest,
)
from plait_nn.functional._attention import (
    multi_head_attention_forward,
    scaled_dot_product_attention,
)
from plait_nn.functional._conv import (
    conv2d,
)
from plait_nn.functional._conv_dims import (
    conv1d,
    conv3d,
)
from plait_nn.functional._conv_transpose import (
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from plait_nn.functional._ctc import (
    ctc_loss,
)
from plait_nn.functional._distance import (
    cosine_embedding_loss,
    pairwise_distance,
    pdist,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from plait_nn.functional._dropout import (
    dropout,
    dropout2d,
)
from plait_nn.functional._dropout_dims import (
    alpha_dropout,
    dropout1d,
    dropout3d,
    feature_alpha_dropout,
)
from plait_nn.functional._embedding_bag import (
    embedding_bag,
)
from plait_nn.functional._fractional_pooling import (
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
)
from plait_nn.functional._grid import (
    affine_grid,
    grid_sample,
)
from plait_nn.functional._grouped import (
    grouped_mm,
    linear_cross_entropy,
)
from plait_nn.functional._interpolate import (
    interpolate,
    upsample,
)
from plait_nn.functional._likelihood import (
    gaussian_nll_loss,
    kl_div,
    poisson_nll_loss,
)
from plait_nn.functional._linear import (
    bilinear,
    embedding,
    linear,
    one_hot,
)
from plait_nn.functional._loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from plait_nn.functional._margin import (
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
)
from plait_nn.functional._normalization import (
    batch_norm,
    batch_norm_activation,
    cosine_similarity,
    layer_norm,
    normalize,
)
from plait_nn.functional._padding import (
    pad,
)
from plait_nn.functional._pooling import (
    adaptive_avg_pool2d,
    avg_pool2d,
    max_pool2d,
)
from plait_nn.functional._pooling_dims import (
    adaptive_avg_pool1d,
    adaptive_avg_pool3d,
    avg_pool1d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool3d,
)
from plait_nn.functional._shrinkage import (
    celu_,
    elu_,
    gumbel_softmax,
    hardshrink,
    hardtanh_,
    leaky_relu_,
    rrelu,
    rrelu_,
    selu_,
    softshrink,
    threshold,
    threshold_,
)
from plait_nn.functional._shuffle import (
    channel_shuffle,
    fold,
    pixel_shuffle,
    pixel_unshuffle,
    unfold,
)
from plait_nn.functional._statistics import (
    group_norm,
    instance_norm,
    local_response_norm,
    rms_norm,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "batch_norm_activation",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "grouped_mm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "linear_cross_entropy",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "native_channel_shuffle",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

_name_arguments(globals())
