"""ptwt: wavelet transforms of one to three dimensions, packets, continuous ones, and inverses."""

import ptwt
import pywt
import torch
from recording import array, record

x = array(0, 3, 64, dtype=torch.float64).requires_grad_()
image = array(1, 2, 32, 32, dtype=torch.float64)
wave = ptwt.wavedec(x, "db3", level=3, mode="reflect")
record("wavedec", list(wave))
record("waverec", ptwt.waverec(wave, "db3"))
sum(part.square().sum() for part in wave).backward()
record("gradient", x.grad)
levels = ptwt.wavedec2(image, "haar", level=2)
record("wavedec2", [levels[0], *levels[1]])
record("waverec2", ptwt.waverec2(levels, "haar"))
volume = ptwt.wavedec3(array(2, 1, 16, 16, 16, dtype=torch.float64), "db2", level=1)
record("wavedec3", [volume[0], *volume[1].values()])
record(
    "cwt", ptwt.cwt(x[0].detach(), torch.arange(1, 8).numpy(), pywt.ContinuousWavelet("mexh"))[0]
)
packets = ptwt.WaveletPacket(x.detach(), "db2", mode="reflect", maxlevel=2)
record("packets", [packets[key] for key in packets.get_level(2)])
record("swt", list(ptwt.swt(x.detach(), "db2", level=2)))
matrix = ptwt.MatrixWavedec("db2", level=2)
record("matrix", list(matrix(x.detach())))
