"""Examples of elementwise functions; see `_examples`."""

TEXT = """
# abs
>>> xp.abs(xp.asarray([-1.5, 2.0]))
tensor([1.5000, 2.0000])
# acos
>>> xp.acos(xp.asarray([1.0, 0.0]))
tensor([0.0000, 1.5708])
# acosh
>>> xp.acosh(xp.asarray([1.0, 2.0]))
tensor([0.0000, 1.3170])
# add
>>> xp.add(xp.asarray([1, 2]), xp.asarray([10, 20]))
tensor([11, 22])
# asin
>>> xp.asin(xp.asarray([0.0, 1.0]))
tensor([0.0000, 1.5708])
# asinh
>>> xp.asinh(xp.asarray([0.0, 1.0]))
tensor([0.0000, 0.8814])
# atan
>>> xp.atan(xp.asarray([0.0, 1.0]))
tensor([0.0000, 0.7854])
# atan2
>>> xp.atan2(xp.asarray([1.0, -1.0]), xp.asarray([0.0, -1.0]))
tensor([ 1.5708, -2.3562])
# atanh
>>> xp.atanh(xp.asarray([0.0, 0.5]))
tensor([0.0000, 0.5493])
# bitwise_and
>>> xp.bitwise_and(xp.asarray([6, 5]), xp.asarray([3, 4]))
tensor([2, 4])
# bitwise_invert
>>> xp.bitwise_invert(xp.asarray([0, 5]))
tensor([-1, -6])
# bitwise_left_shift
>>> xp.bitwise_left_shift(xp.asarray([1, 3]), xp.asarray([2, 1]))
tensor([4, 6])
# bitwise_or
>>> xp.bitwise_or(xp.asarray([6, 5]), xp.asarray([3, 4]))
tensor([7, 5])
# bitwise_right_shift
>>> xp.bitwise_right_shift(xp.asarray([8, 3]), xp.asarray([2, 1]))
tensor([2, 1])
# bitwise_xor
>>> xp.bitwise_xor(xp.asarray([6, 5]), xp.asarray([3, 4]))
tensor([5, 1])
# ceil
>>> xp.ceil(xp.asarray([1.2, -1.2]))
tensor([ 2., -1.])
# clip
>>> xp.clip(xp.asarray([1, 5, 9]), 2, 6)
tensor([2, 5, 6])
# conj
>>> xp.conj(xp.asarray([1 + 2j]))
tensor([1.-2.j])
# copysign
>>> xp.copysign(xp.asarray([1.0, 2.0]), xp.asarray([-3.0, 3.0]))
tensor([-1.,  2.])
# cos
>>> xp.cos(xp.asarray([0.0, xp.pi]))
tensor([ 1., -1.])
# cosh
>>> xp.cosh(xp.asarray([0.0, 1.0]))
tensor([1.0000, 1.5431])
# divide
>>> xp.divide(xp.asarray([1.0, 3.0]), 2.0)
tensor([0.5000, 1.5000])
# equal
>>> xp.equal(xp.asarray([1, 2]), xp.asarray([1, 3]))
tensor([ True, False])
# exp
>>> xp.exp(xp.asarray([0.0, 1.0]))
tensor([1.0000, 2.7183])
# expm1
>>> xp.expm1(xp.asarray([0.0, 1.0]))
tensor([0.0000, 1.7183])
# floor
>>> xp.floor(xp.asarray([1.7, -1.2]))
tensor([ 1., -2.])
# floor_divide
>>> xp.floor_divide(xp.asarray([7, -7]), 2)
tensor([ 3, -4])
# greater
>>> xp.greater(xp.asarray([1, 2, 3]), 2)
tensor([False, False,  True])
# greater_equal
>>> xp.greater_equal(xp.asarray([1, 2, 3]), 2)
tensor([False,  True,  True])
# hypot
>>> xp.hypot(xp.asarray([1.5]), xp.asarray([2.0]))
tensor([2.5000])
# imag
>>> xp.imag(xp.asarray([1 + 2j]))
tensor([2.])
# isfinite
>>> xp.isfinite(xp.asarray([1.0, xp.inf, xp.nan]))
tensor([ True, False, False])
# isinf
>>> xp.isinf(xp.asarray([1.0, -xp.inf, xp.nan]))
tensor([False,  True, False])
# isnan
>>> xp.isnan(xp.asarray([1.0, xp.inf, xp.nan]))
tensor([False, False,  True])
# less
>>> xp.less(xp.asarray([1, 2, 3]), 2)
tensor([ True, False, False])
# less_equal
>>> xp.less_equal(xp.asarray([1, 2, 3]), 2)
tensor([ True,  True, False])
# log
>>> xp.log(xp.asarray([1.0, 10.0]))
tensor([0.0000, 2.3026])
# log10
>>> xp.log10(xp.asarray([1.0, 100.0]))
tensor([0., 2.])
# log1p
>>> xp.log1p(xp.asarray([0.0, 1.0]))
tensor([0.0000, 0.6931])
# log2
>>> xp.log2(xp.asarray([1.0, 8.0]))
tensor([0., 3.])
# logaddexp
>>> xp.logaddexp(xp.asarray([0.0]), xp.asarray([0.0]))
tensor([0.6931])
# logical_and
>>> xp.logical_and(xp.asarray([True, True]), xp.asarray([True, False]))
tensor([ True, False])
# logical_not
>>> xp.logical_not(xp.asarray([True, False]))
tensor([False,  True])
# logical_or
>>> xp.logical_or(xp.asarray([False, True]), xp.asarray([False, False]))
tensor([False,  True])
# logical_xor
>>> xp.logical_xor(xp.asarray([True, True]), xp.asarray([True, False]))
tensor([False,  True])
# maximum
>>> xp.maximum(xp.asarray([1, 5]), xp.asarray([3, 2]))
tensor([3, 5])
# minimum
>>> xp.minimum(xp.asarray([1, 5]), xp.asarray([3, 2]))
tensor([1, 2])
# multiply
>>> xp.multiply(xp.asarray([1, 2]), xp.asarray([3, 4]))
tensor([3, 8])
# negative
>>> xp.negative(xp.asarray([1, -2]))
tensor([-1,  2])
# nextafter
>>> xp.nextafter(xp.asarray([1.0]), xp.asarray([2.0])) - 1
tensor([1.1921e-07])
# not_equal
>>> xp.not_equal(xp.asarray([1, 2]), xp.asarray([1, 3]))
tensor([False,  True])
# positive
>>> xp.positive(xp.asarray([1, -2]))
tensor([ 1, -2])
# pow
>>> xp.pow(xp.asarray([2, 3]), 2)
tensor([4, 9])
# real
>>> xp.real(xp.asarray([1 + 2j]))
tensor([1.])
# reciprocal
>>> xp.reciprocal(xp.asarray([2.0, 4.0]))
tensor([0.5000, 0.2500])
# remainder
>>> xp.remainder(xp.asarray([7, -7]), 3)
tensor([1, 2])
# round
>>> xp.round(xp.asarray([0.5, 1.5, 1.7]))
tensor([0., 2., 2.])
# sign
>>> xp.sign(xp.asarray([-2.0, 0.0, 3.0]))
tensor([-1.,  0.,  1.])
# signbit
>>> xp.signbit(xp.asarray([-0.0, 1.0]))
tensor([ True, False])
# sin
>>> xp.sin(xp.asarray([0.0, 1.0]))
tensor([0.0000, 0.8415])
# sinh
>>> xp.sinh(xp.asarray([0.0, 1.0]))
tensor([0.0000, 1.1752])
# sqrt
>>> xp.sqrt(xp.asarray([4.0, 9.0]))
tensor([2., 3.])
# square
>>> xp.square(xp.asarray([2, -3]))
tensor([4, 9])
# subtract
>>> xp.subtract(xp.asarray([5, 7]), xp.asarray([1, 2]))
tensor([4, 5])
# tan
>>> xp.tan(xp.asarray([0.0, 1.0]))
tensor([0.0000, 1.5574])
# tanh
>>> xp.tanh(xp.asarray([0.0, 1.0]))
tensor([0.0000, 0.7616])
# trunc
>>> xp.trunc(xp.asarray([1.7, -1.7]))
tensor([ 1., -1.])
"""
