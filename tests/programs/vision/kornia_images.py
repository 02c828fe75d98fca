"""kornia: filters, colors, geometry, features, losses, augmentations, with gradients."""

import kornia as K
import torch
from recording import array, record

x = array(0, 2, 3, 32, 32).sigmoid().requires_grad_()
record("blur", K.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)))
record("sobel", K.filters.sobel(x))
record("canny", K.filters.canny(x)[1], rtol=1e-2)
record("median", K.filters.median_blur(x, (3, 3)))
record("bilateral", K.filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)))
for name in ("rgb_to_hsv", "rgb_to_lab", "rgb_to_yuv", "rgb_to_grayscale", "rgb_to_hls"):
    record(name, getattr(K.color, name)(x))
record("clahe", K.enhance.equalize_clahe(x.detach()), rtol=1e-2)
record("contrast", K.enhance.adjust_contrast(x, 0.5))
angles = torch.tensor([20.0, -45.0])
record("rotated", K.geometry.rotate(x, angles))
matrix = K.geometry.get_rotation_matrix2d(torch.full((2, 2), 16.0), angles, torch.ones(2, 2))
record("warped", K.geometry.warp_affine(x, matrix, (24, 24)))
record("resized", K.geometry.resize(x, (20, 24), antialias=True))
corners = torch.tensor([[[0.0, 0.0], [31.0, 0.0], [31.0, 31.0], [0.0, 31.0]]]).expand(2, 4, 2)
homography = K.geometry.get_perspective_transform(corners, corners + array(1, 2, 4, 2))
record("homography", homography, rtol=1e-2)
record("quaternion", K.geometry.axis_angle_to_rotation_matrix(array(2, 4, 3)))
record("dilation", K.morphology.dilation(x, torch.ones(3, 3)))
record("harris", K.feature.harris_response(x))
record("hardnet", K.feature.SIFTDescriptor(16)(array(3, 2, 1, 16, 16)), rtol=1e-2)
record("ssim", K.losses.ssim_loss(x, x.flip(3), 5))
record("focal", K.losses.focal_loss(array(4, 2, 3, 8, 8), torch.ones(2, 8, 8).long(), 0.5))
record("hausdorff", K.losses.HausdorffERLoss()(array(5, 1, 2, 8, 8), torch.ones(1, 1, 8, 8).long()))

flip = K.augmentation.AugmentationSequential(
    K.augmentation.RandomHorizontalFlip(p=1.0),
    K.augmentation.CenterCrop((24, 24)),
    K.augmentation.Normalize(torch.full((3,), 0.5), torch.full((3,), 0.5)),
    data_keys=["input", "mask"],
)
image, mask = flip(x, (x > 0.5).float())
record("augmented", image)
record("mask", mask)
image.square().sum().backward()
record("gradient", x.grad)
torch.manual_seed(0)
jitter = K.augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0)(x)
record("jitter", jitter.mean(), rtol=0.1)
