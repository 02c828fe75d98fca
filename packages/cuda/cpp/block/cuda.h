// The kernels' vocabulary (block.h) as nvcc compiles it.
#pragma once
#include "block/block.h"

#define PLAIT_DEVICE __device__ __forceinline__
#define PLAIT_DEVICE_CALLED __device__ __noinline__

// One entry point for each element type, called name_f32 and so on.
#define PLAIT_DEVICE_KERNEL(name, Args, max_threads, kinds) \
  PLAIT_EACH_##kinds(PLAIT_DEVICE_INSTANCE, name, Args, max_threads, 512) static_assert(true, "")
#define PLAIT_DEVICE_TILE_KERNEL(name, Args, max_threads, kinds) \
  PLAIT_EACH_##kinds(PLAIT_DEVICE_TILE_INSTANCE, name, Args, max_threads) static_assert(true, "")
#define PLAIT_DEVICE_TILE_INSTANCE(suffix, T, name, Args, max_threads) \
  PLAIT_DEVICE_INSTANCE(suffix, T, name, Args, max_threads, (sizeof(T) >= 8 ? 256 : 512))
// At least `resident` threads fit on a multiprocessor, so that each has at most 65536 / resident
// registers.
#define PLAIT_DEVICE_INSTANCE(suffix, T, name, Args, max_threads, resident)         \
  extern "C" __global__ void __launch_bounds__(                                     \
      max_threads, (max_threads) < (resident) ? (resident) / (max_threads) : 1)     \
      name##_##suffix(const __grid_constant__ Args a) {                             \
    static_assert(sizeof(Args) <= 4096, "arguments of a kernel have at most 4 KB"); \
    ::plait::cuda::run_kernel<name<T>, Args>(a);                                    \
  }

namespace plait::cuda {

template <class T>
class Global {
 public:
  using Element = std::remove_const_t<T>;
  PLAIT_DEVICE explicit Global(T *data) : data_(data) {}
  PLAIT_DEVICE Element load(int64_t i) const { return data_[i]; }
  PLAIT_DEVICE void store(int64_t i, Element v) const { data_[i] = v; }
  PLAIT_DEVICE void store_same(int64_t i, Element v) const { data_[i] = v; }
  template <int N>
  PLAIT_DEVICE Vector<Element, N> load_vector(int64_t i) const {
    return *reinterpret_cast<const Vector<Element, N> *>(data_ + i);
  }
  template <int N>
  PLAIT_DEVICE void store_vector(int64_t i, const Vector<Element, N> &v) const {
    *reinterpret_cast<Vector<Element, N> *>(data_ + i) = v;
  }
  PLAIT_DEVICE Element add(int64_t i, Element v) const {
    if constexpr (std::is_same_v<Element, float> || std::is_same_v<Element, double>) {
      return atomicAdd(data_ + i, v);
    } else if constexpr (std::is_integral_v<Element> && sizeof(Element) >= 4) {
      using Word = std::conditional_t<sizeof(Element) == 8, unsigned long long, unsigned int>;
      return Element(atomicAdd(reinterpret_cast<Word *>(data_ + i), Word(v)));
    } else {
      return update(i, [v](Compute<Element> x) { return Compute<Element>(x + widen(v)); });
    }
  }
  PLAIT_DEVICE Element minimum(int64_t i, Element v) const {
    return update(i, [v](Compute<Element> x) {
      const auto y = widen(v);
      return y < x || y != y ? y : x;
    });
  }
  PLAIT_DEVICE Element maximum(int64_t i, Element v) const {
    if constexpr (std::is_same_v<Element, int32_t> || std::is_same_v<Element, uint32_t>)
      return atomicMax(data_ + i, v);
    return update(i, [v](Compute<Element> x) {
      const auto y = widen(v);
      return y > x || y != y ? y : x;
    });
  }
  PLAIT_DEVICE Element exchange(int64_t i, Element v) const {
    return update(i, [v](Compute<Element>) { return widen(v); });
  }
  PLAIT_DEVICE Element compare_exchange(int64_t i, Element expected, Element v) const {
    return update(
        i, [expected, v](Compute<Element> x) { return x == widen(expected) ? widen(v) : x; });
  }
  // Replaces element i by f(element) as one step, and returns what it was. Elements of 1, 2, 4 and
  // 8 bytes.
  template <class F>
  PLAIT_DEVICE Element update(int64_t i, F f) const;

 private:
  T *data_;
};

template <class T>
class Shared {
 public:
  PLAIT_DEVICE explicit Shared(T *data) : data_(data) {}
  PLAIT_DEVICE T load(int64_t i) const { return data_[i]; }
  PLAIT_DEVICE void store(int64_t i, T v) const { data_[i] = v; }
  template <int N>
  PLAIT_DEVICE Vector<T, N> load_vector(int64_t i) const {
    return *reinterpret_cast<const Vector<T, N> *>(data_ + i);
  }
  template <int N>
  PLAIT_DEVICE void store_vector(int64_t i, const Vector<T, N> &v) const {
    *reinterpret_cast<Vector<T, N> *>(data_ + i) = v;
  }
  PLAIT_DEVICE T add(int64_t i, T v) const { return Global<T>(data_).add(i, v); }

