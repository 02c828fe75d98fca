// The kernels' vocabulary (block.h) as a compiler of the host compiles it, for the emulation of the
// driver. Each access is checked, and a wrong one ends the kernel with a text that names its line.
// docs/design/0050 says what is checked; emulation/kernels has what is not inline.
#pragma once
#include <type_traits>

#include "block/block.h"
#include "emulation/library.h"

#define PLAIT_DEVICE inline
#define PLAIT_DEVICE_CALLED inline
// One record for each element type, called name_f32 and so on. The linker collects them.
#define PLAIT_DEVICE_KERNEL(name, Args, max_threads, kinds) \
  PLAIT_EACH_##kinds(PLAIT_DEVICE_INSTANCE, name, Args, max_threads) static_assert(true, "")
#define PLAIT_DEVICE_INSTANCE(suffix, T, name, Args, max_threads)                                  \
  static_assert(sizeof(Args) <= 4096, "arguments of a kernel have at most 4 KB");                  \
  static_assert(max_threads > 0 && max_threads <= 1024, "a block has at most 1024 threads");       \
  __attribute__((                                                                                  \
      section("plait_device_kernels"), used,                                                       \
      aligned(                                                                                     \
          alignof(::plait::cuda::emulation::Entry)))) static const ::plait::cuda::emulation::Entry \
      name##_##suffix = {#name "_" #suffix,                                                        \
                         __FILE__,                                                                 \
                         max_threads,                                                              \
                         uint32_t(sizeof(Args)),                                                   \
                         ::plait::cuda::emulation::takes_block<decltype(&name<T>), Args>,          \
                         &::plait::cuda::emulation::run_threads<&name<T>, Args>};

// Where in the source a call stands: parameters with defaults that the caller leaves out.
#define PLAIT_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace plait::cuda {
class Thread;
}

namespace plait::cuda::emulation {

struct Site {
  const char *file;
  int line;
};

enum Access : int { kRead = 0, kWrite = 1, kAtomic = 2 };
enum Meeting : int { kBarrier, kWarpBarrier, kShuffle, kBallot };

struct BlockState {
  const Launch *launch;
  uint32_t x, y, z;
  Range recent[4];  // memory that was asked for last
  unsigned next_recent;
  struct Shadow *shadow;  // where accesses of global memory are recorded, or NULL
  struct Team *team;  // what the threads of the block share
};

// A Global as the functions below see it.
struct GlobalView {
  BlockState *state;
  uintptr_t address;
  int64_t n;  // elements; -1: all that follow
  int32_t size, alignment, thread;
};

struct GlobalRange {
  char *host;  // of the element 0
  int64_t low;  // the first element in the memory
  uint64_t count;  // elements that need no further look
};
GlobalRange global_range(const GlobalView &view);
// Looks closer at an access of `count` elements from i: returns if it is allowed. `same`: NULL, or
// the value that several threads may write.
void check_global(const GlobalView &view, int64_t i, int count, Access access, Site site,
                  const void *same = nullptr);

struct SharedRange {
  uint32_t offset, count;  // bytes, elements
};
SharedRange take_shared(BlockState &state, int thread, uint32_t *used, int64_t n, int size,
                        Site site);
// The address of `count` elements of shared memory from i; the access is recorded.
char *touch_shared(BlockState &state, int thread, const SharedRange &range, int64_t i, int size,
                   int count, Access access, Site site);

// Waits for the other threads of the block, or the other lanes of the warp.
void meet_block(BlockState &state, int thread, Site site);
// What each lane has given.
constexpr int kSlot = 32;
struct Slots {
  char (*bytes)[kSlot];
  int lanes;
};
Slots meet_warp(BlockState &state, int thread, Meeting kind, const void *value, int size,
                Site site);

template <class F, class Args>
constexpr bool takes_block = !std::is_same_v<F, void (*)(Thread &, const Args &)>;

}  // namespace plait::cuda::emulation

namespace plait::cuda {

template <class T>
class Global {
 public:
  using Element = std::remove_const_t<T>;
  explicit Global(const emulation::GlobalView &view)
      : view_(view), range_(emulation::global_range(view)) {}

