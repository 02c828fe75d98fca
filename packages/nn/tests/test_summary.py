import pytest

import plait_core as pc
import plait_nn as nn


def rows(result):
    return {row.name: row for row in result.rows}


def test_the_numbers_of_a_small_convolutional_network():
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 4 * 4, 10),
    )
    model[5].bias.requires_grad_(False)
    result = nn.summary(model, (2, 3, 8, 8))
    output = rows(result)
    assert output["0"].output_shapes == [(2, 8, 8, 8)]
    assert output["3"].output_shapes == [(2, 8, 4, 4)]
    assert output[""].output_shapes == [(2, 10)]
    assert output["0"].parameters == 8 * 3 * 9 + 8
    assert output["0"].multiply_adds == 2 * 8 * 64 * 27
    assert output["5"].multiply_adds == 2 * 128 * 10
    assert result.multiply_adds == 2 * 8 * 64 * 27 + 2 * 128 * 10
    assert result.parameters == sum(p.numel() for p in model.parameters())
    assert result.trainable == result.parameters - 10
    assert result.parameter_bytes == 4 * result.parameters
    assert result.buffer_bytes == 2 * 8 * 4 + 8
    assert result.input_bytes == 4 * 2 * 3 * 64
    elements = 2 * (3 * 8 * 64 + 2 * 8 * 16 + 10)
    assert result.activation_bytes == 4 * elements


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        (nn.Linear(3, 5), (7, 2, 3), 7 * 2 * 15),
        (nn.Bilinear(2, 3, 4), None, 6 * 4 * 2 * 3),
        (nn.Conv1d(4, 6, 3, groups=2), (2, 4, 9), 2 * 6 * 7 * 2 * 3),
        (nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4), 3 * 27 * 2 * 8),
        (nn.ConvTranspose2d(4, 6, 3, stride=2), (2, 4, 5, 5), 2 * 4 * 25 * 6 * 9),
        (nn.LSTM(3, 5), (7, 2, 3), 7 * 2 * 4 * 5 * (3 + 5)),
        (nn.GRU(3, 5, bidirectional=True), (7, 2, 3), 2 * 7 * 2 * 3 * 5 * (3 + 5)),
        (nn.LSTMCell(3, 5), (2, 3), 2 * 4 * 5 * (3 + 5)),
        (nn.ReLU(), (4, 4), 0),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_multiply_adds_follow_the_closed_forms(layer, shape, expected):
    sizes = [(6, 2), (6, 3)] if shape is None else shape
    assert nn.summary(layer, sizes).multiply_adds == expected


def test_attention_counts_projections_and_scores():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = pc.randn(3, 5, 8)
    result = nn.summary(layer, input_data=(x, x, x))
    assert result.multiply_adds == 3 * (4 * 5 * 8 * 8 + 2 * 5 * 5 * 8)
    assert result.rows[0].output_shapes == [(3, 5, 8), (3, 5, 5)]


def test_products_of_indexed_and_transposed_parts_count():
    class Parts(nn.Module):
        def forward(self, x):
            q, k = x
            return q @ k.T + x[0] @ x[1].mT

    assert nn.summary(Parts(), (2, 4, 6)).multiply_adds == 2 * 4 * 4 * 6


def test_the_shapes_are_those_of_a_real_call(draw):
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)
    shapes = {}

    def note(name):
        def hook(module, args, output):
            outputs = output if isinstance(output, tuple) else (output,)
            shapes[name] = [tuple(t.shape) for t in outputs if t is not None]

        return hook

    for name, module in model.named_modules():
        module.register_forward_hook(note(name))
    model(pc.tensor(draw(4, 3, 8), dtype=pc.float32))
    real = dict(shapes)
    shapes.clear()
    result = rows(nn.summary(model, (4, 3, 8)))
    called = {name: row.output_shapes for name, row in result.items() if row.calls}
    assert called == real


def test_the_model_is_as_before():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 2))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    own = list(model.parameters())
    pc.manual_seed(3)
    expected = pc.rand(4).tolist()
    pc.manual_seed(3)
    nn.summary(model, (5, 3))
    assert pc.rand(4).tolist() == expected  # no random number was drawn
    assert all((model.state_dict()[name] == value).all() for name, value in before.items())
    assert all(a is b for a, b in zip(own, model.parameters(), strict=True))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_large_model_takes_no_memory():
    model = nn.Linear(1, 1)
    # 2**60 elements, which cannot be allocated
    assert nn.summary(model, (2**60, 1)).activation_bytes == 4 * 2**60


