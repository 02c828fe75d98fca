#include "words.hpp"

#include <plait/warning.h>

#include "calls.hpp"
#include "promotion.hpp"

namespace plait::ops {
// Warnings and validation.

void warn(const Scope &x, bool condition, const char *text) {
  if (condition) plait_warn(x.thread, x.op, text);
}
void warn_of_freedom(const Scope &x, Ints shape, Ints dims, double correction) {
  double n = 1;
  for (int64_t d : dims)
    if (d < shape.size()) n *= double(shape[d]);
  warn(x, n - correction <= 0,
       "(): degrees of freedom is <= 0. `correction` must be less than the number of elements that "
       "are reduced to one; the result is nan or inf");
}

void warn_of_real(const Scope &x, DType dtype, DType to) {
  warn(x, is_complex(dtype) && !is_complex(to) && !same(to, dtype::bool_),
       "Casting complex values to real discards the imaginary part");
}

int64_t wrap_dim(const Scope &x, const char *argument, int64_t dim, Ints shape) {
  const int64_t room = std::max<int64_t>(shape.size(), 1);
  if (dim < -room || dim >= room)
    fail(x, PLAIT_INDEX_ERROR,
         quoted(argument) + " must be in [" + show(-room) + ", " + show(room - 1) + "] for shape " +
             show(shape) + "; got " + show(dim) + ". Dimension out of range");
  return dim < 0 ? dim + room : dim;
}
int64_t wrap_index(const Scope &x, const char *argument, int64_t index, int64_t size) {
  const int64_t least = minus(0, size);
  if (index < least || index >= size)
    fail(x, PLAIT_INDEX_ERROR,
         quoted(argument) + " must be in [" + show(least) + ", " + show(size - 1) +
             "] for a dimension of size " + show(size) + "; got " + show(index) +
             ". index out of range");
  return index < 0 ? index + size : index;
}
void too_large() {
  throw std::overflow_error("its arguments lead to sizes or places that 64 bits cannot count");
}
void sizes(const Scope &x, const char *argument, Ints shape) {
  if (shape.size() > PLAIT_MAX_DIMS)
    fail(x, PLAIT_SHAPE_ERROR,
         quoted(argument) + " must have at most 64 dimensions; got " + show(shape.size()));
  bool overflow = false;
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0)
      fail(x, PLAIT_SHAPE_ERROR,
           quoted(argument) + " must not hold negative sizes; got " + show(shape));
    if (size) overflow |= __builtin_mul_overflow(count, size, &count);
  }
  if (overflow)
    fail(x, PLAIT_SHAPE_ERROR,
         quoted(argument) + " must name fewer than 2**63 elements; got " + show(shape));
}
void max_dims(const Scope &x, const char *argument, int64_t ndim) {
  if (ndim > PLAIT_MAX_DIMS)
    fail(x, PLAIT_SHAPE_ERROR,
         quoted(argument) + " would give a result of " + show(ndim) +
             " dimensions; at most 64 are supported");
}
void require(const Scope &x, const char *argument, DType dtype, const char *group) {
  if (in_group(dtype, group_of(group))) return;
  fail(x, PLAIT_DTYPE_ERROR, quoted(argument) + " " + not_in_group(dtype, group_of(group)));
}
bool number_fits(const plait_value &v, DType dtype) {
  if (dtype.code != kDLInt && dtype.code != kDLUInt) return true;
  const int width = dtype.code == kDLUInt ? dtype.bits : dtype.bits - 1;
  if (v.tag == PLAIT_INT)
    return dtype.code == kDLUInt ? v.u.i >= 0 && (width == 64 || v.u.i >> width == 0)
                                 : v.u.i >> width == 0 || v.u.i >> width == -1;
  if (v.tag != PLAIT_FLOAT) return true;
  const double limit = std::ldexp(1.0, width), low = dtype.code == kDLUInt ? 0 : -limit;
  return std::trunc(v.u.f) >= low && std::trunc(v.u.f) < limit;
}
void fits(const Scope &x, const char *argument, const plait_value &v, DType dtype) {
  if (v.tag == PLAIT_TENSOR || v.tag == PLAIT_BOOL || dtype.code == kDLComplex) return;
  if (v.tag == PLAIT_COMPLEX)
    fail(x, PLAIT_DTYPE_ERROR,
         quoted(argument) + " must be a real number for " + name(dtype) + "; got " + show(v));
  if (!number_fits(v, dtype))
    fail(x, PLAIT_VALUE_ERROR,
         quoted(argument) + " must fit in " + name(dtype) + "; got " + show(v));
}
void fits_as_factor(const Scope &x, const char *argument, const plait_value &v, DType dtype) {
  if (dtype.code != kDLUInt || (v.tag != PLAIT_INT && v.tag != PLAIT_FLOAT))
    return fits(x, argument, v, dtype);
  const double limit = std::ldexp(1.0, dtype.bits);
  // to 2**53 an int is exact as a double; larger ones are below the limit of 64 bits alone
  const double size = v.tag == PLAIT_INT ? std::fabs(double(v.u.i)) : std::fabs(std::trunc(v.u.f));
  if (!(size < limit))
    fail(x, PLAIT_VALUE_ERROR,
         quoted(argument) + " must fit in " + name(dtype) + "; got " + show(v));
}
void in_range(const Scope &x, const char *argument, const plait_value &v, DType dtype) {
  fits(x, argument, v, dtype);
  if (v.tag == PLAIT_TENSOR || category(dtype) != Category::floating || dtype.bits == 64) return;
  const double largest = dtype.bits == 32              ? 0x1.fffffep127
                         : same(dtype, dtype::float16) ? 65504.0
                                                       : 0x1.fep127;
  const double f = as_float(v);
  if (std::isfinite(f) && std::fabs(f) > largest)
    fail(x, PLAIT_VALUE_ERROR,
         quoted(argument) + " must fit in " + name(dtype) + "; got " + show(v));
}
void require_same(const Scope &x, const char *name_a, const plait_tensor *a, const char *name_b,
                  const plait_tensor *b) {
  if (!same(a->dl.dtype, b->dl.dtype))
    fail(x, PLAIT_DTYPE_ERROR,
         quoted(name_a) + " and " + quoted(name_b) + " must have the same dtype; got " +
             name(a->dl.dtype) + " and " + name(b->dl.dtype));
}

