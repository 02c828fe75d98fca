"""Examples of the extensions `linalg` and `fft`; see `_examples`."""

TEXT = """
# linalg.cholesky
>>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 2.0]]))
tensor([[2., 0.],
        [1., 1.]])
# linalg.cross
>>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
tensor([0, 0, 1])
# linalg.det
>>> xp.linalg.det(xp.asarray([[2.5, 1.0], [0.0, 3.0]]))
tensor(7.5000)
# linalg.diagonal
>>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]]))
tensor([1, 4])
# linalg.eigh
>>> xp.linalg.eigh(xp.asarray([[2.5, 0.0], [0.0, 1.5]])).eigenvalues
tensor([1.5000, 2.5000])
# linalg.eigvalsh
>>> xp.linalg.eigvalsh(xp.asarray([[2.5, 0.0], [0.0, 1.5]]))
tensor([1.5000, 2.5000])
# linalg.inv
>>> xp.linalg.inv(2 * xp.eye(2)) @ xp.asarray([1.0, 2.0])
tensor([0.5000, 1.0000])
# linalg.matrix_norm
>>> xp.linalg.matrix_norm(xp.asarray([[1.5, 0.0], [0.0, 2.0]]))
tensor(2.5000)
# linalg.matrix_power
>>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3)
tensor([[1., 3.],
        [0., 1.]])
# linalg.matrix_rank
>>> xp.linalg.matrix_rank(xp.asarray([[1.0, 2.0], [2.0, 4.0]]))
tensor(1)
# linalg.outer
>>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4]))
tensor([[3, 4],
        [6, 8]])
# linalg.pinv
>>> xp.linalg.pinv(xp.ones((2, 2)))
tensor([[0.2500, 0.2500],
        [0.2500, 0.2500]])
# linalg.qr
>>> [a.shape for a in xp.linalg.qr(xp.ones((3, 2)))]
[plait.Size([3, 2]), plait.Size([2, 2])]
# linalg.slogdet
>>> xp.linalg.slogdet(xp.asarray([[0.0, 1.0], [1.0, 0.0]])).sign
tensor(-1.)
# linalg.solve
>>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([1.0, 1.0]))
tensor([0.5000, 0.2500])
# linalg.svd
>>> [a.shape for a in xp.linalg.svd(xp.ones((3, 2)), full_matrices=False)]
[plait.Size([3, 2]), plait.Size([2]), plait.Size([2, 2])]
# linalg.svdvals
>>> xp.linalg.svdvals(xp.asarray([[1.5, 0.0], [0.0, 2.5]]))
tensor([2.5000, 1.5000])
# linalg.trace
>>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]]))
tensor(5)
# linalg.vector_norm
>>> xp.linalg.vector_norm(xp.asarray([1.5, 2.0]))
tensor(2.5000)
# fft.fft
>>> xp.fft.fft(xp.asarray([1 + 0j, 2 + 0j]))
tensor([ 3.+0.j, -1.+0.j])
# fft.fftfreq
>>> xp.fft.fftfreq(4)
tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
# fft.fftn
>>> xp.fft.fftn(xp.ones((2, 2)) + 0j)
tensor([[4.+0.j, 0.+0.j],
        [0.+0.j, 0.+0.j]])
# fft.fftshift
>>> xp.fft.fftshift(xp.fft.fftfreq(4))
tensor([-0.5000, -0.2500,  0.0000,  0.2500])
# fft.hfft
>>> xp.fft.hfft(xp.asarray([1 + 0j, 2 + 0j]))
tensor([ 3., -1.])
# fft.ifft
>>> xp.fft.ifft(xp.asarray([3 + 0j, -1 + 0j]))
tensor([1.+0.j, 2.+0.j])
# fft.ifftn
>>> xp.fft.ifftn(xp.ones((2, 2)) + 0j)
tensor([[1.+0.j, 0.+0.j],
        [0.+0.j, 0.+0.j]])
# fft.ifftshift
>>> xp.fft.ifftshift(xp.asarray([-1, 0, 1]))
tensor([ 0,  1, -1])
# fft.ihfft
>>> xp.real(xp.fft.ihfft(xp.asarray([1.0, 3.0])))
tensor([ 2., -1.])
# fft.irfft
>>> xp.fft.irfft(xp.asarray([4 + 0j, -2 + 0j]))
tensor([1., 3.])
# fft.irfftn
>>> xp.fft.irfftn(xp.ones((2, 2)) + 0j)
tensor([[1., 0.],
        [0., 0.]])
# fft.rfft
>>> xp.fft.rfft(xp.asarray([1.0, 3.0]))
tensor([ 4.+0.j, -2.+0.j])
# fft.rfftfreq
>>> xp.fft.rfftfreq(4)
tensor([0.0000, 0.2500, 0.5000])
# fft.rfftn
>>> xp.fft.rfftn(xp.ones((2, 2)))
tensor([[4.+0.j, 0.+0.j],
        [0.+0.j, 0.+0.j]])
"""