  Element load(int64_t i, PLAIT_SITE) const {
    check(i, 1, emulation::kRead, file, line);
    Element v;
    __builtin_memcpy(&v, at(i), sizeof v);
    return v;
  }
  void store(int64_t i, Element v, PLAIT_SITE) const {
    static_assert(!std::is_const_v<T>, "this memory is read only");
    check(i, 1, emulation::kWrite, file, line);
    __builtin_memcpy(at(i), &v, sizeof v);
  }
  void store_same(int64_t i, Element v, PLAIT_SITE) const {
    static_assert(!std::is_const_v<T>, "this memory is read only");
    check(i, 1, emulation::kWrite, file, line, &v);
    __builtin_memcpy(at(i), &v, sizeof v);
  }
  template <int N>
  Vector<Element, N> load_vector(int64_t i, PLAIT_SITE) const {
    static_assert(sizeof(Element) * N <= 16, "a vector has at most 16 bytes");
    check(i, N, emulation::kRead, file, line);
    Vector<Element, N> v;
    __builtin_memcpy(&v, at(i), sizeof v);
    return v;
  }
  template <int N>
  void store_vector(int64_t i, const Vector<Element, N> &v, PLAIT_SITE) const {
    static_assert(!std::is_const_v<T>, "this memory is read only");
    static_assert(sizeof(Element) * N <= 16, "a vector has at most 16 bytes");
    check(i, N, emulation::kWrite, file, line);
    __builtin_memcpy(at(i), &v, sizeof v);
  }
  Element add(int64_t i, Element v, PLAIT_SITE) const {
    return update(
        i, [v](Compute<Element> x) { return Compute<Element>(x + widen(v)); }, file, line);
  }
  Element minimum(int64_t i, Element v, PLAIT_SITE) const {
    const auto y = widen(v);
    return update(i, [y](Compute<Element> x) { return y < x || y != y ? y : x; }, file, line);
  }
  Element maximum(int64_t i, Element v, PLAIT_SITE) const {
    const auto y = widen(v);
    return update(i, [y](Compute<Element> x) { return y > x || y != y ? y : x; }, file, line);
  }
  Element exchange(int64_t i, Element v, PLAIT_SITE) const {
    const auto y = widen(v);
    return update(i, [y](Compute<Element>) { return y; }, file, line);
  }
  Element compare_exchange(int64_t i, Element expected, Element v, PLAIT_SITE) const {
    const auto y = widen(v), e = widen(expected);
    return update(i, [y, e](Compute<Element> x) { return x == e ? y : x; }, file, line);
  }
  // Replaces element i by f(element) as one step, and returns what it was.
  template <class F>
  Element update(int64_t i, F f, PLAIT_SITE) const {
    static_assert(!std::is_const_v<T>, "this memory is read only");
    check(i, 1, emulation::kAtomic, file, line);
    return update_at(at(i), f);
  }

