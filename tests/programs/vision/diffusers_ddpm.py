"""diffusers: a small UNet trained with DDPM's noise, from_pretrained, DDIM and other samplers."""

import torch
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    UNet2DModel,
)
from recording import array, fill, gradients, record
from torch.nn import functional as F

unet = fill(
    UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(16, 32),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
)
noising = DDPMScheduler(num_train_timesteps=100)
optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-3)
losses = []
for step in range(20):
    images, noise = array(step, 4, 1, 8, 8), array(100 + step, 4, 1, 8, 8)
    times = torch.tensor([1, 20, 50, 99])
    predicted = unet(noising.add_noise(images, noise, times), times).sample
    loss = F.mse_loss(predicted, noise)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
record("losses", losses)
record("gradients", gradients(unet), rtol=1e-2)
# the gradient of a bias of keys is 0 but for rounding, which Adam makes steps of full size
trained = {name: p for name, p in unet.named_parameters() if not name.endswith("to_k.bias")}
record("trained", trained, atol=1e-4)

unet.save_pretrained("unet")
loaded = UNet2DModel.from_pretrained("unet").eval()
for kind in (DDIMScheduler, EulerDiscreteScheduler, DPMSolverMultistepScheduler):
    scheduler = kind(num_train_timesteps=100)
    scheduler.set_timesteps(6)
    sample = array(7, 2, 1, 8, 8) * scheduler.init_noise_sigma
    with torch.no_grad():
        for time in scheduler.timesteps:
            made = loaded(scheduler.scale_model_input(sample, time), time).sample
            sample = scheduler.step(made, time, sample).prev_sample
    record(kind.__name__, sample, rtol=5e-3)

autoencoder = fill(AutoencoderKL(1, 1, block_out_channels=(16,), norm_num_groups=4)).eval()
latent = autoencoder.encode(array(9, 2, 1, 8, 8)).latent_dist
record("mean", latent.mode())
record("decoded", autoencoder.decode(latent.mode()).sample)
