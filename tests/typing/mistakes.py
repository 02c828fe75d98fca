"""A program with mistakes: type checkers must report each marked line, and no other one."""

import plait
import plait.nn as nn
import plait.nn.functional as F
from plait import linalg, optim
from plait.nn import Lineer  # mistake: a misspelled class
from plait.utils.data import DataLoader, TensorDataset, random_splits  # mistake: a misspelled name

x = plait.randn(2, 3)
y: int = x  # mistake: a tensor is no int
plait.randm(2, 3)  # mistake: a misspelled function
x.meen()  # mistake: a misspelled method
plait.relu(x, inplace=True)  # mistake: an argument that the operator does not have
x.sum(dims=1)  # mistake: a misspelled keyword
plait.matmul(x)  # mistake: an argument is missing
plait.softmax(x, "rows")  # mistake: a string for a dimension
x.max(1).value  # mistake: the fields are values and indices
x.topk(1).values.argmx()  # mistake: a misspelled method of a result
a, b, c = x.max(1)  # mistake: two results
linalg.svd(x).V  # mistake: the third field of linalg.svd is Vh
linalg.invert(x)  # mistake: it is linalg.inv
F.cross_entropy(x)  # mistake: an argument is missing
F.dropout(x, p="half")  # mistake: a string for a probability
nn.Linear(3)  # mistake: an argument is missing
nn.Conv2d(3, 8, kernel=3)  # mistake: it is kernel_size
nn.Linear(3, 4)(x, y=x).sum(0, keepdims=1, axes=2)  # mistake: no such keyword
optim.Adam(nn.Linear(3, 4).parameters(), learning_rate=0.1)  # mistake: it is lr
optim.Adm(nn.Linear(3, 4).parameters())  # mistake: a misspelled class
DataLoader(TensorDataset(x), batch_size="8")  # mistake: a string for a size
DataLoader(3)  # mistake: an int is no dataset
DataLoader({1, 2})  # mistake: a set has no samples by index
x + "1"  # mistake: a string is no operand
x.shape.foo  # mistake: a Size has no such attribute
plait.vmap(F.relu, size=2)  # mistake: it is chunk_size
plait.func.gard(F.relu)  # mistake: a misspelled transform
with plait.no_gard():  # mistake: a misspelled context manager
    pass
