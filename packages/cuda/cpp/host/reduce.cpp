#include "host/reduce.h"

#include <initializer_list>

namespace plait::cuda {
namespace {

constexpr int64_t kLeastPiece = 8192;  // elements of a piece at least, where a result has several
constexpr int64_t kBlocks = 1024;  // blocks of a reduction, where its size allows it
constexpr int64_t kMostBlocks = 1 << 20;

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }
// The smallest power of 2 that is not less than n, at most `most`.
int power_of_two(int64_t n, int most) {
  int p = 1;
  while (p < n && p < most) p *= 2;
  return p;
}

// Whether elements can be read 16 bytes at a time along the reduced dimensions.
bool is_vector(const Reduction &r, const ReduceArgs &a, int item) {
  const int64_t width = 16 / item;
  const Axes &in = r.reduced;
  if (in.ndim == 0 || in.stride[in.ndim - 1] != 1 || in.count < width) return false;
  for (const void *data : {a.data, a.other, a.third})
    if (reinterpret_cast<uintptr_t>(data) % 16) return false;
  if (in.ndim > 1 && in.size[in.ndim - 1] % width) return false;
  for (int d = 0; d + 1 < in.ndim; d++)
    if (in.stride[d] % width) return false;
  for (int d = 0; d < r.kept.ndim; d++)
    if (r.kept.stride[d] % width) return false;
  return true;
}

// Whether neighbouring threads take neighbouring results.
bool by_columns(const Reduction &r, int item) {
  const Axes &kept = r.kept, &in = r.reduced;
  if (!kept.ndim || !in.ndim || in.count < 2) return false;
  const int64_t beside = kept.stride[kept.ndim - 1];
  if (magnitude(beside) >= magnitude(in.stride[in.ndim - 1])) return false;
  return kept.ndim == 1 || kept.size[kept.ndim - 1] * item >= 32;
}

// Chooses the lanes of a result and the pieces.
void cut(int item, ReduceArgs *a) {
  constexpr int kColumnSteps = 8;  // elements that a thread reads at once
  if (a->columns) {
    const int beside = power_of_two(a->results, 32);
    a->lanes = power_of_two(ceil_div(a->n, kColumnSteps), kReduceThreads / beside);
  } else {
    const int64_t width = a->is_vector ? 16 / item : 1;
    const int64_t reads = ceil_div(a->n, width);
    // several reads for each lane where there are many results, else as many lanes as reads
    const int64_t wanted = a->results >= 4096 && reads > kWarp ? ceil_div(reads, 8) : reads;
    a->lanes = power_of_two(wanted, kReduceThreads);
    if (a->lanes < kWarp) a->lanes = power_of_two(reads, kWarp);
  }
  const int64_t beside = kReduceThreads / a->lanes, groups = ceil_div(a->results, beside);
  int64_t pieces = groups * 2 <= kBlocks ? ceil_div(kBlocks, groups) : 1;
  const int64_t least = a->columns ? int64_t(a->lanes) * kColumnSteps * 2 : kLeastPiece;
  if (pieces > a->n / least) pieces = a->n / least;
  if (pieces < 1) pieces = 1;
  a->piece = pieces == 1 ? a->n : ceil_div(ceil_div(a->n, pieces), 64) * 64;
  a->pieces = a->n ? int32_t(ceil_div(a->n, a->piece)) : 1;
}

}  // namespace

void Axes::push(int64_t n, int64_t s) {
  count *= n;
  if (n <= 1) return;
  if (ndim && stride[ndim - 1] == s * n) {
    size[ndim - 1] *= n;
    stride[ndim - 1] = s;
    return;
  }
  size[ndim] = n;
  stride[ndim++] = s;
}

uint64_t dims_mask(const plait_call *c, int i, int ndim) {
  const plait_value &v = c->in[i];
  if (v.tag == PLAIT_NONE || (v.tag == PLAIT_INTS && v.n == 0) || ndim == 0) return all_dims(ndim);
  if (v.tag != PLAIT_INTS) return uint64_t(1) << wrapped(v.u.i, ndim);
  uint64_t mask = 0;
  for (uint32_t k = 0; k < v.n; k++) mask |= uint64_t(1) << wrapped(v.u.is[k], ndim);
  return mask;
}

void describe(const DLTensor *t, uint64_t mask, bool in_order, Reduction *r) {
  int order[PLAIT_MAX_DIMS], n = 0;
  for (int d = 0; d < t->ndim; d++) {
    if (!(mask >> d & 1)) {
      r->kept.push(t->shape[d], t->strides[d]);
      continue;
    }
    int e = n++;
    for (; e > 0 && !in_order && magnitude(t->strides[order[e - 1]]) < magnitude(t->strides[d]);
         e--)
      order[e] = order[e - 1];
    order[e] = d;
  }
  for (int i = 0; i < n; i++) r->reduced.push(t->shape[order[i]], t->strides[order[i]]);
}

bool make_walk(const Axes &axes, Walk<1> *out) {
  if (axes.ndim > kWalkDims) return false;
  out->dims = axes.ndim;
  out->is_large = axes.count >= (int64_t(1) << 31);
  for (int d = 0; d < axes.ndim; d++) {
    const int from = axes.ndim - 1 - d;
    out->size[d] = axes.size[from];
    out->by[d] = divider(axes.size[from]);
    out->stride[d][0] = axes.stride[from];
  }
  return true;
}

plait_status plan_reduction(const plait_call *c, const DLTensor *t, uint64_t mask, bool in_order,
                            ReduceArgs *a) {
  const int item = size_of(kind(t->dtype));
  if (!item) return PLAIT_DECLINE;
  Reduction r;
  describe(t, mask, in_order, &r);
  a->data = t->data;
  a->results = r.kept.count, a->n = a->total = r.reduced.count;
  if (!a->results) return PLAIT_OK;
  if (!make_walk(r.kept, &a->kept) || !make_walk(r.reduced, &a->reduced))
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                      "a reduction of more than %d dimensions that cannot be merged has no kernel",
                      kWalkDims);
  a->step = r.reduced.ndim ? r.reduced.stride[r.reduced.ndim - 1] : 1;
  a->columns = by_columns(r, item);
  a->is_vector = !a->columns && is_vector(r, *a, item);
  cut(item, a);
  return PLAIT_OK;
}

ReduceArgs join_of_pieces(ReduceArgs a) {
  a.n = a.piece = a.pieces;
  a.pieces = 1, a.joins = 1, a.columns = 0;
  a.lanes = power_of_two(a.n, kReduceThreads);
  return a;
}

Grid reduction_grid(const ReduceArgs &a) {
  const int64_t groups = ceil_div(a.results, kReduceThreads / a.lanes);
  return Grid(groups < kMostBlocks ? groups : kMostBlocks, a.pieces);
}

}  // namespace plait::cuda
