#include "reduction/reduce.h"

#include "kernel/copy.h"

namespace plait::core {
namespace {

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

// A dense copy of t as kind `to`, with the reduced dimensions last.
plait_status rearrange(const plait_call *c, const DLTensor *t, uint64_t mask, Kind to,
                       DLDataType dtype, Workspace *space, Reduction *r) {
  PLAIT_TRY(space->take(c, uint64_t(numel(t)) * uint64_t(size_of(to))));
  int64_t shape[PLAIT_MAX_DIMS], from[PLAIT_MAX_DIMS], dense[PLAIT_MAX_DIMS];
  int n = 0;
  for (int last = 0; last < 2; last++)
    for (int d = 0; d < t->ndim; d++)
      if (int(mask >> d & 1) == last) {
        shape[n] = t->shape[d];
        from[n++] = t->strides[d];
      }
  int64_t step = 1;
  for (int d = n - 1; d >= 0; d--) {
    dense[d] = step;
    step *= shape[d];
  }
  DLTensor source = *t, target = *t;
  source.shape = target.shape = shape;
  source.strides = from;
  target.strides = dense;
  target.dtype = dtype;
  target.data = space->as<char>();
  PLAIT_TRY(copy(c, &target, &source));
  const int kept = n - __builtin_popcountll(mask);
  describe(&target, n == kept ? 0 : ~uint64_t(0) << kept, r);
  return PLAIT_OK;
}

DLDataType dtype_of(Kind k, DLDataType own) {
  switch (k) {
    case Bool: return {kDLBool, 8, 1};
    case F32: return {kDLFloat, 32, 1};
    case F64: return {kDLFloat, 64, 1};
    case I64: return {kDLInt, 64, 1};
    case I32: return {kDLInt, 32, 1};
    case U8: return {kDLUInt, 8, 1};
    default: return own;
  }
}

}  // namespace

void Axes::push(int64_t n, int64_t s) {
  count *= n;
  if (n == 1) return;
  if (ndim && stride[ndim - 1] == s * n) {
    size[ndim - 1] *= n;
    stride[ndim - 1] = s;
    return;
  }
  size[ndim] = n;
  stride[ndim++] = s;
}

void describe(const DLTensor *t, uint64_t mask, Reduction *r) {
  r->data = static_cast<const char *>(t->data);
  int order[PLAIT_MAX_DIMS], n = 0;
  for (int d = 0; d < t->ndim; d++) {
    if (!(mask >> d & 1)) {
      r->kept.push(t->shape[d], t->strides[d]);
    } else {
      int e = n++;
      for (; e > 0 && magnitude(t->strides[order[e - 1]]) < magnitude(t->strides[d]); e--)
        order[e] = order[e - 1];
      order[e] = d;
    }
  }
  for (int i = 0; i < n; i++) r->reduced.push(t->shape[order[i]], t->strides[order[i]]);
}

bool is_in_order(const DLTensor *t, uint64_t mask) {
  int64_t before = INT64_MAX;
  for (int d = 0; d < t->ndim; d++) {
    if (!(mask >> d & 1) || t->shape[d] == 1) continue;
    if (t->strides[d] > before || t->strides[d] < 0) return false;
    before = t->strides[d];
  }
  return true;
}

uint64_t dims_mask(const plait_call *c, int i, int ndim) {
  const plait_value &v = c->in[i];
  if (v.tag == PLAIT_NONE || (v.tag == PLAIT_INTS && v.n == 0) || ndim == 0) return all_dims(ndim);
  if (v.tag != PLAIT_INTS) return uint64_t(1) << wrapped(v.u.i, ndim);
  uint64_t mask = 0;
  for (uint32_t k = 0; k < v.n; k++) mask |= uint64_t(1) << wrapped(v.u.is[k], ndim);
  return mask;
}

plait_status prepare(const plait_call *c, const DLTensor *t, uint64_t mask, Kind to, Layout layout,
                     Workspace *space, Reduction *r) {
  const Kind own = kind(t->dtype);
  if (own == Unknown) return PLAIT_DECLINE;
  const DLDataType dtype = own == to ? t->dtype : dtype_of(to, t->dtype);
  if (kind(dtype) != to) return PLAIT_DECLINE;
  if (own != to) return rearrange(c, t, mask, to, dtype, space, r);
  describe(t, mask, r);
  bool good = layout == Layout::kAny || r->reduced.count <= 1 || r->reduced.inner_stride() == 1;
  if (layout == Layout::kRow) good &= r->reduced.ndim <= 1 && is_in_order(t, mask);
  if (good) return PLAIT_OK;
  r->kept = r->reduced = Axes();
  return rearrange(c, t, mask, to, dtype, space, r);
}

}  // namespace plait::core
