// sort and topk along one dimension. Always stable; NaN counts as the largest number.
#include "kernels/indices.h"

namespace plait::core {
namespace {

template <class T>
struct Keyed {
  T value;
  int64_t at;
};

template <class T>
PLAIT_INLINE bool before(const T &a, const T &b, bool descending) {
  if constexpr (is_float<T>) {
    const bool a_nan = a != a, b_nan = b != b;
    if (a_nan || b_nan) return descending ? a_nan && !b_nan : b_nan && !a_nan;
  }
  return descending ? a > b : a < b;
}

// Bottom-up merge sort of n elements with room for as many: no recursion and nothing of the C++
// library.
template <class T>
Keyed<T> *merge_sort(Keyed<T> *x, Keyed<T> *room, int64_t n, bool descending) {
  constexpr int64_t kRun = 16;
  for (int64_t begin = 0; begin < n; begin += kRun) {
    const int64_t end = begin + kRun < n ? begin + kRun : n;
    for (int64_t i = begin + 1; i < end; i++) {
      const Keyed<T> k = x[i];
      int64_t j = i;
      for (; j > begin && before(k.value, x[j - 1].value, descending); j--) x[j] = x[j - 1];
      x[j] = k;
    }
  }
  for (int64_t width = kRun; width < n; width *= 2) {
    for (int64_t begin = 0; begin < n; begin += 2 * width) {
      const int64_t middle = begin + width < n ? begin + width : n,
                    end = begin + 2 * width < n ? begin + 2 * width : n;
      int64_t a = begin, b = middle;
      for (int64_t i = begin; i < end; i++) {
        const bool right = a == middle || (b < end && before(x[b].value, x[a].value, descending));
        room[i] = x[right ? b++ : a++];
      }
    }
    Keyed<T> *swap = x;
    x = room;
    room = swap;
  }
  return x;
}

struct Line {  // one dimension of several tensors, the others walked
  int64_t size, lines, keep;
  bool descending;
};

template <class T>
plait_status sort_lines(const plait_call *c, const DLTensor *self, int dim, DLTensor *values,
                        DLTensor *indices, Line line) {
  int64_t from_stride[PLAIT_MAX_DIMS], to_stride[PLAIT_MAX_DIMS], shape[PLAIT_MAX_DIMS];
  for (int d = 0; d < self->ndim; d++) {
    shape[d] = d == dim ? 1 : self->shape[d];
    from_stride[d] = d == dim ? 0 : self->strides[d];
    to_stride[d] = d == dim ? 0 : values->strides[d];
  }
  const int64_t step = self->ndim ? self->strides[dim] : 0,
                to_step = values->ndim ? values->strides[dim] : 0;
  Workspace space;
  PLAIT_TRY(space.take(c, 2 * uint64_t(line.size ? line.size : 1) * sizeof(Keyed<T>)));
  Counter from(self->ndim, shape, from_stride), to(self->ndim, shape, to_stride);
  for (int64_t l = 0; l < line.lines; l++, from.next(), to.next()) {
    auto *x = space.as<Keyed<T>>();
    for (int64_t i = 0; i < line.size; i++) x[i] = {data<T>(self)[from.offset + i * step], i};
    const Keyed<T> *sorted = merge_sort(x, x + line.size, line.size, line.descending);
    for (int64_t i = 0; i < line.keep; i++) {
      data<T>(values)[to.offset + i * to_step] = sorted[i].value;
      data<int64_t>(indices)[to.offset + i * to_step] = sorted[i].at;
    }
  }
  return PLAIT_OK;
}

plait_status sorted(plait_call *c, int dim_argument, bool descending, int64_t keep) {
  const DLTensor *self = tensor(c, 0);
  const int dim = self->ndim ? int(wrapped(integer(c, dim_argument, -1), self->ndim)) : 0;
  Line line{self->ndim ? self->shape[dim] : 1, 1, keep, descending};
  if (keep < 0) line.keep = line.size;
  for (int d = 0; d < self->ndim; d++)
    if (d != dim) line.lines *= self->shape[d];
  if (line.size == 0 || line.keep == 0) return PLAIT_OK;
  const Kind k = kind(self->dtype);
  if (k == Bool) return sort_lines<uint8_t>(c, self, dim, result(c, 0), result(c, 1), line);
  PLAIT_NUMERIC(k, return sort_lines<T>(c, self, dim, result(c, 0), result(c, 1), line))
  return PLAIT_DECLINE;
}

// sort(self, dim=-1, descending=False, stable=False) -> (values, indices)
plait_status sort(plait_call *c) { return sorted(c, 1, integer(c, 2) != 0, -1); }
PLAIT_KERNEL("sort", sort);

// topk(self, k, dim=-1, largest=True, sorted=True) -> (values, indices)
plait_status topk(plait_call *c) { return sorted(c, 2, integer(c, 3, 1) != 0, integer(c, 1)); }
PLAIT_KERNEL("topk", topk);

}  // namespace
}  // namespace plait::core
