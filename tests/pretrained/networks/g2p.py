"""The network of g2p_en: English words that no dictionary has to phonemes, letter by letter."""

import plait
from plait import Tensor, nn

LETTERS = ["<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz"]
VOWELS = [
    *("AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"),
]
CONSONANTS = [
    *("B", "CH", "D", "DH", "F", "G", "HH", "JH", "K", "L", "M", "N", "NG", "P", "R", "S", "SH"),
    *("T", "TH", "V", "W", "Y", "Z", "ZH"),
]
SPOKEN = sorted([*(vowel + stress for vowel in VOWELS for stress in "012"), "UW", *CONSONANTS])
PHONEMES = ["<pad>", "<unk>", "<s>", "</s>", *SPOKEN]


class G2P(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enc_emb = nn.Embedding(29, 256)
        self.encoder = nn.GRU(256, 256, batch_first=True)
        self.dec_emb = nn.Embedding(74, 256)
        self.decoder = nn.GRUCell(256, 256)
        self.fc = nn.Linear(256, 74)

    def logits(self, word: str, steps: int = 20) -> Tensor:
        """Return a row of logits for each phoneme, the end included."""
        letters = [LETTERS.index(each) for each in [*word, "</s>"]]
        _, hidden = self.encoder(self.enc_emb(plait.tensor([letters])))
        hidden, choice, rows = hidden[0], plait.tensor([PHONEMES.index("<s>")]), []
        while len(rows) < steps:
            hidden = self.decoder(self.dec_emb(choice), hidden)
            rows.append(self.fc(hidden))
            choice = rows[-1].argmax(1)
            if choice.item() == PHONEMES.index("</s>"):
                break
        return plait.cat(rows)

    def phonemes(self, word: str) -> list[str]:
        selection = [PHONEMES[i] for i in self.logits(word).argmax(1).tolist()]
        return selection[: selection.index("</s>")] if "</s>" in selection else selection
