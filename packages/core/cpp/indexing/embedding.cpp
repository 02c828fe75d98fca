// embedding: rows of a table by their numbers, and its derivative.
#include "indexing/index_walk.h"
#include "kernel/dense.h"

namespace plait::core {
namespace {

plait_status check_rows(const plait_call *c, const int64_t *index, int64_t count, int64_t n) {
  for (int64_t i = 0; i < count; i++)
    if (index[i] < 0 || index[i] >= n)
      return PLAIT_FAIL(c, PLAIT_INDEX_ERROR,
                        "`indices` must be in [0, %lld); got %lld. index out of range in self",
                        (long long)n, (long long)index[i]);
  return PLAIT_OK;
}

// embedding(weight, indices, padding_idx)
plait_status embedding(plait_call *c) {
  const DLTensor *weight = tensor(c, 0), *indices = tensor(c, 1);
  DLTensor *out = result(c);
  Dense<int64_t> at;
  PLAIT_TRY(at.take(c, indices));
  const Along a(weight, 0);
  PLAIT_TRY(check_rows(c, at, numel(indices), a.n));
  if (numel(out) == 0) return PLAIT_OK;
  PLAIT_BY_SIZE(size_of(kind(weight->dtype)), {
    Dense<T> from;
    PLAIT_TRY(from.take(c, weight));
    return pick<T>(c, from, a, at, numel(indices), data<T>(out));
  })
  return PLAIT_OK;
}

// embedding_backward(grad, indices, num_weights, padding_idx): each range of rows of the result
// reads all indices and adds up its own rows in order, so threads need no locks and the result does
// not depend on them.
plait_status embedding_backward(plait_call *c) {
  const DLTensor *grad = tensor(c, 0), *indices = tensor(c, 1);
  DLTensor *out = result(c);
  Dense<int64_t> at;
  PLAIT_TRY(at.take(c, indices));
  const int64_t rows = integer(c, 2), count = numel(indices), skip = integer(c, 3, -1);
  PLAIT_TRY(check_rows(c, at, count, rows));
  if (numel(out) == 0) return PLAIT_OK;
  const int64_t width = numel(out) / rows;
  const int64_t *where = at;
  const int64_t parts = numel(out) + count * width <= 2 * kSerial ? 1 : 4,
                each = ceil_div(rows, parts);
  PLAIT_FLOATING(kind(out->dtype), {
    Dense<T> g;
    PLAIT_TRY(g.take(c, grad));
    const T *from = g;
    T *to = data<T>(out);
    parallel(c, parts, [&](int64_t part) {
      const int64_t begin = part * each < rows ? part * each : rows,
                    end = begin + each < rows ? begin + each : rows;
      memset(to + begin * width, 0, size_t((end - begin) * width) * sizeof(T));
      for (int64_t i = 0; i < count; i++) {
        if (where[i] < begin || where[i] >= end || where[i] == skip) continue;
        T *row = to + where[i] * width;
        for (int64_t j = 0; j < width; j++) row[j] += from[i * width + j];
      }
    });
  })
  return PLAIT_OK;
}

PLAIT_KERNEL("embedding", embedding);
PLAIT_KERNEL("embedding_backward", embedding_backward);

}  // namespace
}  // namespace plait::core
