// Shared by kernels that read or write along one dimension by an index tensor: int64, negative
// indices count from the end.
#pragma once
#include <algorithm>

#include "indexing/index_runs.h"
#include "kernel/copy_rows.h"
#include "kernel/integers.h"

namespace plait::core {

// Checks all indices before anything is read or written: PLAIT_INDEX_ERROR that names the first
// one outside [-n, n).
plait_status check_indices(const plait_call *c, const char *argument, const DLTensor *index,
                           int64_t n);

// Whether `count` indices, `step` bytes apart, are in [-n, n). Inlined, so that a call with a
// constant step is vectorised.
PLAIT_INLINE bool all_within(const char *row, int64_t count, int64_t step, int64_t n) {
  const uint64_t size = uint64_t(n);
  uint64_t bad = 0;
  for (int64_t i = 0; i < count; i++) {
    const uint64_t v = *reinterpret_cast<const uint64_t *>(row + i * step);
    bad |= (size - 1 - v) | (v + size);  // one of them is negative
  }
  return int64_t(bad) >= 0;
}

PLAIT_INLINE int64_t from_start(int64_t i, int64_t n) { return i < 0 ? i + n : i; }

// Positions of a tensor as [outer][n along dim][inner], C order.
struct Along {
  int64_t outer = 1, n = 1, inner = 1;
  Along(const DLTensor *t, int64_t dim) {
    for (int d = 0; d < t->ndim; d++) (d < dim ? outer : d == dim ? n : inner) *= t->shape[d];
  }
};
inline int64_t dim_of(const plait_call *c, int i, const DLTensor *t) {
  return t->ndim ? wrapped(integer(c, i), t->ndim) : 0;
}

// Rows of `inner` elements of a dense source, picked by indices along its middle dimension.
template <class T>
plait_status pick(const plait_call *c, const T *from, const Along &a, const int64_t *index,
                  int64_t count, T *to) {
  constexpr int64_t item = int64_t(sizeof(T)), kWide = 256;  // bytes
  if (a.inner * item < kWide && has_runs(index, count)) {
    const int64_t row = count * a.inner, height = kChunk / row + 1;
    IndexRuns runs;
    PLAIT_TRY(runs.read(c, index, count, a.n, kChunk / a.inner));
    const int64_t parts = ceil_div(a.outer, height) * runs.count();
    const int64_t grain = kChunk * parts / (a.outer * row) + 1;
    parallel_ranges(c, parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t o = i / runs.count() * height;
        const IndexRun run = runs[i % runs.count()];
        move_rows(reinterpret_cast<char *>(to + o * row + run.at * a.inner), row * item,
                  reinterpret_cast<const char *>(from + (o * a.n + run.first) * a.inner),
                  a.n * a.inner * item, least(height, a.outer - o), run.length * a.inner * item);
      }
    });
    return PLAIT_OK;
  }
  const bool plain = !any_negative(index, count);
  parallel_ranges(c, a.outer * count, kSerial / (a.inner + 1) + 1, [&](int64_t begin, int64_t end) {
    int64_t first = begin / count * count;
    const T *rows = from + begin / count * a.n * a.inner;
    for (int64_t i = begin; i < end; first += count, rows += a.n * a.inner) {
      const int64_t last = least(first + count, end);
      if (a.inner == 1 && plain) {
        for (; i < last; i++) to[i] = rows[index[i - first]];
      } else if (a.inner == 1) {
        for (; i < last; i++) to[i] = rows[from_start(index[i - first], a.n)];
      } else {
        for (; i < last; i++)
          memcpy(to + i * a.inner, rows + from_start(index[i - first], a.n) * a.inner,
                 size_t(a.inner * item));
      }
    }
  });
  return PLAIT_OK;
}

