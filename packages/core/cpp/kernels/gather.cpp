// Reading and writing along one dimension by indices: index_select, index_add, gather, scatter,
// scatter_add, embedding and its derivative.
#include "kernels/dense.h"
#include "kernels/index.h"
#include "kernels/pointed.h"
#include "scalar/math.h"

namespace plait::core {

plait_status check_indices(const plait_call *c, const char *argument, const DLTensor *index,
                           int64_t n) {
  Plan p;
  p.add(index, 8);
  if (p.numel == 0) return PLAIT_OK;
  p.finish();
  int64_t at[PLAIT_MAX_DIMS + 1];
  char *q[kMaxOperands];
  p.seek(0, at, q);
  const int last = p.ndim - 1;
  for (int64_t done = 0; done < p.numel; done += p.size[last], p.next_row(at, q)) {
    int bad = 0;
    const char *row = q[0];
    const int64_t step = p.stride[0][last];
    for (int64_t i = 0; i < p.size[last]; i++) {
      const int64_t v = *reinterpret_cast<const int64_t *>(row + i * step);
      bad |= (v < -n) | (v >= n);
    }
    for (int64_t i = 0; bad && i < p.size[last]; i++) {
      const int64_t v = *reinterpret_cast<const int64_t *>(row + i * step);
      if (v < -n || v >= n)
        return PLAIT_FAIL(c, PLAIT_INDEX_ERROR, "`%s` must be in [-%lld, %lld); got %lld", argument,
                          (long long)n, (long long)n, (long long)v);
    }
  }
  return PLAIT_OK;
}

namespace {

// Positions of a tensor as [outer][n along dim][inner], C order.
struct Along {
  int64_t outer = 1, n = 1, inner = 1;
  Along(const DLTensor *t, int64_t dim) {
    for (int d = 0; d < t->ndim; d++) (d < dim ? outer : d == dim ? n : inner) *= t->shape[d];
  }
};
int64_t dim_of(const plait_call *c, int i, const DLTensor *t) {
  return t->ndim ? wrapped(integer(c, i), t->ndim) : 0;
}

template <class T>
PLAIT_INLINE void copy_items(T *to, const T *from, int64_t n) {
  if (n == 1) {
    *to = *from;
  } else {
    memcpy(to, from, size_t(n) * sizeof(T));
  }
}

// Rows of `inner` elements of a dense source, picked by indices along its middle dimension.
template <class T>
void pick(const plait_call *c, const T *from, const Along &a, const int64_t *index, int64_t count,
          T *to) {
  parallel_ranges(c, a.outer * count, kSerial / (a.inner + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t o = i / count, k = from_start(index[i - o * count], a.n);
      copy_items(to + i * a.inner, from + (o * a.n + k) * a.inner, a.inner);
    }
  });
}

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
    pick<T>(c, from, a, at, numel(index), data<T>(out));
  })
  return PLAIT_OK;
}

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
    parallel_ranges(c, a.outer, kSerial / (count * a.inner + 1) + 1,
                    [&](int64_t begin, int64_t end) {
                      for (int64_t o = begin; o < end; o++)
                        for (int64_t i = 0; i < count; i++) {
                          T *row = to + (o * a.n + from_start(where[i], a.n)) * a.inner;
                          const T *more = add + (o * count + i) * a.inner;
                          for (int64_t j = 0; j < a.inner; j++)
                            row[j] = T(W(row[j]) + factor * W(more[j]));
                        }
                    });
    return PLAIT_OK;
  };
  if (k == Bool) return run(bool());
  if (is_complex_kind(k)) PLAIT_COMPLEX(k, return run(T()))
  PLAIT_NUMERIC(k, return run(T()))
  return PLAIT_OK;
}

// gather(self, dim, index)
plait_status gather(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *index = tensor(c, 2);
  DLTensor line = *in;  // one element counts as a vector
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
  PLAIT_TRY(check_indices(c, "index", index, in->ndim ? in->shape[dim] : 1));
  PLAIT_BY_SIZE(item, parallel_parts(c, index, in, out, dim, item, true, [](const Pointed &p) {
                  p.each<T>([](const T *from, T *to) { *to = *from; });
                }))
  return PLAIT_OK;
}

// scatter(self, dim, index, src): in order, so that of several the last is kept
plait_status scatter(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *index = tensor(c, 2), *source = tensor(c, 3);
  DLTensor *out = result(c);
  const Kind k = kind(in->dtype);
  const int64_t dim = dim_of(c, 1, in);
  PLAIT_TRY(check_indices(c, "index", index, in->ndim ? in->shape[dim] : 1));
  PLAIT_TRY(copy(c, out, in));
  alignas(16) char number[16] = {};
  if (!source) store_number(k, c->in[3], number);
  PLAIT_BY_SIZE(size_of(k), {
    const T value = *reinterpret_cast<const T *>(number);
    parallel_parts(c, index, out, source, dim, size_of(k), false, [&](const Pointed &p) {
      if (source) {
        p.each<T>([](T *to, const T *from) { *to = *from; });
      } else {
        p.each<T>([value](T *to, const T *) { *to = value; });
      }
    });
  })
  return PLAIT_OK;
}

// scatter_add(self, dim, index, src)
plait_status scatter_add(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *index = tensor(c, 2), *source = tensor(c, 3);
  DLTensor *out = result(c);
  const Kind k = kind(in->dtype);
  const int64_t dim = dim_of(c, 1, in);
  PLAIT_TRY(check_indices(c, "index", index, in->ndim ? in->shape[dim] : 1));
  PLAIT_TRY(copy(c, out, in));
  const int item = size_of(k);
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    using W = scalar::math::wide<T>;
    parallel_parts(c, index, out, source, dim, item, false, [](const Pointed &p) {
      p.each<T>([](T *to, const T *from) { *to = T(W(*to) + W(*from)); });
    });
    return PLAIT_OK;
  };
  if (k == Bool) return run(bool());
  if (is_complex_kind(k)) PLAIT_COMPLEX(k, return run(T()))
  PLAIT_NUMERIC(k, return run(T()))
  return PLAIT_OK;
}

// ---- rows of a table
// -----------------------------------------------------------------------------------------------
plait_status check_rows(const plait_call *c, const int64_t *index, int64_t count, int64_t n) {
  for (int64_t i = 0; i < count; i++)
    if (index[i] < 0 || index[i] >= n)
      return PLAIT_FAIL(c, PLAIT_INDEX_ERROR, "`indices` must be in [0, %lld); got %lld",
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
    pick<T>(c, from, a, at, numel(indices), data<T>(out));
  })
  return PLAIT_OK;
}

// embedding_backward(grad, indices, num_weights, padding_idx): every range of rows of the result
// reads all indices and adds up its own in order, so threads need no locks and change nothing.
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

PLAIT_KERNEL("index_select", index_select);
PLAIT_KERNEL("index_add", index_add);
PLAIT_KERNEL("gather", gather);
PLAIT_KERNEL("scatter", scatter);
PLAIT_KERNEL("scatter.value", scatter);
PLAIT_KERNEL("scatter_add", scatter_add);
PLAIT_KERNEL("embedding", embedding);
PLAIT_KERNEL("embedding_backward", embedding_backward);

}  // namespace
}  // namespace plait::core
