// Copies: any layout to any layout, any dtype to any dtype.
#include "kernel/copy.h"

#include "kernel/cast.h"
#include "kernel/copy_rows.h"
#include "kernel/transpose.h"

namespace plait::core {
namespace {

// The dimension along which the source is contiguous, if it isn't the innermost one of the target;
// else -1.
int crossed(const Plan &p, int item) {
  const int last = p.ndim - 1;
  if (last < 1 || p.stride[0][last] != item || p.stride[1][last] == item || p.size[last] < 2)
    return -1;
  for (int d = 0; d < last; d++)
    if (p.stride[1][d] == item && p.size[d] >= 4 && p.stride[0][d] % item == 0 &&
        p.stride[1][last] % item == 0)
      return d;
  return -1;
}

// Copies rectangles of at most 64 elements along the target's last dimension; along the source's
// contiguous one, `d`, they have as many as make 4096 together.
void copy_crossed(const plait_call *c, const Plan &p, int d, int item) {
  const int last = p.ndim - 1;
  const int64_t columns = p.size[d], rows = p.size[last];
  const int64_t height = rows < 64 ? rows : 64, width = 4096 / height;
  const int64_t across = ceil_div(columns, width), down = ceil_div(rows, height);
  Plan outer;  // the other dimensions
  outer.operands = 2;
  outer.data[0] = p.data[0];
  outer.data[1] = p.data[1];
  for (int e = 0; e < last; e++) {
    if (e == d) continue;
    outer.size[outer.ndim] = p.size[e];
    outer.stride[0][outer.ndim] = p.stride[0][e];
    outer.stride[1][outer.ndim++] = p.stride[1][e];
    outer.numel *= p.size[e];
  }
  const int64_t pieces = outer.numel * across * down;
  const int64_t grain = p.numel <= kSerial ? pieces : ceil_div(pieces * kSerial, p.numel);
  parallel_ranges(c, pieces, grain, [&](int64_t begin, int64_t end) {
    int64_t at[PLAIT_MAX_DIMS + 1];
    char *q[kMaxOperands];
    for (int64_t i = begin; i < end; i++) {
      const int64_t r = i % down * height, k = i / down % across * width;
      outer.seek(i / down / across, at, q);
      transpose_block(q[0] + r * item + k * p.stride[0][d], p.stride[0][d] / item,
                      q[1] + r * p.stride[1][last] + k * item, p.stride[1][last] / item,
                      rows - r < height ? rows - r : height,
                      columns - k < width ? columns - k : width, item);
    }
  });
}

void copy_same(const plait_call *c, Plan &p, int item) {
  if (p.numel == 0) return;
  p.finish();
  const int d = crossed(p, item);
  if (d >= 0) return copy_crossed(c, p, d, item);
  copy_rows(c, p, item);
}

// A complex tensor as its real (part 0) or imaginary (part 1) numbers.
struct Part {
  DLTensor t;
  int64_t strides[PLAIT_MAX_DIMS];
  Part(const DLTensor *from, int part) : t(*from) {
    t.dtype = DLDataType{kDLFloat, uint8_t(from->dtype.bits / 2), 1};
    t.data = static_cast<char *>(from->data) + part * t.dtype.bits / 8;
    for (int d = 0; d < t.ndim; d++) strides[d] = 2 * from->strides[d];
    t.strides = strides;
  }
};

plait_status cast_real(const plait_call *c, const DLTensor *to, const DLTensor *from) {
  const Kind a = kind(from->dtype), b = kind(to->dtype);
  const CastSteps steps = cast_steps(a, b);
  Plan p;
  p.add(to, size_of(b));
  p.add(from, size_of(a));
  p.finish();
  const Inner inner{run_cast, &steps, {size_of(b), size_of(a)}};
  run_elementwise(c, p, inner);
  return PLAIT_OK;
}

plait_status cast_complex(const plait_call *c, const DLTensor *to, const DLTensor *from) {
  const Kind a = kind(from->dtype), b = kind(to->dtype);
  const bool complex_from = a == C64 || a == C128, complex_to = b == C64 || b == C128;
  if (b == Bool) {
    Plan p;
    p.add(to, 1);
    p.add(from, size_of(a));
    p.finish();
    const Inner inner{complex_to_bool(a), nullptr, {1, size_of(a)}};
    run_elementwise(c, p, inner);
    return PLAIT_OK;
  }
  for (int part = 0; part < (complex_to ? 2 : 1); part++) {
    const Part target(to, part), source(from, complex_from ? part : 0);
    const DLTensor *real_to = complex_to ? &target.t : to,
                   *real_from = complex_from ? &source.t : from;
    if (part == 1 && !complex_from) {
      plait_value zero{PLAIT_INT, 0, {0}};
      PLAIT_TRY(fill(c, real_to, zero));
    } else {
      PLAIT_TRY(cast_real(c, real_to, real_from));
    }
  }
  return PLAIT_OK;
}

}  // namespace

void copy_strided(const plait_call *c, char *to, const int64_t *to_strides, const char *from,
                  const int64_t *from_strides, const int64_t *shape, int ndim, int item) {
  DLTensor a{}, b{};
  a.data = to;
  b.data = const_cast<char *>(from);
  a.ndim = b.ndim = ndim;
  a.shape = b.shape = const_cast<int64_t *>(shape);
  a.strides = const_cast<int64_t *>(to_strides);
  b.strides = const_cast<int64_t *>(from_strides);
  Plan p;
  p.add(&a, item);
  p.add(&b, item);
  copy_same(c, p, item);
}

namespace {
bool is_same(const DLTensor *a, const DLTensor *b) {
  if (a->data != b->data || a->ndim != b->ndim) return false;
  for (int d = 0; d < a->ndim; d++)
    if (a->shape[d] != b->shape[d] || (a->shape[d] > 1 && a->strides[d] != b->strides[d]))
      return false;
  return true;
}
}  // namespace

plait_status copy(const plait_call *c, const DLTensor *to, const DLTensor *from) {
  const Kind a = kind(from->dtype), b = kind(to->dtype);
  if (a == Unknown || b == Unknown) return PLAIT_DECLINE;
  if (a != b)
    return a == C64 || a == C128 || b == C64 || b == C128 ? cast_complex(c, to, from)
                                                          : cast_real(c, to, from);
  const int item = size_of(a);
  if (is_same(to, from)) return PLAIT_OK;
  if (numel(to) == 1) {
    memcpy(to->data, from->data, size_t(item));
    return PLAIT_OK;
  }
  Plan p;
  p.add(to, item);
  p.add(from, item);
  copy_same(c, p, item);
  return PLAIT_OK;
}

}  // namespace plait::core