 private:
  T *data_;
};

class Thread {
 public:
  PLAIT_DEVICE int thread() const { return int(threadIdx.x); }
  PLAIT_DEVICE int threads() const { return int(blockDim.x); }
  PLAIT_DEVICE int64_t block() const { return blockIdx.x; }
  PLAIT_DEVICE int64_t blocks() const { return gridDim.x; }
  PLAIT_DEVICE int block_y() const { return int(blockIdx.y); }
  PLAIT_DEVICE int block_z() const { return int(blockIdx.z); }
  PLAIT_DEVICE int64_t index() const { return block() * threads() + thread(); }
  PLAIT_DEVICE int64_t stride() const { return blocks() * threads(); }
  template <class T, class P>
  PLAIT_DEVICE Global<T> global(P *data, int64_t n = -1) const {
    (void)n;
    return Global<T>(reinterpret_cast<T *>(data));
  }
  PLAIT_DEVICE void fail(const Fault &fault, uint32_t code, double value, double low = 0,
                         double high = 0) const {
    FaultRecord *r = fault.record;
    if (atomicCAS_system(&r->claimed, 0u, 1u) != 0) return;  // another thread reports
    r->launch = fault.launch;
    r->value = value, r->low = low, r->high = high;
    __threadfence_system();
    *const_cast<volatile uint32_t *>(&r->code) = code;
  }
};

class Block : public Thread {
 public:
  PLAIT_DEVICE int lane() const { return int(threadIdx.x) % kWarp; }
  PLAIT_DEVICE int warp() const { return int(threadIdx.x) / kWarp; }
  PLAIT_DEVICE int warps() const { return (threads() + kWarp - 1) / kWarp; }
  PLAIT_DEVICE void barrier() { __syncthreads(); }
  PLAIT_DEVICE void warp_barrier() { __syncwarp(); }
  template <class T>
  PLAIT_DEVICE T shuffle(T v, int lane) {
    return exchange(v, [lane](uint32_t u) { return __shfl_sync(~0u, u, lane); });
  }
  template <class T>
  PLAIT_DEVICE T shuffle_down(T v, int by) {
    return exchange(v, [by](uint32_t u) { return __shfl_down_sync(~0u, u, by); });
  }
  template <class T>
  PLAIT_DEVICE T shuffle_up(T v, int by) {
    return exchange(v, [by](uint32_t u) { return __shfl_up_sync(~0u, u, by); });
  }
  template <class T>
  PLAIT_DEVICE T shuffle_xor(T v, int mask) {
    return exchange(v, [mask](uint32_t u) { return __shfl_xor_sync(~0u, u, mask); });
  }
  PLAIT_DEVICE uint32_t ballot(bool v) { return __ballot_sync(~0u, v); }
  template <class T>
  PLAIT_DEVICE Shared<T> shared(int64_t n) {
    extern __shared__ __align__(16) char plait_shared_memory[];
    used_ = (used_ + 15) / 16 * 16;  // vectors of any element are aligned
    T *data = reinterpret_cast<T *>(plait_shared_memory + used_);
    used_ += n * int64_t(sizeof(T));
    return Shared<T>(data);
  }

 private:
  template <class T, class F>
  PLAIT_DEVICE T exchange(T v, F f) {  // a value of any size, 4 bytes at a time
    constexpr int kWords = (sizeof(T) + 3) / 4;
    uint32_t words[kWords] = {};
    memcpy(words, &v, sizeof v);
#pragma unroll
    for (int i = 0; i < kWords; i++) words[i] = f(words[i]);
    memcpy(&v, words, sizeof v);
    return v;
  }
  int64_t used_ = 0;
};

template <class T>
template <class F>
PLAIT_DEVICE typename Global<T>::Element Global<T>::update(int64_t i, F f) const {
  // 1 and 2 bytes are replaced within the word that they lie in
  constexpr int kSize = sizeof(Element) < 4 ? 4 : int(sizeof(Element));
  using Word = std::conditional_t<kSize == 8, unsigned long long, unsigned int>;
  static_assert(sizeof(Element) <= 8, "elements of an atomic operation have at most 8 bytes");
  const uintptr_t address = reinterpret_cast<uintptr_t>(data_ + i);
  Word *word = reinterpret_cast<Word *>(address / kSize * kSize);
  const int at = int(address % kSize);
  Word before = *const_cast<volatile Word *>(word), seen;
  Element old;
  do {
    seen = before;
    memcpy(&old, reinterpret_cast<const char *>(&seen) + at, sizeof old);
    const Element v = narrow<Element>(f(widen(old)));
    Word after = seen;
    memcpy(reinterpret_cast<char *>(&after) + at, &v, sizeof v);
    before = atomicCAS(word, seen, after);
  } while (before != seen);
  return old;
}

// Calls the kernel with a Thread or a Block, by its first parameter.
template <auto kernel, class A>
PLAIT_DEVICE void run_kernel(const A &args) {
  if constexpr (std::is_same_v<decltype(kernel), void (*)(Thread &, const A &)>) {
    Thread t;
    kernel(t, args);
  } else {
    Block b;
    kernel(b, args);
  }
}

}  // namespace plait::cuda
