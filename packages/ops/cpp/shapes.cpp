// The words about shapes, strides, windows and slices.
#include <cstring>
#include <numeric>
#include <string_view>

#include "words.hpp"

namespace plait::ops {
namespace {

// nullopt where the elements of `t`, in order, cannot be reached with one stride for each dimension
// of `shape`
std::optional<Dims> strides_for(const plait_tensor *t, Ints shape) {
  const Ints have = shape_of(t), steps = strides_of(t);
  if (numel(shape) == 0 || have.size() == 0) return contiguous_strides(shape);
  Dims out(shape.size(), 0);
  int64_t at = shape.size() - 1, step = steps[-1], run = 1, left = 1;
  for (int64_t i = have.size() - 1; i >= 0; i--) {
    run *= have[i];
    if (i && (have[i - 1] == 1 || steps[i - 1] == run * step)) continue;  // the run continues
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
    // strides of empty shapes
    step = int64_t(uint64_t(step) * uint64_t(std::max<int64_t>(shape[i], 1)));
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
      const int64_t own = std::abs(steps[order[at]]), other = std::abs(steps[order[j]]);
      if (own && other && own > other) break;
      if (!own || !other || own == other) continue;
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
  const std::string_view format = memory_format;
  if (format == "preserve_format") return Dims(preserved);
  if (format == "contiguous_format") return contiguous_strides(shape);
  const int64_t ndim = format == "channels_last" ? 4 : format == "channels_last_3d" ? 5 : 0;
  if (!ndim)
    fail(x, PLAIT_VALUE_ERROR,
         "`memory_format` must be contiguous_format, preserve_format, channels_last or "
         "channels_last_3d; got " +
             std::string(format));
  if (shape.size() != ndim)
    fail(x, PLAIT_SHAPE_ERROR,
         "`memory_format` " + std::string(format) + " requires " + show(ndim) +
             " dimensions, got shape " + show(shape));
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
         quoted(argument) + " must not hold -1 and 0, as any size would do for -1; got " +
             show(size) + " for shape " + show(shape));
  if (unknown ? have % known != 0 : known != have)
    fail(x, PLAIT_SHAPE_ERROR,
         quoted(argument) + " " + show(size) + " must have as many elements as shape " +
             show(shape) + ", " + show(have));
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
  const int64_t lead = last - first + 1 == count ? first : 0;  // larger strides come first
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
  for (const auto &each : all)  // small enough that the code below does not overflow
    if (each.value < each.least || each.value >= (int64_t(1) << 31))
      fail(x, PLAIT_VALUE_ERROR,
           quoted(each.name) + " must be in [" + show(each.least) + ", 2**31); got " +
               show(each.value));
  const int64_t span = dilation * (size - 1) + 1;
  const __int128 room = __int128(shape[at]) + 2 * padding - span;
  const __int128 steps = ceil ? room + stride - 1 : room;
  auto count = int64_t(steps < 0 ? 0 : steps / stride + 1);
  if (ceil && __int128(count - 1) * stride >= __int128(shape[at]) + padding) count--;
  if (room < 0 && count < 1)
    fail(x, PLAIT_SHAPE_ERROR,
         "windows of " + show(span) + " elements must fit into the padded dimension " + show(at) +
             " of shape " + show(shape) + ", which has " + show(shape[at] + 2 * padding));
  return count;
}
bool viewable(const plait_tensor *t, Ints shape) { return strides_for(t, shape).has_value(); }
Dims view_strides(const plait_tensor *t, Ints shape) {
  return strides_for(t, shape).value_or(Dims(shape.size(), 0));
}

}  // namespace plait::ops
