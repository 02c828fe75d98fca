// search_sorted: binary search for many values at once; argsort_rows: rows of a matrix in order.
#include "kernel/dense.h"
#include "sorting/radix_sort.h"

namespace plait::core {
namespace {

// The first place whose element is not below x; with `right` the first that is above it.
template <class T>
PLAIT_INLINE int64_t place(const T *p, int64_t n, Key<T> x, bool right) {
  int64_t low = 0;
  while (n > 0) {  // no branch that depends on values
    const int64_t half = n / 2;
    const Key<T> middle = key_of(p[low + half]);
    const bool above = right ? middle <= x : middle < x;
    low = above ? low + half + 1 : low;
    n = above ? n - half - 1 : half;
  }
  return low;
}

constexpr int kAtOnce = 8;  // searches that do not wait for each other

// As `place` for several values: every search of n keys takes the same steps.
template <class K>
void places(const K *keys, int64_t n, const K *x, bool right, int64_t *to) {
  int64_t low[kAtOnce] = {};
  for (int64_t left = n; left > 0;) {
    const int64_t half = left - left / 2;
    for (int k = 0; k < kAtOnce; k++) {
      const K middle = keys[low[k] + half - 1];
      low[k] += (right ? middle <= x[k] : middle < x[k]) ? half : 0;
    }
    left = half < left ? left - half : 0;
  }
  for (int k = 0; k < kAtOnce; k++) to[k] = low[k];
}

template <class T>
plait_status search(const plait_call *c, bool right) {
  const DLTensor *sequence = tensor(c, 0), *input = tensor(c, 1);
  const int64_t n = sequence->shape[sequence->ndim - 1], total = numel(input);
  const int64_t width =
      sequence->ndim == 1 ? total : input->shape[input->ndim - 1];  // inputs to a sequence
  Dense<T> from, values;
  PLAIT_TRY(from.take(c, sequence));
  PLAIT_TRY(values.take(c, input));
  const T *p = from, *x = values;
  int64_t *to = data<int64_t>(result(c));
  Workspace space;  // the sequences as keys, where enough is looked for in them
  const int64_t all = numel(sequence);
  const bool keyed = n > 0 && total >= all / 4;
  Key<T> *keys = nullptr;
  if (keyed) {
    PLAIT_TRY(space.take(c, uint64_t(all) * sizeof(Key<T>)));
    keys = space.as<Key<T>>();
    parallel_ranges(c, all, kSerial, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) keys[i] = key_of(p[i]);
    });
  }
  parallel_ranges(c, total, kSerial / 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t row = i / width, stop = (row + 1) * width < end ? (row + 1) * width : end;
      for (; keyed && i + kAtOnce <= stop; i += kAtOnce) {
        Key<T> wanted[kAtOnce];
        for (int k = 0; k < kAtOnce; k++) wanted[k] = key_of(x[i + k]);
        places(keys + row * n, n, wanted, right, to + i);
      }
      for (; i < stop; i++) to[i] = place(p + row * n, n, key_of(x[i]), right);
    }
  });
  return PLAIT_OK;
}

// search_sorted(sorted_sequence, input, right)
plait_status search_sorted(plait_call *c) {
  const Kind k = kind(tensor(c, 0)->dtype);
  if (numel(tensor(c, 1)) == 0) return PLAIT_OK;
  const bool right = integer(c, 2) != 0;
  if (k == Bool) return search<uint8_t>(c, right);
  PLAIT_NUMERIC(k, return search<T>(c, right))
  return PLAIT_OK;
}
PLAIT_KERNEL("search_sorted", search_sorted);

template <class T>
PLAIT_INLINE bool is_before(const T *a, const T *b, int64_t width) {
  for (int64_t j = 0; j < width; j++) {
    const Key<T> x = key_of(a[j]), y = key_of(b[j]);
    if (x != y) return x < y;
  }
  return false;
}

// Merges neighbouring runs of places until one is left; stable.
template <class T>
void merge_rows(const T *p, int64_t width, int64_t n, int64_t *at, int64_t *room) {
  int64_t *from = at, *to = room;
  for (int64_t run = 1; run < n; run *= 2) {
    for (int64_t begin = 0; begin < n; begin += 2 * run) {
      const int64_t middle = begin + run < n ? begin + run : n,
                    end = begin + 2 * run < n ? begin + 2 * run : n;
      int64_t i = begin, j = middle;
      for (int64_t k = begin; k < end; k++) {
        const bool second =
            j < end && (i >= middle || is_before(p + from[j] * width, p + from[i] * width, width));
        to[k] = second ? from[j++] : from[i++];
      }
    }
    int64_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != at) memcpy(at, from, size_t(n) * sizeof(int64_t));
}

plait_status argsort_rows(plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  const int64_t n = self->shape[0], width = self->shape[1];
  int64_t *at = data<int64_t>(result(c));
  for (int64_t i = 0; i < n; i++) at[i] = i;
  if (n < 2 || width == 0) return PLAIT_OK;
  const Kind k = kind(self->dtype);
  const auto run = [&](auto zero) -> plait_status {
    using T = decltype(zero);
    Workspace space;
    Dense<T> rows;
    PLAIT_TRY(space.take(c, uint64_t(n) * sizeof(int64_t)));
    PLAIT_TRY(rows.take(c, self));
    merge_rows<T>(rows, width, n, at, space.as<int64_t>());
    return PLAIT_OK;
  };
  if (k == Bool) return run(uint8_t());
  PLAIT_NUMERIC(k, return run(T()))
  return PLAIT_OK;
}
PLAIT_KERNEL("argsort_rows", argsort_rows);

}  // namespace
}  // namespace plait::core