 private:
  template <class>
  friend class Shared;
  char *at(int64_t i) const { return range_.host + i * int64_t(sizeof(Element)); }
  void check(int64_t i, int count, emulation::Access access, const char *file, int line,
             const void *same = nullptr) const {
    const uint64_t first = uint64_t(i - range_.low);
    const uint64_t unaligned =
        count == 1 ? 0 : reinterpret_cast<uintptr_t>(at(i)) % (sizeof(Element) * size_t(count));
    if (PLAIT_LIKELY(first < range_.count && range_.count - first >= uint64_t(count) && !unaligned))
      return;
    emulation::check_global(view_, i, count, access, {file, line}, same);
  }
  template <class F>
  static Element update_at(char *p, F f) {
    static_assert(sizeof(Element) <= 8, "elements of an atomic operation have at most 8 bytes");
    using Word = std::conditional_t<
        sizeof(Element) == 8, uint64_t,
        std::conditional_t<sizeof(Element) == 4, uint32_t,
                           std::conditional_t<sizeof(Element) == 2, uint16_t, uint8_t>>>;
    Word *word = reinterpret_cast<Word *>(p);
    Word seen = __atomic_load_n(word, __ATOMIC_ACQUIRE), after;
    Element old;
    do {
      __builtin_memcpy(&old, &seen, sizeof old);
      const Element v = narrow<Element>(f(widen(old)));
      after = 0;
      __builtin_memcpy(&after, &v, sizeof v);
    } while (!__atomic_compare_exchange_n(word, &seen, after, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return old;
  }

  emulation::GlobalView view_;
  emulation::GlobalRange range_;
};

template <class T>
class Shared {
 public:
  Shared(emulation::BlockState &state, int thread, const emulation::SharedRange &range)
      : state_(&state), thread_(thread), range_(range) {}
  T load(int64_t i, PLAIT_SITE) const {
    T v;
    __builtin_memcpy(&v, at(i, 1, emulation::kRead, file, line), sizeof v);
    return v;
  }
  void store(int64_t i, T v, PLAIT_SITE) const {
    __builtin_memcpy(at(i, 1, emulation::kWrite, file, line), &v, sizeof v);
  }
  template <int N>
  Vector<T, N> load_vector(int64_t i, PLAIT_SITE) const {
    static_assert(sizeof(T) * N <= 16, "a vector has at most 16 bytes");
    Vector<T, N> v;
    __builtin_memcpy(&v, at(i, N, emulation::kRead, file, line), sizeof v);
    return v;
  }
  template <int N>
  void store_vector(int64_t i, const Vector<T, N> &v, PLAIT_SITE) const {
    static_assert(sizeof(T) * N <= 16, "a vector has at most 16 bytes");
    __builtin_memcpy(at(i, N, emulation::kWrite, file, line), &v, sizeof v);
  }
  T add(int64_t i, T v, PLAIT_SITE) const {
    return Global<T>::update_at(at(i, 1, emulation::kAtomic, file, line),
                                [v](Compute<T> x) { return Compute<T>(x + widen(v)); });
  }

 private:
  char *at(int64_t i, int count, emulation::Access access, const char *file, int line) const {
    return emulation::touch_shared(*state_, thread_, range_, i, int(sizeof(T)), count, access,
                                   {file, line});
  }
  emulation::BlockState *state_;
  int thread_;
  emulation::SharedRange range_;
};

class Thread {
 public:
  Thread(emulation::BlockState &state, int thread) : state_(&state), thread_(thread) {}
  Thread(const Thread &) = delete;
  int thread() const { return thread_; }
  int threads() const { return int(state_->launch->threads); }
  int64_t block() const { return state_->x; }
  int64_t blocks() const { return state_->launch->grid[0]; }
  int block_y() const { return int(state_->y); }
  int block_z() const { return int(state_->z); }
  int64_t index() const { return block() * threads() + thread(); }
  int64_t stride() const { return blocks() * threads(); }
  template <class T, class P>
  Global<T> global(P *data, int64_t n = -1) const {
    return Global<T>({state_, reinterpret_cast<uintptr_t>(data), n, int32_t(sizeof(T)),
                      int32_t(alignof(T)), thread_});
  }
  void fail(const Fault &fault, uint32_t code, double value, double low = 0,
            double high = 0) const {
    FaultRecord *r = fault.record;
    uint32_t unclaimed = 0;
    if (!__atomic_compare_exchange_n(&r->claimed, &unclaimed, 1u, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
      return;  // another thread reports
    r->launch = fault.launch;
    r->value = value, r->low = low, r->high = high;
    __atomic_store_n(&r->code, code, __ATOMIC_RELEASE);
  }

 protected:
  emulation::BlockState *state_;
  int thread_;
};

class Block : public Thread {
 public:
  using Thread::Thread;
  int lane() const { return thread_ % kWarp; }
  int warp() const { return thread_ / kWarp; }
  int warps() const { return (threads() + kWarp - 1) / kWarp; }
  void barrier(PLAIT_SITE) { emulation::meet_block(*state_, thread_, {file, line}); }
  void warp_barrier(PLAIT_SITE) {
    emulation::meet_warp(*state_, thread_, emulation::kWarpBarrier, nullptr, 0, {file, line});
  }
  template <class T>
  T shuffle(T v, int lane, PLAIT_SITE) {
    return exchange(v, lane & (kWarp - 1), file, line);
  }
  template <class T>
  T shuffle_down(T v, int by, PLAIT_SITE) {
    return exchange(v, lane() + by < kWarp ? lane() + by : lane(), file, line);
  }
  template <class T>
  T shuffle_up(T v, int by, PLAIT_SITE) {
    return exchange(v, lane() - by >= 0 ? lane() - by : lane(), file, line);
  }
  template <class T>
  T shuffle_xor(T v, int mask, PLAIT_SITE) {
    return exchange(v, (lane() ^ mask) & (kWarp - 1), file, line);
  }
  uint32_t ballot(bool v, PLAIT_SITE) {
    const auto slots =
        emulation::meet_warp(*state_, thread_, emulation::kBallot, &v, 1, {file, line});
    uint32_t bits = 0;
    for (int i = 0; i < slots.lanes; i++) bits |= uint32_t(slots.bytes[i][0] != 0) << i;
    return bits;
  }
  template <class T>
  Shared<T> shared(int64_t n, PLAIT_SITE) {
    return Shared<T>(
        *state_, thread_,
        emulation::take_shared(*state_, thread_, &used_, n, int(sizeof(T)), {file, line}));
  }

 private:
  template <class T>
  T exchange(T v, int from, const char *file, int line) {
    static_assert(sizeof(T) <= emulation::kSlot,
                  "a value that lanes exchange has at most 32 bytes");
    const auto slots = emulation::meet_warp(*state_, thread_, emulation::kShuffle, &v,
                                            int(sizeof(T)), {file, line});
    __builtin_memcpy(&v, slots.bytes[from], sizeof v);
    return v;
  }
  uint32_t used_ = 0;
};

namespace emulation {

// Calls the kernel with a Thread or a Block, by its first parameter.
template <auto kernel, class Args>
void run_threads(BlockState &state, int first, int last, const void *args) {
  using Role = std::conditional_t<takes_block<decltype(kernel), Args>, Block, Thread>;
  for (int i = first; i < last; i++) {
    Role t(state, i);
    kernel(t, *static_cast<const Args *>(args));
  }
}

}  // namespace emulation
}  // namespace plait::cuda
