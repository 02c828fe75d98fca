// cat: every input is copied into its slice of the result.
#include "kernel/copy.h"
#include "kernel/copy_rows.h"

namespace plait::core {
namespace {

bool is_left_out(const DLTensor *t) {  // it can be joined with any other, as in PyTorch
  return t->ndim == 1 && t->shape[0] == 0;
}

constexpr int64_t kMostBytes = 16384;  // of a row
constexpr int64_t kPart = 2048;        // bytes of the result

// Contiguous inputs and rows of at most kMostBytes bytes: some rows of each input in turn, so that
// a part of the result is written while it is in the cache.
void join_rows(const plait_call *c, char *to, int64_t dim, int64_t rows, int64_t bytes) {
  const int64_t step = bytes / result(c)->shape[dim];
  const int64_t grain = bytes < kPart ? kPart / bytes : 1;
  parallel_ranges(
      c, ceil_div(rows, grain), 65536 / (grain * bytes), [&](int64_t first, int64_t last) {
        for (int64_t part = first; part < last; part++) {
          const int64_t begin = part * grain, count = rows - begin < grain ? rows - begin : grain;
          char *own = to + begin * bytes;
          for (uint32_t i = 0; i < c->in[0].n; i++) {
            const DLTensor *t = &c->in[0].u.ts[i]->dl;
            if (is_left_out(t)) continue;
            const int64_t n = t->shape[dim] * step;
            move_rows(own, bytes, data<char>(t) + begin * n, n, count, n);
            own += n;
          }
        }
      });
}

plait_status cat(plait_call *c) {
  const DLTensor *out = result(c);
  const int64_t dim = wrapped(integer(c, 1), out->ndim);
  const int item = size_of(kind(out->dtype));
  int64_t rows = 1;
  for (int64_t d = 0; d < dim; d++) rows *= out->shape[d];
  const int64_t bytes = numel(out) > 0 ? numel(out) / rows * item : 0;
  bool contiguous = rows > 1 && bytes > 0 && bytes <= kMostBytes && is_contiguous(out);
  for (uint32_t i = 0; i < c->in[0].n && contiguous; i++)
    contiguous = is_contiguous(&c->in[0].u.ts[i]->dl);
  if (contiguous) {
    join_rows(c, data<char>(out), dim, rows, bytes);
    return PLAIT_OK;
  }
  int64_t shape[PLAIT_MAX_DIMS], at = 0;
  memcpy(shape, out->shape, size_t(out->ndim) * sizeof(int64_t));
  const int64_t step = out->strides[dim] * item;
  for (uint32_t i = 0; i < c->in[0].n; i++) {
    const DLTensor *t = &c->in[0].u.ts[i]->dl;
    if (is_left_out(t)) continue;
    DLTensor slice = *out;
    slice.shape = shape;
    shape[dim] = t->shape[dim];
    slice.data = data<char>(out) + at * step;
    PLAIT_TRY(copy(c, &slice, t));
    at += t->shape[dim];
  }
  return PLAIT_OK;
}

PLAIT_KERNEL("cat", cat);

}  // namespace
}  // namespace plait::core
