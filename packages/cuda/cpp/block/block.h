// What kernels are written with: one source for nvcc and for a compiler of the host, whose kernels
// run in the emulation of the driver. docs/design/0050 explains it.
//
//     struct ScaleArgs {
//       const void *x;
//       void *y;
//       int64_t n;
//       double factor;
//     };
//     #if PLAIT_KERNELS
//     template <class T>
//     PLAIT_DEVICE void scale(Thread &t, const ScaleArgs &a) {
//       const auto x = t.global<const T>(a.x);
//       const auto y = t.global<T>(a.y);
//       for (int64_t i = t.index(); i < a.n; i += t.stride())
//         y.store(i, narrow<T>(widen(x.load(i)) * Compute<T>(a.factor)));
//     }
//     #endif
//     PLAIT_DEVICE_KERNEL(scale, ScaleArgs, 256, FLOATING);
//
// A kernel is a template over the element type with one struct of arguments, at most 4 KB, which
// both compilers and the host see. It gets a `Thread` if its threads are independent, or a `Block`
// if they use barriers, shuffles or shared memory; those are in docs/design/0050:
//
//   Thread   thread() threads() block() blocks() block_y() block_z(): numbers in the launch
//            index() stride(): number of this thread, and of all threads, in the x direction
//            global<T>(pointer): memory of the device; global<T>(pointer, n) checks n elements
//            fail(a.fault, code, value, low, high): report an error; the first one counts
//   Block    lane() warp() warps(); barrier(); warp_barrier()
//            shuffle(v, lane) shuffle_down(v, by) shuffle_xor(v, mask) ballot(bool)
//            shared<T>(n): memory that the block shares; each call gives the next n elements of the
//            launch's dynamic shared memory, in the same order on all threads
//   Global   load(i) store(i, v); load_vector<N>(i) store_vector<N>(i, v): N elements from the
//            element i, whose address must be a multiple of N * sizeof(T), at most 16 bytes
//            store_same(i, v): as `store`, where several threads may store equal values
//            add(i, v) minimum(i, v) maximum(i, v) exchange(i, v) compare_exchange(i, expected, v):
//            atomic; they return what the element was
//   Shared   load(i) store(i, v) add(i, v); load_vector<N>(i) store_vector<N>(i, v)
//            the first element of each `shared` is aligned to 16 bytes
//
// All threads of a block must reach each barrier, and all lanes of a warp each shuffle.
#pragma once
#include "block/types.h"

// PLAIT_KERNELS: kernels are compiled (by nvcc, or for the emulation). PLAIT_HOST: the functions of
// operators are, which launch kernels.
#ifndef PLAIT_KERNELS
#define PLAIT_KERNELS 0
#endif
#ifndef PLAIT_HOST
#define PLAIT_HOST 0
#endif

namespace plait::cuda {

constexpr int kWarp = 32;

// What a kernel reports to the host (host/faults.h makes the text). The first report counts.
enum FaultCode : uint32_t {
  kNoFault = 0,
  kIndexFault = 1,  // index `value` is not in [low, high)
  kBoundsFault = 2,  // element `value` is not in [low, high]
  kSingularFault = 3,  // element `low` of the diagonal of matrix `value` of a batch is 0
  kPivotFault = 4,  // row `value` of a pivot is not in [low, high]
};
struct FaultRecord {  // in memory of the host that the device writes
  uint32_t code;
  uint32_t claimed;  // by the thread that reports
  uint64_t launch;
  double value, low, high;
};
struct Fault {  // in the arguments of a kernel that can fail; filled by host/launch.h
  FaultRecord *record;
  uint64_t launch;
};

template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  T at[N];
};

}  // namespace plait::cuda

#if PLAIT_KERNELS
#if defined(__CUDACC__)
#include "block/cuda.h"
#else
#include "block/emulated.h"
#endif
#else
#define PLAIT_DEVICE inline
#include "host/launch.h"
#endif

// Functions of kernels are PLAIT_DEVICE, whose code is copied to each use. PLAIT_DEVICE_CALLED is
// for long ones with many uses in a kernel: there is one copy, which is called.
//
// A thread has at most 128 registers. PLAIT_DEVICE_TILE_KERNEL is for kernels that keep tiles in
// registers: with elements of 8 bytes or more, a thread has up to 255.
#ifndef PLAIT_DEVICE_TILE_KERNEL
#define PLAIT_DEVICE_TILE_KERNEL PLAIT_DEVICE_KERNEL
#endif
