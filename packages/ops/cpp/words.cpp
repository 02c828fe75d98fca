#include "words.hpp"

#include <cstring>
#include <numeric>

#include "calls.hpp"
#include "promotion.hpp"

namespace plait::ops {
namespace {

std::string quoted(const char *argument) { return std::string("`") + argument + "`"; }

// nullopt where the elements of `t`, in order, cannot be reached with one stride for each dimension
// of `shape`
std::optional<Dims> strides_for(const plait_tensor *t, Ints shape) {
  const Ints have = shape_of(t), steps = strides_of(t);
  if (numel(shape) == 0 || have.size() == 0) return contiguous_strides(shape);
  Dims out(shape.size(), 0);
  int64_t at = shape.size() - 1, step = steps[-1], run = 1, left = 1;
  for (int64_t i = have.size() - 1; i >= 0; i--) {
    run *= have[i];
    if (i && (have[i - 1] == 1 || steps[i - 1] == run * step)) continue;  // the run goes on
    while (at >= 0 && (left < run || shape[at] == 1)) {
      out[at] = left * step;
      left *= shape[at--];
    }
    if (left != run) return std::nullopt;
    if (i) {
      step = steps[i - 1];
      run = left = 1;
    }
  }
  return at < 0 ? std::optional<Dims>(out) : std::nullopt;
}

}  // namespace

// ---- validation
// ----------------------------------------------------------------------------------------------------
int64_t wrap_dim(const Scope &x, const char *argument, int64_t dim, Ints shape) {
  const int64_t room = std::max<int64_t>(shape.size(), 1);
  if (dim < -room || dim >= room)
    fail(x, PLAIT_INDEX_ERROR,
         quoted(argument) + " must be in [" + show(-room) + ", " + show(room - 1) + "] for shape " +
             show(shape) + "; got " + show(dim));
  return dim < 0 ? dim + room : dim;
}
int64_t wrap_index(const Scope &x, const char *argument, int64_t index, int64_t size) {
  const int64_t least = minus(0, size);
  if (index < least || index >= size)
    fail(x, PLAIT_INDEX_ERROR,
         quoted(argument) + " must be in [" + show(least) + ", " + show(size - 1) +
             "] for a dimension of size " + show(size) + "; got " + show(index));
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
void fits(const Scope &x, const char *argument, const plait_value &v, DType dtype) {
  if (v.tag == PLAIT_TENSOR || v.tag == PLAIT_BOOL || dtype.code == kDLComplex) return;
  if (v.tag == PLAIT_COMPLEX)
    fail(x, PLAIT_DTYPE_ERROR,
         quoted(argument) + " must be a real number for " + name(dtype) + "; got " + show(v));
  if (dtype.code != kDLInt && dtype.code != kDLUInt) return;
  const int width = dtype.code == kDLUInt ? dtype.bits : dtype.bits - 1;
  const double limit = std::ldexp(1.0, width), low = dtype.code == kDLUInt ? 0 : -limit;
  bool inside = v.tag == PLAIT_INT;
  if (inside) {
    inside = dtype.code == kDLUInt ? v.u.i >= 0 && (width == 64 || v.u.i >> width == 0)
                                   : v.u.i >> width == 0 || v.u.i >> width == -1;
  } else {
    inside = std::trunc(v.u.f) >= low && std::trunc(v.u.f) < limit;
  }
  if (!inside)
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

// ---- shapes
// --------------------------------------------------------------------------------------------------------
int64_t numel(Ints shape) {
  int64_t n = 1;
  for (int64_t size : shape)
    if (__builtin_mul_overflow(n, size, &n)) return contains(shape, 0) ? 0 : INT64_MAX;
  return n;
}
Dims contiguous_strides(Ints shape) {
  Dims out(shape.size(), 0);
  int64_t step = 1;
  for (int64_t i = shape.size() - 1; i >= 0; i--) {
    out[i] = step;
    step = int64_t(uint64_t(step) * uint64_t(std::max<int64_t>(shape[i], 1)));  // of empty shapes
  }
  return out;
}
Dims dense_strides(const plait_tensor *t) {
  const Ints shape = shape_of(t), steps = strides_of(t);
  int64_t order[PLAIT_MAX_DIMS];
  std::iota(order, order + shape.size(), 0);
  for (int64_t i = shape.size() - 1; i >= 0; i--) {
    int64_t at = i;
    for (int64_t j = i + 1; j < shape.size(); j++) {  // expanded dimensions stay where they are
      const int64_t mine = std::abs(steps[order[at]]), other = std::abs(steps[order[j]]);
      if (mine && other && mine > other) break;
      if (!mine || !other || mine == other) continue;
      std::swap(order[at], order[j]);
      at = j;
    }
  }
  Dims out(shape.size(), 0);
  int64_t step = 1;
  for (int64_t k = shape.size() - 1; k >= 0; k--) {
    out[order[k]] = step;
    step *= std::max<int64_t>(shape[order[k]], 1);
  }
  return out;
}
Dims format_strides(const Scope &x, const char *memory_format, Ints shape, Ints preserved) {
  const std::string format = memory_format;
  if (format == "preserve_format") return Dims(preserved);
  if (format == "contiguous_format") return contiguous_strides(shape);
  const int64_t ndim = format == "channels_last" ? 4 : format == "channels_last_3d" ? 5 : 0;
  if (!ndim)
    fail(x, PLAIT_VALUE_ERROR,
         "`memory_format` must be contiguous_format, preserve_format, channels_last or "
         "channels_last_3d; got " +
             format);
  if (shape.size() != ndim)
    fail(x, PLAIT_SHAPE_ERROR,
         "`memory_format` " + format + " requires " + show(ndim) + " dimensions, got shape " +
             show(shape));
  Dims out(ndim, 0);
  out[1] = 1;
  int64_t step = std::max<int64_t>(shape[1], 1);
  for (int64_t i = ndim - 1; i != 1; i--) {
    out[i] = step;
    step = int64_t(uint64_t(step) * uint64_t(std::max<int64_t>(shape[i], 1)));
  }
  out[0] = step;
  return out;
}
bool is_in_format(const Scope &x, const char *memory_format, const plait_tensor *t) {
  if (std::strcmp(memory_format, "contiguous_format") == 0) return is_contiguous(t);
  const Ints shape = shape_of(t), strides = strides_of(t);
  const Dims want = format_strides(x, memory_format, shape, strides);
  for (int64_t i = 0; i < shape.size(); i++)
    if (shape[i] != 1 && strides[i] != want[i]) return false;
  return true;
}
Dims broadcast(const Scope &x, const char *name_a, Ints a, const char *name_b, Ints b) {
  const int64_t n = std::max(a.size(), b.size());
  Dims out;
  for (int64_t i = -n; i < 0; i++) {
    const int64_t p = i + a.size() >= 0 ? a[i] : 1, q = i + b.size() >= 0 ? b[i] : 1;
    if (p != q && p != 1 && q != 1)
      fail(x, PLAIT_SHAPE_ERROR,
           "shapes must broadcast; " + quoted(name_a) + " has " + show(a) + " and " +
               quoted(name_b) + " has " + show(b) + ", which differ in dimension " + show(i));
    out.push(p == 1 ? q : p);
  }
  return out;
}
Dims reduce_dims(const Scope &x, const char *argument, const std::optional<Ints> &dims,
                 Ints shape) {
  Dims out;
  if (!dims || dims->size() == 0) {
    for (int64_t i = 0; i < shape.size(); i++) out.push(i);
    return out;
  }
  for (int64_t dim : *dims) {
    const int64_t at = wrap_dim(x, argument, dim, shape);
    if (contains(out, at))
      fail(x, PLAIT_VALUE_ERROR,
           quoted(argument) + " must not repeat a dimension; got " + show(*dims));
    out.push(at);
  }
  return out;
}
Dims reduced(Ints shape, Ints dims, bool keepdim) {
  Dims out;
  for (int64_t i = 0; i < shape.size(); i++) {
    if (!contains(dims, i))
      out.push(shape[i]);
    else if (keepdim)
      out.push(1);
  }
  return out;
}
Dims infer_size(const Scope &x, const char *argument, Ints size, Ints shape) {
  const int64_t have = numel(shape);
  int64_t known = 1, unknown = 0;
  max_dims(x, argument, size.size());
  for (int64_t n : size) {
    if (n < -1)
      fail(x, PLAIT_SHAPE_ERROR,
           quoted(argument) + " must not hold negative sizes other than one -1; got " + show(size));
    unknown += n == -1;
    if (n != -1 && __builtin_mul_overflow(known, n, &known)) known = INT64_MAX;
  }
  if (contains(size, 0)) known = 0;
  if (unknown > 1)
    fail(x, PLAIT_SHAPE_ERROR, quoted(argument) + " must hold at most one -1; got " + show(size));
  if (unknown && known == 0)
    fail(x, PLAIT_SHAPE_ERROR,
         quoted(argument) + " " + show(size) + " leaves the size of -1 open for shape " +
             show(shape));
  if (unknown ? have % known != 0 : known != have)
    fail(x, PLAIT_SHAPE_ERROR,
         quoted(argument) + " " + show(size) + " must name as many elements as shape " +
             show(shape) + " has, " + show(have));
  Dims out(size.data(), size.size());
  for (int64_t i = 0; unknown && i < out.size(); i++)
    if (out[i] == -1) out[i] = have / known;
  return out;
}
int64_t count_of(const Scope &x, plait_value start, plait_value end, plait_value step, bool whole) {
  plait_value *values[] = {&start, &end, &step};
  bool floats = false, finite = true, fit = true;
  for (const plait_value *v : values) {
    floats |= v->tag == PLAIT_FLOAT;
    finite &= v->tag != PLAIT_COMPLEX && std::isfinite(as_float(*v));
    fit &= v->tag != PLAIT_FLOAT || (v->u.f >= -0x1p63 && v->u.f < 0x1p63);
  }
  std::string a = show(start), b = show(end), s = show(step);
  if (!finite)
    fail(
        x, PLAIT_VALUE_ERROR,
        "`start`, `end` and `step` must be finite real numbers; got " + a + ", " + b + " and " + s);
  if (whole) {
    if (!fit)
      fail(x, PLAIT_VALUE_ERROR,
           "`start`, `end` and `step` must fit in 64 bits; got " + a + ", " + b + " and " + s);
    for (plait_value *v : values)
      if (v->tag == PLAIT_FLOAT) *v = value(int64_t(v->u.f));
    a = show(start), b = show(end), s = show(step);
    floats = false;
  }
  if (as_float(step) == 0) fail(x, PLAIT_VALUE_ERROR, "`step` must not be 0; got " + s);
  const auto behind = [&](auto first, auto last, auto by) {
    return (by > 0 ? last - first : first - last) < 0;
  };
  const auto big = [](const plait_value &v) { return __int128(v.u.i); };
  if (floats ? behind(as_float(start), as_float(end), as_float(step))
             : behind(big(start), big(end), big(step)))
    fail(x, PLAIT_VALUE_ERROR,
         "`step` " + s + " must lead from `start` " + a + " towards `end` " + b);
  double count = floats ? std::ceil((as_float(end) - as_float(start)) / as_float(step)) : 0;
  __int128 exact = 0;
  if (!floats) exact = (big(end) - big(start) + big(step) + (step.u.i > 0 ? -1 : 1)) / big(step);
  if (count >= 0x1p63 || exact > INT64_MAX)
    fail(x, PLAIT_SHAPE_ERROR,
         "`start` " + a + ", `end` " + b + " and `step` " + s + " name 2**63 elements or more");
  return floats ? int64_t(count) : int64_t(exact);
}
int64_t slice_start(const std::optional<int64_t> &start, int64_t step, int64_t size) {
  const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
  if (!start) return step < 0 ? high : low;
  return std::clamp(*start < 0 ? *start + size : *start, low, high);
}
int64_t slice_count(const std::optional<int64_t> &start, const std::optional<int64_t> &end,
                    int64_t step, int64_t size) {
  const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size,
                first = slice_start(start, step, size);
  const int64_t last =
      !end ? (step < 0 ? low : high) : std::clamp(*end < 0 ? *end + size : *end, low, high);
  if (step > 0) return last > first ? (last - first - 1) / step + 1 : 0;
  return first > last ? (first - last - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1 : 0;
}
void gather_check(const Scope &x, const char *name, Ints shape, int64_t dim, const char *index_name,
                  const plait_tensor *index) {
  const int64_t at = wrap_dim(x, "dim", dim, shape);
  require(x, index_name, index->dl.dtype, "integer");
  const Ints have = shape_of(index);
  bool fits = have.size() == shape.size();
  for (int64_t d = 0; fits && d < have.size(); d++) fits = d == at || have[d] <= shape[d];
  if (!fits)
    fail(x, PLAIT_SHAPE_ERROR,
         quoted(index_name) + " of shape " + show(have) + " must have the dimensions of " +
             quoted(name) + " of shape " + show(shape) + " and, except along " + show(at) +
             ", must not be larger");
}
Dims index_shape(const Scope &x, const char *argument, Ints shape, Tensors indices) {
  if (indices.size() > shape.size())
    fail(x, PLAIT_INDEX_ERROR,
         "too many indices for `self` of shape " + show(shape) + ": got " + show(indices.size()));
  Dims common, rest;
  int64_t first = -1, last = -1, count = 0;
  for (int64_t i = 0; i < shape.size(); i++) {
    if (i >= indices.size() || !indices[i]) {
      rest.push(shape[i]);
      continue;
    }
    require(x, argument, indices[i]->dl.dtype, "integer");
    const std::string name = std::string(argument) + "[" + show(i) + "]";
    common = broadcast(x, argument, common, name.c_str(), shape_of(indices[i]));
    if (first < 0) first = i;
    last = i;
    count++;
  }
  if (count == 0) return rest;
  const int64_t lead = last - first + 1 == count ? first : 0;  // what stands apart comes first
  max_dims(x, argument, rest.size() + common.size());
  return concat(concat(part(rest, 0, lead), common), part(rest, lead, rest.size()));
}
int64_t windows(const Scope &x, Ints shape, int64_t at, int64_t size, int64_t stride,
                int64_t padding, int64_t dilation, bool ceil) {
  const struct {
    const char *name;
    int64_t value, least;
  } all[] = {{"kernel_size", size, 1},
             {"stride", stride, 1},
             {"padding", padding, 0},
             {"dilation", dilation, 1}};
  for (const auto &each : all)  // so small that nothing below overflows
    if (each.value < each.least || each.value >= (int64_t(1) << 31))
      fail(x, PLAIT_VALUE_ERROR,
           quoted(each.name) + " must be in [" + show(each.least) + ", 2**31); got " +
               show(each.value));
  const int64_t span = dilation * (size - 1) + 1;
  const __int128 room = __int128(shape[at]) + 2 * padding - span;
  if (room < 0)
    fail(x, PLAIT_SHAPE_ERROR,
         "windows of " + show(span) + " elements must fit into the padded dimension " + show(at) +
             " of shape " + show(shape) + ", which has " + show(shape[at] + 2 * padding));
  const auto count = int64_t((ceil ? room + stride - 1 : room) / stride + 1);
  return ceil && __int128(count - 1) * stride >= __int128(shape[at]) + padding ? count - 1 : count;
}
bool viewable(const plait_tensor *t, Ints shape) { return strides_for(t, shape).has_value(); }
Dims view_strides(const plait_tensor *t, Ints shape) {
  return strides_for(t, shape).value_or(Dims(shape.size(), 0));
}

// ---- dtypes
// --------------------------------------------------------------------------------------------------------
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

// ---- values
// --------------------------------------------------------------------------------------------------------
int64_t item(const Scope &x, const plait_tensor *t) {
  if (t->dl.device.device_type != kDLCPU || !same(t->dl.dtype, dtype::int64) || numel(t) != 1)
    fail(x, PLAIT_VALUE_ERROR,
         "the shape of the result depends on values, which a tensor on device meta does not have");
  return *static_cast<const int64_t *>(t->dl.data);
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
