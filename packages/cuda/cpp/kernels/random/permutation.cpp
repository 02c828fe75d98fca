// randperm: Fisher and Yates' shuffle. Step i exchanges element i with a random one behind it; a
// step can be done as soon as no earlier one is left that has one of its two places (Shun et al.
// 2015, "Sequential random permutation, list contraction and tree contraction are highly
// parallel"). So the order is that of the CPU, in about log n rounds.
#include "block/block.h"
#include "block/philox.h"

namespace plait::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostRounds = 1 << 20;

struct ShuffleArgs {
  int64_t *elements;
  uint64_t *claims;      // of places: the first step of this round that wants it
  uint32_t *steps[2];    // those that are left, and those that are left after this round
  int64_t *counts;       // [round]: number of steps that are left
  int64_t n;
  int32_t round;         // of the launch; the first one takes all steps
  RandomStream stream;
};

#if PLAIT_KERNELS
class Shuffle {
 public:
  PLAIT_DEVICE Shuffle(Thread &t, const ShuffleArgs &a)
      : a_(a),
        elements_(t.global<int64_t>(a.elements)),
        claims_(t.global<uint64_t>(a.claims)),
        stream_(stream_of_run(t, a.stream)) {}
  PLAIT_DEVICE int64_t partner(int64_t i) const {
    const RandomWords w = philox(stream_.seed, stream_.offset + uint64_t(i / 2), 0);
    return i + int64_t(below(w, int(i % 2), uint64_t(a_.n - i)));
  }
  // Claims of later rounds are smaller than those of earlier ones.
  PLAIT_DEVICE uint64_t claim(int64_t i, int64_t round) const {
    return uint64_t(kMostRounds - round) << 32 | uint64_t(i);
  }
  PLAIT_DEVICE void reserve(int64_t i, int64_t round) const {
    claims_.minimum(i, claim(i, round));
    claims_.minimum(partner(i), claim(i, round));
  }
  PLAIT_DEVICE bool commit(int64_t i, int64_t round) const {
    const int64_t j = partner(i);
    if (claims_.load(i) != claim(i, round) || claims_.load(j) != claim(i, round)) return false;
    const int64_t x = elements_.load(i);
    elements_.store(i, elements_.load(j));
    elements_.store(j, x);
    return true;
  }

 private:
  const ShuffleArgs &a_;
  Global<int64_t> elements_;
  Global<uint64_t> claims_;
  RandomStream stream_;
};

template <class T>
PLAIT_DEVICE void shuffle_reserve(Thread &t, const ShuffleArgs &a) {
  const Shuffle s(t, a);
  const auto steps = t.global<const uint32_t>(a.steps[0]);
  const int64_t count = a.round ? t.global<const int64_t>(a.counts).load(a.round) : a.n;
  for (int64_t k = t.index(); k < count; k += t.stride())
    s.reserve(a.round ? int64_t(steps.load(k)) : k, a.round);
}

template <class T>
PLAIT_DEVICE void shuffle_commit(Thread &t, const ShuffleArgs &a) {
  const Shuffle s(t, a);
  const auto steps = t.global<const uint32_t>(a.steps[0]);
  const auto left = t.global<uint32_t>(a.steps[1]);
  const auto counts = t.global<T>(a.counts);
  const int64_t count = a.round ? counts.load(a.round) : a.n;
  for (int64_t k = t.index(); k < count; k += t.stride()) {
    const int64_t i = a.round ? int64_t(steps.load(k)) : k;
    // the order of those that are left does not count
    if (!s.commit(i, a.round)) left.store(counts.add(a.round + 1, 1), uint32_t(i));
  }
}