// Walks over an index tensor in C order, together with the elements of `self` that it selects along
// `dim` and with the elements of `other` (a tensor of at least its sizes, or NULL).
struct IndexWalk {
  Plan plan;
  int64_t length, step;  // size and stride (in elements) of dimension `dim` of self
  IndexWalk(const DLTensor *index, const DLTensor *self, const DLTensor *other, int64_t dim,
            int item) {
    DLTensor base = *self, rest = other ? *other : *index;
    int64_t strides[PLAIT_MAX_DIMS];
    for (int d = 0; d < self->ndim; d++) strides[d] = d == dim ? 0 : self->strides[d];
    base.strides = strides;
    base.shape = rest.shape = index->shape;
    length = self->ndim ? self->shape[dim] : 1;
    step = self->ndim ? self->strides[dim] : 0;
    plan.add(index, 8);
    plan.add(&base, item);
    plan.add(&rest, other ? item : 8);
    plan.finish(false);
  }
  // f(self's element, other's element) for each index, in order.
  template <class T, class F>
  void each(F &&f) const {
    if (plan.numel == 0) return;
    int64_t at[PLAIT_MAX_DIMS + 1];
    char *p[kMaxOperands];
    plan.seek(0, at, p);
    const int last = plan.ndim - 1;
    const bool rows = plan.stride[0][last] == 8 && plan.stride[1][last] == 0 && step == 1;
    const int64_t e = plan.stride[2][last];
    const auto run = [&](int64_t height) {
      if (rows && e == int64_t(sizeof(T))) return each_of_rows<T, kRows>(p, height, f);
      if (rows && e == 0) return each_of_rows<T, kOneValue>(p, height, f);
      each_of_rows<T, kAny>(p, height, f);
    };
    if (last < 1) return run(1);
    // rows of the last two dimensions at once, as short ones would cost more steps than elements
    Plan outer = plan;
    outer.ndim = last;
    const int64_t height = plan.size[last - 1];
    for (int64_t done = 0; done < plan.numel; done += height * plan.size[last]) {
      run(height);
      outer.next_row(at, p);
    }
  }

 private:
  // What lies side by side: nothing; indices and both tensors' rows; the same with one element of
  // the other tensor for a row.
  enum Rows { kAny, kRows, kOneValue };

  template <class T, Rows kind, class F>
  void each_of_rows(char *const *p, int64_t height, F &f) const {
    const int last = plan.ndim - 1;
    const int64_t n = plan.size[last];
    const bool any = kind == kAny;
    const int64_t a = any ? plan.stride[0][last] : 8, b = any ? plan.stride[1][last] : 0,
                  along = any ? step : 1,
                  e = any             ? plan.stride[2][last]
                      : kind == kRows ? int64_t(sizeof(T))
                                      : 0;
    const char *index = p[0];
    char *self = p[1], *other = p[2];
    for (int64_t r = 0; r < height; r++) {
      for (int64_t i = 0; i < n; i++) {
        const int64_t v = from_start(*reinterpret_cast<const int64_t *>(index + i * a), length);
        f(reinterpret_cast<T *>(self + i * b) + v * along, reinterpret_cast<T *>(other + i * e));
      }
      if (last < 1) return;
      index += plan.stride[0][last - 1];
      self += plan.stride[1][last - 1];
      other += plan.stride[2][last - 1];
    }
  }
};

inline int64_t thread_count() {
  const plait_executor *e = PLAIT_ROLE(plait_executor, roles.executor);
  return int64_t(e->width(e->ctx));
}

// Runs f(const IndexWalk &) over parts of the index tensor on several threads. Parts are cut along
// the largest dimension but `dim`, so that all writes to one element are in one part and in order;
// with `any` (nothing is written through the index) `dim` may be cut too.
template <class F>
void parallel_parts(const plait_call *c, const DLTensor *index, const DLTensor *self,
                    const DLTensor *other, int64_t dim, int item, bool any, F &&f) {
  const int64_t total = numel(index);
  int cut = -1;
  for (int d = 0; d < index->ndim; d++)
    if ((d != dim || any) && (cut < 0 || index->shape[d] > index->shape[cut])) cut = d;
  const int64_t size = cut < 0 ? 1 : index->shape[cut];
  if (total <= kSerial || size < 2) return f(IndexWalk(index, self, other, dim, item));
  const int64_t width = total / size;
  int64_t grain = kSerial / 2 / width + 1;
  // Strips of rows, as wide as two for each thread allow, and a line of the cache at least unless
  // threads would have nothing to do: a narrow one reads lines for a few of their elements.
  if (cut > dim) {
    const int64_t threads = thread_count(), step = self->strides[cut] * item;
    const int64_t line = step > 0 && step < 64 ? ceil_div(64, step) : 1;
    grain = std::max({grain, ceil_div(size, threads > 1 ? 2 * threads : 1),
                      std::min(line, ceil_div(size, threads))});
  }
  parallel_ranges(c, size, grain, [&](int64_t begin, int64_t end) {
    DLTensor part[3] = {*index, *self, other ? *other : *index};
    int64_t shape[PLAIT_MAX_DIMS];
    for (int d = 0; d < index->ndim; d++) shape[d] = d == cut ? end - begin : index->shape[d];
    part[0].shape = shape;
    for (int k = 0; k < 3; k++) {
      if (k == 1 && cut == dim) continue;  // along dim the index selects the element
      part[k].data = static_cast<char *>(part[k].data) + begin * part[k].strides[cut] *
                                                             (k == 0             ? 8
                                                              : k == 2 && !other ? 8
                                                                                 : item);
    }
    f(IndexWalk(&part[0], &part[1], other ? &part[2] : nullptr, dim, item));
  });
}

}  // namespace plait::core
