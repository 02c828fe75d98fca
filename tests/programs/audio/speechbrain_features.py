"""speechbrain: filter banks, ECAPA, CRDNN and CTC losses, a Brain trained on a few batches."""

import speechbrain as sb
import torch
from recording import array, fill, record
from speechbrain.lobes.features import MFCC, Fbank
from speechbrain.lobes.models.CRDNN import CRDNN
from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN
from speechbrain.nnet.losses import ctc_loss, nll_loss
from speechbrain.processing.features import InputNormalization

sound = 0.1 * array(0, 2, 8000)
lengths = torch.tensor([1.0, 0.8])
features = Fbank(n_mels=24)(sound)
record("fbank", features)
record("mfcc", MFCC()(sound), rtol=5e-3)
record("normal", InputNormalization()(features, lengths), rtol=5e-3)
embed = fill(ECAPA_TDNN(24, lin_neurons=16, channels=[16] * 4 + [48], attention_channels=8))
record("ecapa", embed(features, lengths), rtol=2e-2)
net = CRDNN(
    input_shape=[2, 51, 24],
    cnn_blocks=1,
    cnn_channels=(8,),
    rnn_layers=1,
    rnn_neurons=8,
    dnn_blocks=1,
    dnn_neurons=8,
    dropout=0.0,
)
record("crdnn", fill(net)(features), rtol=2e-2)
scores = array(1, 2, 20, 6).log_softmax(-1).requires_grad_()
loss = ctc_loss(scores, torch.tensor([[1, 2, 3], [4, 5, 0]]), lengths, torch.tensor([1.0, 0.67]), 0)
loss.backward()
record("ctc", loss)
record("ctc gradient", scores.grad)


class Classifier(sb.Brain):
    """Fits a linear layer to the mean features."""

    def compute_forward(self, batch, stage):
        """Return the log probabilities."""
        return self.modules.linear(batch[0]).log_softmax(-1)

    def compute_objectives(self, predictions, batch, stage):
        """Return the loss."""
        loss = nll_loss(predictions, batch[1])
        losses.append(loss.item())
        return loss


losses: list[float] = []
linear = fill(torch.nn.Linear(24, 3))
data = [(array(i, 4, 24), torch.arange(4) % 3) for i in range(5)]
brain = Classifier(
    {"linear": linear}, lambda x: torch.optim.SGD(x, 0.1), run_opts={"device": "cpu"}
)
brain.fit(range(2), data, progressbar=False) if hasattr(brain, "fit") else None
record("losses", losses)
