// Reading and adding along one dimension by indices: index_select, index_add, gather.
#include "indexing/index_walk.h"
#include "kernel/dense.h"
#include "kernel/indices.h"
#include "pointwise/math.h"

namespace plait::core {
namespace {

// index_select(self, dim, index)
plait_status index_select(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *index = tensor(c, 2);
  DLTensor *out = result(c);
  const Along a(in, dim_of(c, 1, in));
  PLAIT_TRY(check_indices(c, "index", index, a.n));
  if (numel(out) == 0) return PLAIT_OK;
  Dense<int64_t> at;
  PLAIT_TRY(at.take(c, index));
  PLAIT_BY_SIZE(size_of(kind(in->dtype)), {
    Dense<T> from;
    PLAIT_TRY(from.take(c, in));
    return pick<T>(c, from, a, at, numel(index), data<T>(out));
  })
  return PLAIT_OK;
}

constexpr int64_t kShort = 64;  // elements of a row from which on runs of rows do not pay

// index_add(self, dim, index, source, alpha): in order
plait_status index_add(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *index = tensor(c, 2), *source = tensor(c, 3);
  DLTensor *out = result(c);
  const Kind k = kind(in->dtype);
  const Along a(in, dim_of(c, 1, in));
  PLAIT_TRY(check_indices(c, "index", index, a.n));
  PLAIT_TRY(copy(c, out, in));
  Dense<int64_t> at;
  PLAIT_TRY(at.take(c, index));
  const int64_t count = numel(index);
  alignas(16) char alpha[16] = {};
  store_number(k, c->in[4], alpha);
  auto run = [&](auto zero) -> plait_status {
    using T = decltype(zero);
    using W = scalar::math::wide<T>;
    Dense<T> from;
    PLAIT_TRY(from.take(c, source));
    const W factor = W(*reinterpret_cast<const T *>(alpha));
    T *to = data<T>(out);
    const T *add = from;
    const int64_t *where = at;
    const auto add_rows = [&](int64_t o, int64_t k, int64_t i, int64_t n) {
      T *row = to + (o * a.n + k) * a.inner;
      const T *more = add + (o * count + i) * a.inner;
      for (int64_t j = 0; j < n * a.inner; j++) row[j] = T(W(row[j]) + factor * W(more[j]));
    };
    const int64_t grain = kSerial / (count * a.inner + 1) + 1;
    if (a.inner < kShort && has_runs(where, count)) {
      IndexRuns runs;
      PLAIT_TRY(runs.read(c, where, count, a.n, count));
      parallel_ranges(c, a.outer, grain, [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; o++)
          for (int64_t r = 0; r < runs.count(); r++)
            add_rows(o, runs[r].first, runs[r].at, runs[r].length);
      });
      return PLAIT_OK;
    }
    const bool plain = !any_negative(where, count);
    parallel_ranges(c, a.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; o++) {
        T *rows = to + o * a.n;
        const T *more = add + o * count;
        if (a.inner > 1) {
          for (int64_t i = 0; i < count; i++) add_rows(o, from_start(where[i], a.n), i, 1);
        } else if (plain) {
          for (int64_t i = 0; i < count; i++)
            rows[where[i]] = T(W(rows[where[i]]) + factor * W(more[i]));
        } else {
          for (int64_t i = 0; i < count; i++) {
            T &sum = rows[from_start(where[i], a.n)];
            sum = T(W(sum) + factor * W(more[i]));
          }
        }
      }
    });
    return PLAIT_OK;
  };
  if (k == Bool) return run(bool());
  if (is_complex_kind(k)) PLAIT_COMPLEX(k, return run(T()))
  PLAIT_NUMERIC(k, return run(T()))
  return PLAIT_OK;
}

// Along the last dimension, where the elements of all tensors lie side by side: each block of
// indices, of a part of a row or of some rows, is checked just before it is used, while it is in
// the cache. Returns whether all were in range.
template <class T>
bool gather_rows(const plait_call *c, const DLTensor *in, const DLTensor *index, T *to) {
  constexpr int64_t kBlock = 1024;
  const int last = in->ndim - 1;
  const int64_t n = in->shape[last], count = index->shape[last];
  const int64_t *where = data<int64_t>(index);
  bool fit = true;
  parallel_ranges(c, numel(index), kSerial, [&](int64_t begin, int64_t end) {
    Counter row(last, index->shape, in->strides);
    row.seek(begin / count);
    int64_t left = count - begin % count;  // of the row
    for (int64_t i = begin; i < end;) {
      const int64_t block = least(i + kBlock, end);
      if (!all_within(reinterpret_cast<const char *>(where + i), block - i, 8, n))
        return __atomic_store_n(&fit, false, __ATOMIC_RELAXED);
      const bool plain = !any_negative(where + i, block - i);
      while (i < block) {
        const T *from = data<T>(in) + row.offset;
        const int64_t stop = least(i + left, block);
        left -= stop - i;
        if (plain)
          for (; i < stop; i++) to[i] = from[where[i]];
        for (; i < stop; i++) to[i] = from[from_start(where[i], n)];
        if (left > 0) continue;
        left = count;
        row.next();
      }
    }
  });
  return fit;
}

bool lies_in_rows(const DLTensor *in, const DLTensor *index, int64_t dim) {
  return in->ndim > 0 && dim == in->ndim - 1 && in->strides[dim] == 1 && is_contiguous(index);
}

// gather(self, dim, index)
plait_status gather(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *index = tensor(c, 2);
  DLTensor line = *in;  // a 0-d tensor counts as a vector of one element
  int64_t one = 1;
  if (in->ndim == 0 && index->ndim == 1) {
    line.ndim = 1;
    line.shape = line.strides = &one;
    in = &line;
  }
  DLTensor *out = result(c);
  const int64_t dim = dim_of(c, 1, in);
  const int item = size_of(kind(in->dtype));
  if (numel(index) == 0) return PLAIT_OK;
  if (lies_in_rows(in, index, dim))
    PLAIT_BY_SIZE(item, if (gather_rows(c, in, index, data<T>(out))) return PLAIT_OK)
  PLAIT_TRY(check_indices(c, "index", index, in->ndim ? in->shape[dim] : 1));
  PLAIT_BY_SIZE(item, parallel_parts(c, index, in, out, dim, item, true, [](const IndexWalk &p) {
                  p.each<T>([](const T *from, T *to) { *to = *from; });
                }))
  return PLAIT_OK;
}

PLAIT_KERNEL("index_select", index_select);
PLAIT_KERNEL("index_add", index_add);
PLAIT_KERNEL("gather", gather);

}  // namespace
}  // namespace plait::core
