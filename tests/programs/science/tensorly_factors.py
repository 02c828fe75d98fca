"""tensorly: CP, Tucker, tensor trains and robust PCA on its PyTorch backend, with gradients."""

import tensorly as tl
import torch
from recording import array, record
from tensorly import decomposition

tl.set_backend("pytorch")
x = array(0, 5, 6, 7, dtype=torch.float64)
cp = decomposition.parafac(x, rank=3, init="svd", n_iter_max=30, random_state=0)
record("cp", tl.cp_to_tensor(cp), rtol=5e-2)
core, factors = decomposition.tucker(x, rank=[3, 3, 3], init="svd", n_iter_max=20)
record("tucker", tl.tucker_to_tensor((core, factors)), rtol=1e-2)
train = decomposition.tensor_train(x, rank=[1, 4, 4, 1])
record("train", tl.tt_to_tensor(train), rtol=1e-2)
positive = decomposition.non_negative_parafac(x.abs(), rank=2, init="svd", n_iter_max=20)
record("positive", tl.cp_to_tensor(positive), rtol=5e-2)
record("robust", list(decomposition.robust_pca(x, n_iter_max=20)), rtol=2e-2)
record("norm", tl.norm(x))
factor = array(1, 6, 6, dtype=torch.float64).requires_grad_()
tl.tenalg.mode_dot(x, factor, mode=1).square().sum().backward()
record("gradient", factor.grad)
record("unfolded", tl.unfold(x, 2))
record("kronecker", tl.tenalg.khatri_rao([x[0], x[1]]))
