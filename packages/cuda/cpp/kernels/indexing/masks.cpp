// Elements that a mask selects, in C order: masked_values, masked_write_, and the coordinates of
// those that are not 0. Blocks count the selected elements of their tiles, the counts become
// places, and blocks write there.
#include "block/scan.h"
#include "host/walk.h"

namespace plait::cuda {
namespace {

constexpr int kMaskThreads = 256, kMaskWarps = kMaskThreads / 32, kEach = 16;
constexpr int kMaskTile = kMaskThreads * kEach;

struct MaskArgs {
  const uint8_t *mask;  // dense
  int64_t *counts;      // of tiles; then what lies before them
  int64_t n;
  int32_t is_aligned;  // the mask can be read 16 bytes at a time
  // Selected elements are read from `from` and written to `to`; one of them has the shape of the
  // mask, the other is a vector of `most` elements.
  const void *from;
  void *to;
  int64_t most, step;  // of the vector, in elements
  int32_t gathers;
  Walk<1> walk;
};
struct CoordinateArgs {
  const uint8_t *mask;
  const int64_t *counts;
  int64_t n, most;
  int64_t *to;
  int32_t ndim;
  int64_t shape[PLAIT_MAX_DIMS];
};

#if PLAIT_KERNELS
template <class T>
PLAIT_DEVICE void count_selected(Block &t, const MaskArgs &a) {
  const auto room = t.shared<uint32_t>(kMaskWarps);
  const auto mask = t.global<const T>(a.mask);
  const int64_t first = t.block() * kMaskTile;
  uint32_t own = 0, all;
  if (a.is_aligned && first + kMaskTile <= a.n) {
    const auto some = mask.template load_vector<16>(first + t.thread() * 16);
#pragma unroll
    for (int k = 0; k < 16; k++) own += some.at[k] != 0;
  } else {
    for (int k = 0; k < kEach; k++) {
      const int64_t i = first + k * kMaskThreads + t.thread();
      own += i < a.n && mask.load(i) != 0;
    }
  }
  exclusive_sum(t, room, own, &all);
  if (t.thread() == 0) t.global<int64_t>(a.counts).store(t.block(), int64_t(all));
}

// f(element, number of selected elements before it) for the selected elements of a tile.
template <class F>
PLAIT_DEVICE void each_selected(Block &t, const uint8_t *mask_data, const int64_t *counts,
                                int64_t n, F f) {
  const auto room = t.shared<uint32_t>(kMaskWarps);
  const auto mask = t.global<const uint8_t>(mask_data);
  const int64_t first = t.block() * kMaskTile + t.warp() * (kEach * kWarp) + t.lane();
  uint32_t kept = 0, sum = 0;  // lane k keeps the votes on element k of each lane
#pragma unroll
  for (int k = 0; k < kEach; k++) {
    const int64_t i = first + k * kWarp;
    const uint32_t votes = t.ballot(i < n && mask.load(i) != 0);
    if (t.lane() == k) kept = votes;
    sum += uint32_t(count_bits(votes));
  }
  if (t.lane() == 0) room.store(t.warp(), sum);
  t.barrier();
  int64_t before = t.global<const int64_t>(counts).load(t.block());
  for (int w = 0; w < t.warp(); w++) before += room.load(w);
#pragma unroll 1
  for (int k = 0; k < kEach; k++) {
    const uint32_t votes = t.shuffle(kept, k);
    if (votes >> t.lane() & 1)
      f(first + k * kWarp, before + count_bits(votes & ((1u << t.lane()) - 1)));
    before += count_bits(votes);
  }
}

template <class T>
PLAIT_DEVICE void move_selected(Block &t, const MaskArgs &a) {
  const auto from = t.global<const T>(a.from);
  const auto to = t.global<T>(a.to);
  each_selected(t, a.mask, a.counts, a.n, [&](int64_t i, int64_t rank) {
    // the mask may have changed since its elements were counted
    if (rank >= a.most) return;
    int64_t offset[1];
    a.walk.seek(i, offset);
    if (a.gathers)
      to.store(rank, from.load(offset[0]));
    else
      to.store(offset[0], from.load(rank * a.step));
  });
}

template <class T>
PLAIT_DEVICE void write_coordinates(Block &t, const CoordinateArgs &a) {
  const auto to = t.global<T>(a.to);
  each_selected(t, a.mask, a.counts, a.n, [&](int64_t i, int64_t rank) {
    if (rank >= a.most) return;
    for (int d = a.ndim - 1; d >= 0; d--) {
      to.store(rank * a.ndim + d, i % a.shape[d]);
      i /= a.shape[d];
    }
  });
}
#endif

#define PLAIT_EACH_MASK(X, ...) X(u8, uint8_t, __VA_ARGS__)
#define PLAIT_EACH_INDEX(X, ...) X(i64, int64_t, __VA_ARGS__)
PLAIT_DEVICE_KERNEL(count_selected, MaskArgs, kMaskThreads, MASK);
PLAIT_DEVICE_KERNEL(move_selected, MaskArgs, kMaskThreads, SIZES);
PLAIT_DEVICE_KERNEL(write_coordinates, CoordinateArgs, kMaskThreads, INDEX);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/copy.h"
#include "host/sort.h"

namespace plait::cuda {
namespace {

constexpr DLDataType kBoolean{kDLBool, 8, 1};

// A tensor as a dense mask, and how many selected elements come before each tile.
struct Mask {
  Operand dense;
  DeviceWorkspace counts;
  int64_t n = 0, tiles = 0;
  plait_status take(const plait_call *c, const DLTensor *t) {
    n = numel(t), tiles = ceil_div(n, kMaskTile);
    PLAIT_TRY(dense.take_as(c, t, kBoolean));
    PLAIT_TRY(counts.take(c, (tiles + 1) * 8));
    MaskArgs a{};
    a.mask = dense.data<uint8_t>(), a.counts = counts.data<int64_t>(), a.n = n;
    a.is_aligned = reinterpret_cast<uintptr_t>(a.mask) % 16 == 0;
    PLAIT_TRY(launch(c, count_selected_kernel, U8, a, tiles, kMaskThreads, kMaskWarps * 4));
    return sum_counts(c, a.counts, tiles);
  }
};

// Moves elements between `shaped`, which has the shape of the mask, and a vector.
plait_status move(const plait_call *c, const DLTensor *shaped, const DLTensor *vector,
                  bool gathers) {
  const int item = size_of(kind(shaped->dtype));
  Mask mask;
  PLAIT_TRY(mask.take(c, tensor(c, 1)));
  MaskArgs a{};
  a.mask = mask.dense.data<uint8_t>(), a.counts = mask.counts.data<int64_t>(), a.n = mask.n;
  a.from = gathers ? shaped->data : vector->data, a.to = gathers ? vector->data : shaped->data;
  a.most = vector->shape[0], a.step = vector->strides[0], a.gathers = gathers;
  Plan p;
  p.add(shaped, 1);
  p.finish(false);
  if (!make_walk(p, &a.walk)) return too_many_dimensions(c);
  return launch(c, move_selected_kernel, instance_of_size(item), a, mask.tiles, kMaskThreads,
                kMaskWarps * 4);
}

// masked_values(self, mask, count)
plait_status masked_values(plait_call *c) {
  const DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  PLAIT_TRY(fill_tensor(c, out, int64_t(0)));
  if (numel(tensor(c, 0)) == 0) return PLAIT_OK;
  Operand self;
  PLAIT_TRY(self.take(c, tensor(c, 0)));
  return move(c, self.tensor(), out, true);
}

// masked_write_(self, mask, source)
plait_status masked_write(plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  if (numel(self) == 0 || numel(tensor(c, 2)) == 0) return PLAIT_OK;
  Operand source;
  AlignedTarget to;
  PLAIT_TRY(source.take(c, tensor(c, 2)));
  PLAIT_TRY(to.take(c, self));
  PLAIT_TRY(move(c, to.tensor(), source.tensor(), false));
  return to.finish(c);
}

plait_status write_rows(plait_call *c, int64_t fill) {
  const DLTensor *self = tensor(c, 0), *out = result(c);
  PLAIT_TRY(fill_tensor(c, out, fill));
  if (numel(self) == 0 || numel(out) == 0) return PLAIT_OK;
  Mask mask;
  PLAIT_TRY(mask.take(c, self));
  CoordinateArgs a{mask.dense.data<uint8_t>(),
                   mask.counts.data<int64_t>(),
                   mask.n,
                   out->shape[0],
                   data<int64_t>(out),
                   self->ndim,
                   {}};
  for (int d = 0; d < self->ndim; d++) a.shape[d] = self->shape[d];
  return launch(c, write_coordinates_kernel, I64, a, mask.tiles, kMaskThreads, kMaskWarps * 4);
}
// nonzero_rows(self, count) and nonzero_static(self, size, fill_value)
plait_status nonzero_rows(plait_call *c) { return write_rows(c, 0); }
plait_status nonzero_static(plait_call *c) { return write_rows(c, integer(c, 2)); }

PLAIT_KERNEL("masked_values", masked_values);
PLAIT_KERNEL("masked_write_", masked_write);
PLAIT_KERNEL("nonzero_rows", nonzero_rows);
PLAIT_KERNEL("nonzero_static", nonzero_static);

}  // namespace
}  // namespace plait::cuda
#endif