// One block does what is left.
template <class T>
PLAIT_DEVICE void shuffle_rest(Block &t, const ShuffleArgs &a) {
  const Shuffle s(t, a);
  const auto left_count = t.shared<uint32_t>(2);
  int64_t count = a.round ? t.global<const T>(a.counts).load(a.round) : a.n;
  if (t.thread() < 2) left_count.store(t.thread(), 0);
  t.barrier();
  for (int64_t round = a.round; count > 0; round++) {
    const int now = int(round - a.round) % 2;
    const bool all = round == 0;  // no list was written yet
    const auto steps = t.global<const uint32_t>(a.steps[now]);
    const auto left = t.global<uint32_t>(a.steps[1 - now]);
    for (int64_t k = t.thread(); k < count; k += kThreads)
      s.reserve(all ? k : int64_t(steps.load(k)), round);
    t.barrier();
    for (int64_t k = t.thread(); k < count; k += kThreads) {
      const int64_t i = all ? k : int64_t(steps.load(k));
      if (!s.commit(i, round)) left.store(left_count.add(now, 1), uint32_t(i));
    }
    t.barrier();
    count = left_count.load(now);
    if (t.thread() == 0) left_count.store(1 - now, 0);
    t.barrier();
  }
}
#endif

#define PLAIT_EACH_INDEX(X, ...) X(i64, int64_t, __VA_ARGS__)
PLAIT_DEVICE_KERNEL(shuffle_reserve, ShuffleArgs, kThreads, INDEX);
PLAIT_DEVICE_KERNEL(shuffle_commit, ShuffleArgs, kThreads, INDEX);
PLAIT_DEVICE_KERNEL(shuffle_rest, ShuffleArgs, kThreads, INDEX);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/random.h"

namespace plait::cuda {
namespace {

plait_status randperm(plait_call *c) {  // randperm(n, ...)
  const DLTensor *out = result(c);
  const int64_t n = numel(out);
  ShuffleArgs a{};
  PLAIT_TRY(reserve_stream(c, blocks_of_groups(n, 2), &a.stream));
  if (n == 0) return PLAIT_OK;
  if (n > UINT32_MAX)
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED, "`n` must be below 2**32; got %lld", (long long)n);
  int rounds = 0;
  while (n > 2048 && int64_t(1) << rounds / 2 < n) rounds++;
  DLTensor whole = *out;
  whole.dtype = DLDataType{kDLInt, 64, 1};
  DeviceWorkspace elements, claims, steps[2], counts;
  const bool is_direct = kind(out->dtype) == I64;
  if (!is_direct) PLAIT_TRY(elements.take(c, n * 8));
  if (!is_direct) whole.data = elements.data();
  PLAIT_TRY(claims.take(c, n * 8));
  for (DeviceWorkspace &each : steps) PLAIT_TRY(each.take(c, n * 4));
  PLAIT_TRY(counts.take(c, (rounds + 1) * 8));
  PLAIT_TRY(number_elements(c, data<int64_t>(&whole), n));
  PLAIT_TRY(fill_bytes(c, claims.data(), 0xff, n * 8));
  PLAIT_TRY(fill_bytes(c, counts.data(), 0, (rounds + 1) * 8));
  a.elements = data<int64_t>(&whole), a.claims = claims.data<uint64_t>();
  a.counts = counts.data<int64_t>(), a.n = n;
  int64_t most = n;  // steps that are left are fewer in each round
  for (; a.round < rounds; a.round++, most = most / 2 + 1) {
    a.steps[0] = steps[a.round % 2].data<uint32_t>();
    a.steps[1] = steps[1 - a.round % 2].data<uint32_t>();
    const int64_t blocks = blocks_for(c, most, kThreads);
    PLAIT_TRY(launch(c, shuffle_reserve_kernel, I64, a, blocks, kThreads));
    PLAIT_TRY(launch(c, shuffle_commit_kernel, I64, a, blocks, kThreads));
  }
  a.steps[0] = steps[a.round % 2].data<uint32_t>();
  a.steps[1] = steps[1 - a.round % 2].data<uint32_t>();
  PLAIT_TRY(launch(c, shuffle_rest_kernel, I64, a, 1, kThreads, 8));
  return is_direct ? PLAIT_OK : copy_tensor(c, out, &whole);
}
PLAIT_KERNEL("randperm", randperm);

}  // namespace
}  // namespace plait::cuda
#endif