def test_shared_and_unused_modules():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.tied = nn.Linear(3, 3)
            self.tied.weight = self.layer.weight
            self.unused = nn.Linear(9, 9)

        def forward(self, x):
            return self.tied(self.layer(self.layer(x)))

    result = nn.summary(Twice(), (2, 3))
    output = rows(result)
    assert (output["layer"].calls, output["layer"].multiply_adds) == (2, 2 * 18)
    assert output["unused"].calls == 0
    assert result.parameters == 9 + 3 + 3 + 90
    assert "not called" in str(result)
    assert "x 2 calls" in str(result)


def test_dtypes_kwargs_and_nested_inputs():
    table = nn.Embedding(10, 4)
    assert nn.summary(table, (2, 3), dtypes=[pc.int64]).rows[0].output_shapes == [(2, 3, 4)]
    assert nn.summary(table, input_data=pc.tensor([[1, 2]])).rows[0].output_shapes == [(1, 2, 4)]

    class Nest(nn.Module):
        def forward(self, pair, *, scale):
            return {"sum": pair["a"] + pair["b"][0] * scale}

    data = ({"a": pc.ones(3), "b": [pc.ones(2, 3)[0]]},)
    result = nn.summary(Nest(), input_data=data, kwargs={"scale": pc.ones(1)})
    assert result.rows[0].output_shapes == [(3,)]
    assert result.input_bytes == 4 * 7


def test_the_table_reads():
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2)))
    lines = str(nn.summary(model, (10, 3))).split("\n")
    assert lines[0].split() == ["layer", "output", "shape", "parameters", "multiply-adds"]
    assert lines[2].split() == ["Sequential", "(10,", "2)", "26", "200"]
    assert lines[3].split() == ["0:", "Linear", "(10,", "4)", "16", "120"]
    assert lines[6].startswith("    1: Linear")
    assert "parameters            26 (26 trainable, 0 not)" in lines


def test_html_escapes_names_of_classes():
    cls = type("<b>Bold", (nn.Module,), {"forward": lambda self, x: x})
    html = nn.summary(cls(), (1,))._repr_html_()
    assert "&lt;b&gt;Bold" in html
    assert "<b>Bold" not in html
    assert "&lt;b&gt;Bold" in cls()._repr_html_()


def test_a_module_as_html_is_a_balanced_tree():
    from html.parser import HTMLParser

    model = nn.Sequential(nn.Linear(3, 4), nn.ModuleDict({"a": nn.ReLU(), "b": nn.Dropout(0.1)}))

    class Reader(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.text, self.seen = [], "", []

        def handle_starttag(self, tag, attributes):
            self.open.append(tag)
            self.seen.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

        def handle_data(self, data):
            self.text += data

    reader = Reader()
    reader.feed(model._repr_html_())
    assert reader.open == []
    assert reader.seen.count("details") == 2
    for text in ("0: Linear", "in_features=3, out_features=4, bias=True", "b: Dropout", "p=0.1"):
        assert text in reader.text
    assert "16 parameters" in reader.text


def test_errors():
    layer = nn.Linear(3, 2)
    with pytest.raises(TypeError, match="one of `input_size` and `input_data`"):
        nn.summary(layer)
    with pytest.raises(TypeError, match="one of `input_size` and `input_data`"):
        nn.summary(layer, (1, 3), pc.ones(1, 3))
    with pytest.raises(TypeError, match="`model` must be a Module; got int"):
        nn.summary(3, (1, 3))
    with pytest.raises(ValueError, match="got 2 for 1"):
        nn.summary(layer, (1, 3), dtypes=[pc.float32, pc.float32])
    with pytest.raises(ValueError, match="`weight` is not initialised"):
        nn.summary(nn.LazyLinear(3), (1, 3))
    with pytest.raises(pc.ShapeError, match="linear"):
        nn.summary(layer, (1, 4))

    class Reads(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match="asked for values"):
        nn.summary(Reads(), (2,))
    assert not layer._forward_hooks


def test_tensors_are_no_shapes():
    x = pc.zeros(2, 4)
    for argument in (x, (x,)):
        with pytest.raises(TypeError, match="give tensors as `input_data`"):
            nn.summary(nn.Linear(4, 3), argument)