// Dtypes.

bool is_floating(DType dtype) { return category(dtype) == Category::floating; }
bool is_integral(DType dtype) { return category(dtype) <= Category::integer; }
DType dtype_of(const plait_value &number) { return number_dtype(number); }
DType accumulated(DType dtype) {
  if (same(dtype, dtype::uint64)) return dtype;
  return is_integral(dtype) ? dtype::int64 : dtype;
}
DType promote_all(const Scope &x, const char *argument, Tensors tensors) {
  Promotion p;
  for (int64_t i = 0; i < tensors.size(); i++) p.add(tensors[i]);
  if (tensors.size() == 0) return default_dtype();
  if (p.conflict()) fail(x, PLAIT_DTYPE_ERROR, quoted(argument) + ": " + p.why());
  return p.result();
}
DType require_common(const Scope &x, const char *name_a, const plait_value &a, const char *name_b,
                     const plait_value &b) {
  Promotion p;
  p.add(a);
  p.add(b);
  if (p.conflict())
    fail(x, PLAIT_DTYPE_ERROR, quoted(name_a) + " and " + quoted(name_b) + ": " + p.why());
  return p.result();
}

// Values.

bool is_recorded(const Scope &x, plait_tensor *t) {
  static const plait_role engine = x.thread->runtime->role("engine", 0);
  const plait_engine *e = PLAIT_ROLE(plait_engine, engine);
  if (!e) return false;
  if (x.thread->slot[1]) return true;  // forward mode
  const uint64_t layers = (t->layers | x.thread->included) & ~x.thread->excluded;
  return (layers >> e->layer & 1) && e->enabled(e->ctx, x.thread);
}
bool is_unused(const Scope &x, const plait_tensor *gradient) {
  const plait_vjp *v = x.vjp;
  if (!v || !PLAIT_KNOWS(plait_vjp, v->size, zero)) return false;
  for (uint16_t i = 0; i < v->n_out && i < 64; i++)
    if (v->gy[i] == gradient) return v->zero >> i & 1;
  return false;
}
int64_t item(const Scope &x, plait_tensor *t) {
  if (t->dl.device.device_type == PLAIT_META || !same(t->dl.dtype, dtype::int64) || numel(t) != 1)
    fail(x, PLAIT_NOT_IMPLEMENTED,
         "the shape of the result depends on values, which a tensor on device meta does not have");
  Tensor here;
  check(x.call->thread->runtime->host_copy(x.call->thread, t, here.out()));
  return *here.data<const int64_t>();
}
Held conjugate(const Scope &x, const plait_value &v) {
  if (v.tag == PLAIT_TENSOR && is_complex(v.u.t->dl.dtype)) return Held(run(x, Op::conj, {v}));
  if (v.tag == PLAIT_TENSOR) return Held(Tensor::share(v.u.t));
  return v.tag == PLAIT_COMPLEX ? Held(v.u.fs[0], -v.u.fs[1]) : Held(v);
}
Tensor to_dtype(const Scope &x, plait_tensor *t, DType dtype) {
  return same(t->dl.dtype, dtype) ? Tensor::share(t) : run(x, Op::cast, {value(t), value(dtype)});
}

Tensor sum_to(const Scope &x, plait_tensor *t, Ints shape) {
  const int64_t lead = t->dl.ndim - shape.size();
  Dims dims;
  for (int64_t i = 0; i < t->dl.ndim; i++)
    if (i < lead || (shape[i - lead] == 1 && t->dl.shape[i] != 1)) dims.push(i);
  if (dims.size() == 0) return Tensor::share(t);
  Tensor sum = run(x, Op::sum, {value(t), ints_value(dims), value(true)});
  return lead > 0 ? run(x, Op::view, {value(sum), ints_value(shape)}) : sum;
}

void view(const Scope &x, uint32_t i, plait_tensor *base, Ints shape, Ints strides,
          int64_t offset) {
  max_dims(x, "shape", shape.size());
  check(x.thread->runtime->view(x.call, i, base, int32_t(shape.size()), shape.data(),
                                strides.data(), offset));
}

void view_parts(const Scope &x, uint32_t i, plait_tensor *base, DType dtype, Ints shape,
                Ints strides, int64_t offset) {
  max_dims(x, "shape", shape.size());
  char *data = static_cast<char *>(base->dl.data);
  if (data && !contains(shape, 0)) data += offset * dtype.bits / 8;
  plait_tensor *t = nullptr;
  check(x.thread->runtime->tensor_on(x.thread, base->storage, data, dtype, int32_t(shape.size()),
                                     shape.data(), strides.data(), &t));
  t->flags |= PLAIT_TENSOR_VIEW;
  t->base = base->base ? base->base : base;  // as runtime->view tracks it
  plait_retain(t->base);
  const uint64_t unseen = (base->layers | t->base->layers) & x.thread->excluded;
  t->flags |= unseen ? uint64_t(PLAIT_TENSOR_CUT) : base->flags & PLAIT_TENSOR_CUT;
  x.call->out[i] = value(t);
}

}  // namespace plait::ops
