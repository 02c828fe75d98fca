"""Examples of functions that make, search, move or reduce arrays; see `_examples`."""

TEXT = """
# __array_namespace_info__
>>> xp.__array_namespace_info__().default_device()
device(type='cpu')
# all
>>> xp.all(xp.asarray([[1, 2], [0, 3]]), axis=1)
tensor([ True, False])
# any
>>> xp.any(xp.asarray([[0, 2], [0, 0]]), axis=1)
tensor([ True, False])
# arange
>>> xp.arange(1, 10, 3)
tensor([1, 4, 7])
# argmax
>>> xp.argmax(xp.asarray([[1, 9, 3], [4, 5, 6]]), axis=1)
tensor([1, 2])
# argmin
>>> xp.argmin(xp.asarray([3, 1, 2]))
tensor(1)
# argsort
>>> xp.argsort(xp.asarray([3, 1, 2]))
tensor([1, 2, 0])
# asarray
>>> xp.asarray([[1, 2], [3, 4]], dtype=xp.float64)
tensor([[1., 2.],
        [3., 4.]], dtype=float64)
# astype
>>> xp.astype(xp.asarray([1.7, -1.7]), xp.int32)
tensor([ 1, -1], dtype=int32)
# broadcast_arrays
>>> [a.shape for a in xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
[plait.Size([2, 3]), plait.Size([2, 3])]
# broadcast_to
>>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2))
tensor([[1, 2],
        [1, 2]])
# can_cast
>>> xp.can_cast(xp.int32, xp.int64), xp.can_cast(xp.int64, xp.int32)
(True, False)
# concat
>>> xp.concat([xp.asarray([1, 2]), xp.asarray([3.5])])
tensor([1.0000, 2.0000, 3.5000])
# count_nonzero
>>> xp.count_nonzero(xp.asarray([0, 3, 0, 5]))
tensor(2)
# cumulative_prod
>>> xp.cumulative_prod(xp.asarray([1, 2, 3]))
tensor([1, 2, 6])
# cumulative_sum
>>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
tensor([0, 1, 3, 6])
# diff
>>> xp.diff(xp.asarray([1, 4, 9]))
tensor([3, 5])
# empty
>>> xp.empty((2, 3)).shape
plait.Size([2, 3])
# empty_like
>>> xp.empty_like(xp.ones((2, 3)), dtype=xp.int8).dtype
plait.int8
# expand_dims
>>> xp.expand_dims(xp.asarray([1, 2]), axis=1)
tensor([[1],
        [2]])
# eye
>>> xp.eye(2, 3)
tensor([[1., 0., 0.],
        [0., 1., 0.]])
# finfo
>>> xp.finfo(xp.float32).eps
1.1920928955078125e-07
# flip
>>> xp.flip(xp.asarray([1, 2, 3]))
tensor([3, 2, 1])
# from_dlpack
>>> import numpy
>>> xp.from_dlpack(numpy.asarray([1, 2]))
tensor([1, 2])
# full
>>> xp.full((2,), 7)
tensor([7, 7])
# full_like
>>> xp.full_like(xp.asarray([1.0, 2.0]), 7)
tensor([7., 7.])
# iinfo
>>> xp.iinfo(xp.int8).max
127
# isdtype
>>> xp.isdtype(xp.float32, "real floating"), xp.isdtype(xp.int8, "bool")
(True, False)
# linspace
>>> xp.linspace(0.0, 1.0, 3)
tensor([0.0000, 0.5000, 1.0000])
# matmul
>>> xp.matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1]))
tensor([3, 7])
# matrix_transpose
>>> xp.matrix_transpose(xp.asarray([[1, 2], [3, 4]]))
tensor([[1, 3],
        [2, 4]])
# max
>>> xp.max(xp.asarray([[1, 5], [4, 2]]), axis=0)
tensor([4, 5])
# mean
>>> xp.mean(xp.asarray([[1.0, 3.0], [2.0, 6.0]]), axis=1)
tensor([2., 4.])
# meshgrid
>>> [a.shape for a in xp.meshgrid(xp.arange(3), xp.arange(2))]
[plait.Size([2, 3]), plait.Size([2, 3])]
# min
>>> xp.min(xp.asarray([[1, 5], [4, 2]]), axis=0)
tensor([1, 2])
# moveaxis
>>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
plait.Size([3, 4, 2])
# nonzero
>>> xp.nonzero(xp.asarray([0, 3, 0, 5]))
(tensor([1, 3]),)
# ones
>>> xp.ones((2, 2))
tensor([[1., 1.],
        [1., 1.]])
# ones_like
>>> xp.ones_like(xp.asarray([5, 6]))
tensor([1, 1])
# permute_dims
>>> xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
plait.Size([4, 2, 3])
# prod
>>> xp.prod(xp.asarray([[1, 2], [3, 4]]), axis=1)
tensor([ 2, 12])
# repeat
>>> xp.repeat(xp.asarray([1, 2]), 2)
tensor([1, 1, 2, 2])
# reshape
>>> xp.reshape(xp.arange(4), (2, 2))
tensor([[0, 1],
        [2, 3]])
# result_type
>>> xp.result_type(xp.asarray([1, 2], dtype=xp.int8), xp.int32)
plait.int32
# roll
>>> xp.roll(xp.asarray([1, 2, 3]), 1)
tensor([3, 1, 2])
# searchsorted
>>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([2, 3, 6]))
tensor([1, 1, 3])
# sort
>>> xp.sort(xp.asarray([3, 1, 2]), descending=True)
tensor([3, 2, 1])
# squeeze
>>> xp.squeeze(xp.ones((2, 1, 3)), axis=1).shape
plait.Size([2, 3])
# stack
>>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1)
tensor([[1, 3],
        [2, 4]])
# std
>>> xp.std(xp.asarray([1.0, 3.0]), correction=1.0)
tensor(1.4142)
# sum
>>> xp.sum(xp.asarray([[1, 2], [3, 4]]), axis=1)
tensor([3, 7])
# take
>>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([2, 0]), axis=0)
tensor([30, 10])
# take_along_axis
>>> xp.take_along_axis(xp.asarray([[1, 2], [3, 4]]), xp.asarray([[1], [0]]))
tensor([[2],
        [3]])
# tensordot
>>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 4)), axes=1).shape
plait.Size([2, 4])
# tile
>>> xp.tile(xp.asarray([1, 2]), (2,))
tensor([1, 2, 1, 2])
# tril
>>> xp.tril(xp.ones((2, 2)))
tensor([[1., 0.],
        [1., 1.]])
# triu
>>> xp.triu(xp.ones((2, 2)))
tensor([[1., 1.],
        [0., 1.]])
# unique_all
>>> xp.unique_all(xp.asarray([5, 3, 5])).indices
tensor([1, 0])
# unique_counts
>>> xp.unique_counts(xp.asarray([5, 3, 5])).counts
tensor([1, 2])
# unique_inverse
>>> xp.unique_inverse(xp.asarray([5, 3, 5])).inverse_indices
tensor([1, 0, 1])
# unique_values
>>> xp.unique_values(xp.asarray([5, 3, 5]))
tensor([3, 5])
# unstack
>>> xp.unstack(xp.asarray([[1, 2], [3, 4]]))
(tensor([1, 2]), tensor([3, 4]))
# var
>>> xp.var(xp.asarray([1.0, 3.0]))
tensor(1.)
# vecdot
>>> xp.vecdot(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 10]))
tensor([21, 43])
# where
>>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0)
tensor([1, 0])
# zeros
>>> xp.zeros((2, 2))
tensor([[0., 0.],
        [0., 0.]])
# zeros_like
>>> xp.zeros_like(xp.asarray([5, 6]))
tensor([0, 0])
"""
