// search_sorted: a binary search for each element.
#include "block/block.h"
#include "block/sort_keys.h"

namespace plait::cuda {
namespace {

struct SearchArgs {
  const void *sequence, *values;
  int64_t *to;
  int64_t total, n, width;  // `width` values search in each sequence
  int32_t right;
};

#if PLAIT_KERNELS
// The first index whose element is not less; with `right` the first whose element is greater.
template <class T>
PLAIT_DEVICE void search_elements(Thread &t, const SearchArgs &a) {
  const auto sequence = t.global<const T>(a.sequence);
  const auto values = t.global<const T>(a.values);
  const auto to = t.global<int64_t>(a.to);
  for (int64_t i = t.index(); i < a.total; i += t.stride()) {
    const auto x = sort_key(values.load(i));
    const int64_t first = i / a.width * a.n;
    int64_t low = 0, left = a.n;
    while (left > 0) {
      const int64_t half = left / 2;
      const auto middle = sort_key(sequence.load(first + low + half));
      const bool above = a.right ? middle <= x : middle < x;
      low = above ? low + half + 1 : low;
      left = above ? left - half - 1 : half;
    }
    to.store(i, low);
  }
}
#endif

PLAIT_DEVICE_KERNEL(search_elements, SearchArgs, 256, NUMERIC);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/copy.h"
#include "host/lines.h"

namespace plait::cuda {
namespace {

// search_sorted(sorted_sequence, input, right)
plait_status search_sorted(plait_call *c) {
  const DLTensor *sequence = tensor(c, 0), *input = tensor(c, 1);
  SearchArgs a{};
  a.total = numel(input);
  if (a.total == 0) return PLAIT_OK;
  Operand from, values;
  DenseResult to;
  PLAIT_TRY(from.take_dense(c, sequence));
  PLAIT_TRY(values.take_dense(c, input));
  PLAIT_TRY(to.take(c, result(c)));
  a.sequence = from.data(), a.values = values.data(), a.to = to.data<int64_t>();
  a.n = sequence->shape[sequence->ndim - 1];
  a.width = sequence->ndim == 1 ? a.total : input->shape[input->ndim - 1];
  a.right = integer(c, 2) != 0;
  PLAIT_TRY(
      launch(c, search_elements_kernel, sort_kind(sequence), a, blocks_for(c, a.total, 256), 256));
  return to.finish(c);
}
PLAIT_KERNEL("search_sorted", search_sorted);

}  // namespace
}  // namespace plait::cuda
#endif
