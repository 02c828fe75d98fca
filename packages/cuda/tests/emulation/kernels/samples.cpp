// Kernels for tests of the emulation: right ones, and ones with each fault that it finds.
#include "block/block.h"

namespace plait::cuda {
namespace {

struct Args {
  const void *x;
  void *y;
  int64_t n;
  double factor;
};

#if PLAIT_KERNELS
template <class T>
PLAIT_DEVICE void scale(Thread &t, const Args &a) {
  const auto x = t.global<const T>(a.x);
  const auto y = t.global<T>(a.y);
  for (int64_t i = t.index(); i < a.n; i += t.stride())
    y.store(i, narrow<T>(widen(x.load(i)) * Compute<T>(a.factor)));
}

template <class T>
PLAIT_DEVICE void scale_checked(Thread &t, const Args &a) {  // the sizes are known
  const auto x = t.global<const T>(a.x, a.n);
  const auto y = t.global<T>(a.y, a.n);
  for (int64_t i = t.index(); i < a.n + int64_t(a.factor); i += t.stride()) y.store(i, x.load(i));
}

template <class T>
PLAIT_DEVICE void pairs(Thread &t, const Args &a) {  // two elements at a time
  const auto x = t.global<const T>(a.x);
  const auto y = t.global<T>(a.y);
  for (int64_t i = 2 * t.index(); i < a.n; i += 2 * t.stride())
    y.template store_vector<2>(i, x.template load_vector<2>(i));
}

// Sums of blocks by halves in shared memory, then of all by an atomic sum.
template <class T>
PLAIT_DEVICE void sum_shared(Block &b, const Args &a) {
  const auto x = b.global<const T>(a.x);
  const auto partial = b.shared<T>(b.threads());
  T sum = 0;
  for (int64_t i = b.index(); i < a.n; i += b.stride()) sum += x.load(i);
  partial.store(b.thread(), sum);
  for (int half = b.threads() / 2; half > 0; half /= 2) {
    b.barrier();
    if (b.thread() < half)
      partial.store(b.thread(), partial.load(b.thread()) + partial.load(b.thread() + half));
  }
  if (b.thread() == 0) b.global<T>(a.y).add(0, partial.load(0));
}

// Adds up rows by shuffles: one row of 32 elements for each warp.
template <class T>
PLAIT_DEVICE void sum_rows(Block &b, const Args &a) {
  const int64_t row = b.block() * b.warps() + b.warp();
  T v = row < a.n ? b.global<const T>(a.x).load(row * kWarp + b.lane()) : T(0);
  for (int by = kWarp / 2; by > 0; by /= 2) v += b.shuffle_down(v, by);
  if (b.lane() == 0 && row < a.n) b.global<T>(a.y).store(row, v);
}

template <class T>
PLAIT_DEVICE void lanes(Block &b, const Args &a) {  // one warp: what each exchange gives
  const T v = T(b.thread());
  const auto y = b.global<T>(a.y);
  y.store(b.thread(), b.shuffle(v, 3));
  y.store(32 + b.thread(), b.shuffle_down(v, 1));
  y.store(64 + b.thread(), b.shuffle_up(v, 1));
  y.store(96 + b.thread(), b.shuffle_xor(v, 5));
  y.store(128 + b.thread(), T(b.ballot(b.thread() % 3 == 0) & 0xffff));
}

template <class T>
PLAIT_DEVICE void missed_barrier(Block &b, const Args &a) {
  if (b.thread() < a.n) b.barrier();
  b.global<T>(a.y).store(b.index(), T(1));
}
template <class T>
PLAIT_DEVICE void two_barriers(Block &b, const Args &a) {
  if (b.thread() < a.n)
    b.barrier();
  else
    b.barrier();
}
template <class T>
PLAIT_DEVICE void missed_shuffle(Block &b, const Args &a) {
  T v = T(b.lane());
  if (b.lane() < a.n) v = b.shuffle(v, 0);
  b.global<T>(a.y).store(b.index(), v);
}
template <class T>
PLAIT_DEVICE void write_after_read(Block &b, const Args &) {
  const auto s = b.shared<T>(1);
  if (b.thread() == 0) s.store(0, T(1));
  b.barrier();
  s.load(0);
  if (b.thread() == 1) s.store(0, T(2));
}
template <class T>
PLAIT_DEVICE void write_after_write(Block &b, const Args &) {
  const auto s = b.shared<T>(1);
  if (b.thread() < 2) s.store(0, T(1));
}
template <class T>
PLAIT_DEVICE void read_after_write(Block &b, const Args &) {
  const auto s = b.shared<T>(1);
  if (b.thread() == 0) s.store(0, T(1));
  b.shuffle(T(0), 0);  // a meeting of lanes orders nothing
  if (b.thread() == 1) s.load(0);
}
template <class T>
PLAIT_DEVICE void shared_sum(Block &b, const Args &a) {  // atomic sums are no race
  const auto s = b.shared<T>(1);
  if (b.thread() == 0) s.store(0, T(0));
  b.barrier();
  s.add(0, T(1));
  b.barrier();
  if (b.thread() == 0) b.global<T>(a.y).store(0, s.load(0));
}
template <class T>
PLAIT_DEVICE void warp_shared(Block &b, const Args &a) {  // a barrier of the warp is enough
  const auto s = b.shared<T>(b.threads());
  s.store(b.thread(), T(b.lane()));
  b.warp_barrier();
  b.global<T>(a.y).store(b.index(), s.load(b.warp() * kWarp + (b.lane() + 1) % kWarp));
}
template <class T>
PLAIT_DEVICE void unwritten_shared(Block &b, const Args &a) {
  const auto s = b.shared<T>(b.threads());
  b.global<T>(a.y).store(b.index(), s.load(b.thread()));
}
template <class T>
PLAIT_DEVICE void outside_shared(Block &b, const Args &a) {
  b.shared<T>(a.n).store(b.thread(), T(1));
}
template <class T>
PLAIT_DEVICE void parts(Block &b, const Args &a) {  // bytes that are touched as words, and reverse
  const auto small = b.shared<uint8_t>(b.threads());
  const auto pairs = b.shared<T>(2 * b.threads());
  small.store(b.thread(), uint8_t(b.thread()));
  pairs.template store_vector<2>(2 * b.thread(), {{T(b.thread()), T(-b.thread())}});
  b.barrier();
  const int next = (b.thread() + 1) % b.threads();
  const T sum = T(small.load(next)) + pairs.template load_vector<2>(2 * next).at[1];
  b.global<T>(a.y).store(b.index(), sum + pairs.load(2 * next));
}
template <class T>
PLAIT_DEVICE void swapped(Thread &t, const Args &a) {
  const auto y = t.global<T>(a.y);
  const auto of = [](int v) { return narrow<T>(Compute<T>(v)); };
  if (t.index() == 0) {
    y.store(2, y.exchange(0, of(5)));
    y.store(3, y.compare_exchange(1, of(2), of(7)));
  }
  if (t.index() == 1) {
    y.minimum(4, of(-3));
    y.maximum(5, of(9));
    y.maximum(6, of(-9));
  }
}
template <class T>
PLAIT_DEVICE void deep(Block &b, const Args &a) {  // uses more of its stack
  T all[1024];
  for (int i = 0; i < 1024; i++) all[i] = T(i + b.thread());
  b.barrier();
  T sum = 0;
  for (int i = 0; i < 1024; i++) sum += all[i];
  b.global<T>(a.y).store(b.index(), sum);
}
template <class T>
PLAIT_DEVICE void reports(Thread &t, const Args &a) {
  const Fault fault = {static_cast<FaultRecord *>(a.y), uint64_t(a.n)};
  if (t.index() == 5) t.fail(fault, kIndexFault, 7, 0, 3);
}
template <class T>
PLAIT_DEVICE void global_race(Thread &t, const Args &a) {
  t.global<T>(a.y).store(t.index() / a.n, T(t.index()));
}
template <class T>
PLAIT_DEVICE void same_value(Thread &t, const Args &a) {  // that of the first n threads is 0
  t.global<T>(a.y).store_same(0, T(t.index() / a.n));
}
template <class T>
PLAIT_DEVICE void numbers(Thread &t, const Args &a) {  // in which order blocks come
  if (t.thread() == 0) t.global<T>(a.y).store(t.block(), t.global<T>(a.y).add(a.n, T(1)));
}
// The last block adds what each block has left: n + 1 elements, the last one counts blocks.
template <class T>
PLAIT_DEVICE void last_block(Block &b, const Args &a) {
  const auto y = b.global<T>(a.y);
  const auto is_last = b.shared<int32_t>(1);
  if (b.thread() == 0) {
    y.store(b.block(), T(b.block()));
    is_last.store(0, y.add(b.blocks(), T(1)) == T(b.blocks() - 1));
  }
  b.barrier();
  if (!is_last.load(0) || b.thread() != 0) return;
  T sum = 0;
  for (int64_t i = 0; i < b.blocks(); i++) sum += y.load(i);
  y.store(0, sum);
}
template <class T>
PLAIT_DEVICE void neighbours(Block &b, const Args &a) {  // through global memory, with a barrier
  const auto y = b.global<T>(a.y);
  y.store(b.index(), T(b.index()));
  b.barrier();
  const T v = y.load(b.block() * b.threads() + (b.thread() + 1) % b.threads());
  b.barrier();
  y.store(b.index(), v);
}
#endif

PLAIT_DEVICE_KERNEL(scale, Args, 1024, FLOATING);
PLAIT_DEVICE_KERNEL(scale_checked, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(pairs, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(sum_shared, Args, 1024, WIDE);
PLAIT_DEVICE_KERNEL(sum_rows, Args, 1024, WIDE);
PLAIT_DEVICE_KERNEL(lanes, Args, 32, WIDE);
PLAIT_DEVICE_KERNEL(missed_barrier, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(two_barriers, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(missed_shuffle, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(write_after_write, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(read_after_write, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(write_after_read, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(shared_sum, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(warp_shared, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(unwritten_shared, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(outside_shared, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(parts, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(swapped, Args, 256, NUMERIC);
PLAIT_DEVICE_KERNEL(deep, Args, 1024, WIDE);
PLAIT_DEVICE_KERNEL(reports, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(global_race, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(same_value, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(last_block, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(neighbours, Args, 256, WIDE);
PLAIT_DEVICE_KERNEL(numbers, Args, 256, WIDE);

}  // namespace
}  // namespace plait::cuda
