// Whether tensors that a collective writes share elements with others.
#ifndef PLAIT_COLLECTIVES_OVERLAP_HPP
#define PLAIT_COLLECTIVES_OVERLAP_HPP
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "../plait.hpp"

namespace plait::collectives {

struct Overlap {
  enum Kind { none, within_outputs, with_input } kind = none;
  uint32_t index = 0;  // of the output, or of the input
};

namespace overlapping {

struct Extent {  // of a tensor with elements: the bytes that it reaches
  const plait_tensor *tensor;
  uintptr_t low, high;
  uint32_t index;
  bool written;
};

inline void add(std::vector<Extent> &all, const plait_tensor *t, uint32_t index, bool written) {
  if (numel(t) == 0) return;
  const auto item = uintptr_t(itemsize(t->dl.dtype));
  uintptr_t low = reinterpret_cast<uintptr_t>(t->dl.data), high = low + item;
  for (int32_t d = 0; d < t->dl.ndim; d++) {
    const int64_t reach = (t->dl.shape[d] - 1) * t->dl.strides[d];
    (reach < 0 ? low : high) += uintptr_t(reach) * item;
  }
  all.push_back({t, low, high, index, written});
}

// Whether each dimension steps over all that the smaller ones reach: then no element is there
// twice.
inline bool steps_over(const plait_tensor *t) {
  std::array<std::array<int64_t, 2>, PLAIT_MAX_DIMS> dims;  // stride, size
  size_t n = 0;
  for (int32_t d = 0; d < t->dl.ndim; d++)
    if (t->dl.shape[d] > 1) dims[n++] = {std::abs(t->dl.strides[d]), t->dl.shape[d]};
  std::sort(dims.begin(), dims.begin() + ptrdiff_t(n));
  int64_t reached = 1;
  for (size_t i = 0; i < n; i++) {
    const auto [stride, size] = dims[i];
    if (stride < reached) return false;
    reached = stride * (size - 1) + reached;
  }
  return true;
}

inline bool same_elements(const plait_tensor *a, const plait_tensor *b) {
  if (a->dl.data != b->dl.data || a->dl.ndim != b->dl.ndim) return false;
  for (int32_t d = 0; d < a->dl.ndim; d++)
    if (a->dl.shape[d] != b->dl.shape[d] ||
        (a->dl.shape[d] > 1 && a->dl.strides[d] != b->dl.strides[d]))
      return false;
  return true;
}

class Bytes {  // those that outputs have
 public:
  Bytes(uintptr_t low, uintptr_t high) : low_(low), taken_(high - low) {}

  // Whether one of the tensor's bytes is taken; `take`: takes them.
  bool meets(const plait_tensor *t, bool take) {
    const auto item = uintptr_t(itemsize(t->dl.dtype));
    int64_t at[PLAIT_MAX_DIMS] = {};
    uintptr_t address = reinterpret_cast<uintptr_t>(t->dl.data) - low_;
    for (;;) {
      for (uintptr_t i = address; i < address + item; i++) {
        if (taken_[i]) return true;
        if (take) taken_[i] = true;
      }
      int32_t d = t->dl.ndim - 1;
      for (; d >= 0; d--) {
        address += uintptr_t(t->dl.strides[d]) * item;
        if (++at[d] < t->dl.shape[d]) break;
        address -= uintptr_t(t->dl.strides[d] * at[d]) * item;
        at[d] = 0;
      }
      if (d < 0) return false;
    }
  }

 private:
  uintptr_t low_;
  std::vector<bool> taken_;
};

// Tensors whose extents hang together.
inline Overlap look_at(const Extent *begin, const Extent *end, bool any_index) {
  std::vector<const Extent *> out, in;
  for (const Extent *e = begin; e < end; e++)
    if (e->written) out.push_back(e);
  for (const Extent *e = begin; e < end; e++) {
    const auto is_it = [&](const Extent *o) {
      return (any_index || o->index == e->index) && same_elements(o->tensor, e->tensor);
    };
    if (!e->written && std::none_of(out.begin(), out.end(), is_it)) in.push_back(e);
  }
  if (out.empty() || (out.size() == 1 && in.empty() && steps_over(out[0]->tensor))) return {};
  uintptr_t high = 0;
  for (const Extent *e = begin; e < end; e++) high = std::max(high, e->high);
  Bytes bytes(begin->low, high);
  std::sort(out.begin(), out.end(), [](auto *a, auto *b) { return a->index < b->index; });
  for (const Extent *e : out)
    if (bytes.meets(e->tensor, true)) return {Overlap::within_outputs, e->index};
  for (const Extent *e : in)
    if (bytes.meets(e->tensor, false)) return {Overlap::with_input, e->index};
  return {};
}

}  // namespace overlapping

// An output must not have an element twice, nor one of another output. An input may be an output
// exactly (`any_index` false: the one of its own index alone), and overlap none otherwise.
inline Overlap find_overlap(plait_tensor *const *in, uint32_t n_in, plait_tensor *const *out,
                            uint32_t n_out, bool any_index) {
  using namespace overlapping;
  std::vector<Extent> all;
  all.reserve(size_t(n_in) + n_out);
  for (uint32_t i = 0; i < n_out; i++) add(all, out[i], i, true);
  if (all.empty()) return {};
  for (uint32_t i = 0; i < n_in; i++) add(all, in[i], i, false);
  std::sort(all.begin(), all.end(), [](auto &a, auto &b) { return a.low < b.low; });
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    uintptr_t high = 0;
    for (; end < all.size() && (end == begin || all[end].low < high); end++)
      high = std::max(high, all[end].high);
    const Overlap result = look_at(all.data() + begin, all.data() + end, any_index);
    if (result.kind != Overlap::none) return result;
  }
  return {};
}

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_OVERLAP_HPP
