"""fvcore: operations by layer from a trace, tables of parameters, checkpoints, and its losses."""

import torch
from fvcore.common.checkpoint import Checkpointer
from fvcore.nn import (
    FlopCountAnalysis,
    flop_count_table,
    giou_loss,
    parameter_count,
    sigmoid_focal_loss,
    smooth_l1_loss,
)
from recording import array, fill, record

model = fill(
    torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 36, 5),
    )
)
record("parameters", dict(parameter_count(model)))
record("focal", sigmoid_focal_loss(array(0, 4, 3), (array(1, 4, 3) > 0).float(), reduction="mean"))
record("smooth", smooth_l1_loss(array(0, 4, 3), array(1, 4, 3), 0.5))
boxes = torch.cat([array(2, 5, 2), array(2, 5, 2) + 1], 1)
record("giou", giou_loss(boxes, boxes + 0.3))
saver = Checkpointer(model, ".", step=torch.optim.SGD(model.parameters(), 0.1))
saver.save("one", iteration=3)
record("loaded", saver.load("one.pth")["iteration"])
analysis = FlopCountAnalysis(model.eval(), array(3, 1, 3, 8, 8))
record("flops", analysis.total())
record("by operator", dict(analysis.by_operator()))
record("by module", dict(analysis.by_module()))
record("table", flop_count_table(analysis))
