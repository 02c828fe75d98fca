// search_sorted: binary search for many values at once.
#include "kernel/dense.h"
#include "sorting/radix_sort.h"

namespace plait::core {
namespace {

// The first index whose element is not less than x; with `right` the first whose element is
// greater.
template <class T>
PLAIT_INLINE int64_t lower_bound(const T *p, int64_t n, Key<T> x, bool right) {
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

// lower_bound for several values: every search of n keys takes the same steps.
template <class K>
void lower_bounds(const K *keys, int64_t n, const K *x, bool right, int64_t *to) {
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
      // number of inputs for each sequence
      sequence->ndim == 1 ? total : input->shape[input->ndim - 1];
  Dense<T> from, values;
  PLAIT_TRY(from.take(c, sequence));
  PLAIT_TRY(values.take(c, input));
  const T *p = from, *x = values;
  int64_t *to = data<int64_t>(result(c));
  Workspace space;  // the sequences as keys, if there are enough searches in them
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
        Key<T> required[kAtOnce];
        for (int k = 0; k < kAtOnce; k++) required[k] = key_of(x[i + k]);
        lower_bounds(keys + row * n, n, required, right, to + i);
      }
      for (; i < stop; i++) to[i] = lower_bound(p + row * n, n, key_of(x[i]), right);
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

}  // namespace
}  // namespace plait::core
