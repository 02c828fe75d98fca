// Included by every kernel file. The sources are compiled once for each instruction set, so neither
// this file nor the kernels use inline functions of the C++ library on hot paths, and every symbol
// is hidden.
#pragma once
#include <plait/abi.h>

#include <cstdint>
#include <cstring>

#define PLAIT_INLINE inline __attribute__((always_inline))
#define PLAIT_NOINLINE __attribute__((noinline))
#define PLAIT_LIKELY(x) __builtin_expect(!!(x), 1)
#define PLAIT_UNLIKELY(x) __builtin_expect(!!(x), 0)

// Registers a kernel: `PLAIT_KERNEL("softmax", softmax);` in any file of the library. The linker
// collects these records in one array; nothing runs before the plug-in's init function reads it. A
// kernel for special cases, which declines all others, is registered with PLAIT_KERNEL_SPECIAL: it
// is called before the general one.
#if defined(__wasm__)  // whose linker drops sections that no function refers to
#define PLAIT_KERNEL_IN(part, id, op, function)                                           \
  static ::plait::core::ListedRegistration id(part,                                       \
                                              {::plait::core::selects(op) ? op : nullptr, \
                                               ::plait::core::selects(op) ? function : nullptr})
#else
#define PLAIT_KERNEL_IN(part, id, op, function)                                \
  __attribute__((section(part), used,                                          \
                 aligned(16))) static const ::plait::core::Registration id = { \
      ::plait::core::selects(op) ? op : nullptr, ::plait::core::selects(op) ? function : nullptr}
#endif
#define PLAIT_KERNEL_JOIN(a, b) a##b
#define PLAIT_KERNEL_ID(n) PLAIT_KERNEL_JOIN(registration_, n)
#define PLAIT_KERNEL(op, function) \
  PLAIT_KERNEL_IN("plait_kernels", PLAIT_KERNEL_ID(__COUNTER__), op, function)
#define PLAIT_KERNEL_SPECIAL(op, function) \
  PLAIT_KERNEL_IN("plait_special", PLAIT_KERNEL_ID(__COUNTER__), op, function)

namespace plait::scalar::math {
template <class T>
struct Complex;  // pointwise/complex.h
}
namespace plait::core {

struct alignas(16) Registration {  // NULL for an operator that the build leaves out
  const char *op;
  plait_kernel kernel;
};

#if defined(__wasm__)
struct ListedRegistration {  // enters a list before the module's first function is called
  ListedRegistration(const char *part_name, Registration r) : part(part_name), record(r) {
    *end = this;
    end = &next;
  }
  const char *part;
  Registration record;
  ListedRegistration *next = nullptr;
  static ListedRegistration *first, **end;
};
#endif

// Dtypes.

enum Kind : int {
  Bool,
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  U64,
  I64,
  F32,
  F64,
  F16,
  BF16,
  C64,
  C128,
  F8E4M3,  // float8: moved and converted only
  F8E4M3Z,
  F8E5M2,
  F8E5M2Z,
  F8E8M0,
  kKinds,
  Unknown = -1
};

// A build for one program (`plait_graph.bundle`) has a header with what it needs. Code for the rest
// is not instantiated, or not referred to, and the linker drops it.
struct ConvolutionSizes {
  int64_t window;  // the side of a square; 0: not a square
  int64_t images, channels, filters;  // channels and filters of a group
  int64_t rows, columns;  // of results
  int64_t groups;
  bool is_known = true;  // false: the window alone is known
};
}  // namespace plait::core
#ifdef PLAIT_SELECTION
#include PLAIT_SELECTION
#else
namespace plait::core {
constexpr bool kSelectsSettings = true;  // modes, which plait_runtime::settings turns on
constexpr bool selects(const char *) { return true; }  // an operator
constexpr bool selects(Kind) { return true; }
// Whether a condition is true for the sizes of a convolution that the program has.
template <class Condition>
constexpr bool any_convolution(Condition) {
  return true;
}
}  // namespace plait::core
#endif
namespace plait::core {

constexpr int kReal = F64 + 1;  // the first kinds are real numbers with arithmetic of their own;
                                // halves compute as float32, complex numbers are C64 and C128
using Complex64 = scalar::math::Complex<float>;
using Complex128 = scalar::math::Complex<double>;

inline Kind kind(DLDataType d) {
  static const int8_t table[15][5] = {
      {I8, I16, I32, I64, -1},  {U8, U16, U32, U64, -1},   {-1, F16, F32, F64, -1},
      {-1, -1, -1, -1, -1},     {-1, BF16, -1, -1, -1},    {-1, -1, -1, C64, C128},
      {Bool, -1, -1, -1, -1},   {-1, -1, -1, -1, -1},      {-1, -1, -1, -1, -1},
      {-1, -1, -1, -1, -1},     {F8E4M3, -1, -1, -1, -1},  {F8E4M3Z, -1, -1, -1, -1},
      {F8E5M2, -1, -1, -1, -1}, {F8E5M2Z, -1, -1, -1, -1}, {F8E8M0, -1, -1, -1, -1}};
  const unsigned log = unsigned(__builtin_ctz(d.bits | 0x100)) - 3;
  return d.code < 15 && log < 5 ? Kind(table[d.code][log]) : Unknown;
}
constexpr int size_of(Kind k) {
  constexpr int8_t size[kKinds] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 2, 2, 8, 16, 1, 1, 1, 1, 1};
  return k == Unknown ? 0 : size[k];
}
constexpr bool selects_size(int size) {
  for (int k = 0; k < kKinds; k++)
    if (size_of(Kind(k)) == size && selects(Kind(k))) return true;
  return false;
}
template <class T>
constexpr bool is_float = false;
template <>
inline constexpr bool is_float<float> = true;
template <>
inline constexpr bool is_float<double> = true;
PLAIT_INLINE bool is_half(Kind k) {
  return (selects(F16) && k == F16) || (selects(BF16) && k == BF16);
}
constexpr bool kSelectsFloat8 =
    selects(F8E4M3) || selects(F8E4M3Z) || selects(F8E5M2) || selects(F8E5M2Z) || selects(F8E8M0);
PLAIT_INLINE bool is_float8(Kind k) { return kSelectsFloat8 && k >= F8E4M3 && k <= F8E8M0; }
PLAIT_INLINE bool is_complex_kind(Kind k) {
  return (selects(C64) && k == C64) || (selects(C128) && k == C128);
}

struct Bits128 {  // aligned as a complex number of two doubles is
  uint64_t word[2];
};

// Run the statements with T bound to the element type; other dtypes are left to the next provider.
#define PLAIT_CASE_IF(condition, k, type, ...) \
  case k:                                      \
    if constexpr (condition) {                 \
      using T = type;                          \
      __VA_ARGS__;                             \
      break;                                   \
    } else {                                   \
      return PLAIT_DECLINE;                    \
    }
#define PLAIT_CASE(k, type, ...) \
  PLAIT_CASE_IF(::plait::core::selects(::plait::core::k), k, type, __VA_ARGS__)
#define PLAIT_FLOATING(k, ...)           \
  switch (k) {                           \
    PLAIT_CASE(F32, float, __VA_ARGS__)  \
    PLAIT_CASE(F64, double, __VA_ARGS__) \
    default: return PLAIT_DECLINE;       \
  }
#define PLAIT_NUMERIC(k, ...)              \
  switch (k) {                             \
    PLAIT_CASE(F32, float, __VA_ARGS__)    \
    PLAIT_CASE(F64, double, __VA_ARGS__)   \
    PLAIT_CASE(U8, uint8_t, __VA_ARGS__)   \
    PLAIT_CASE(I8, int8_t, __VA_ARGS__)    \
    PLAIT_CASE(U16, uint16_t, __VA_ARGS__) \
    PLAIT_CASE(I16, int16_t, __VA_ARGS__)  \
    PLAIT_CASE(U32, uint32_t, __VA_ARGS__) \
    PLAIT_CASE(I32, int32_t, __VA_ARGS__)  \
    PLAIT_CASE(U64, uint64_t, __VA_ARGS__) \
    PLAIT_CASE(I64, int64_t, __VA_ARGS__)  \
    default: return PLAIT_DECLINE;         \
  }
#define PLAIT_COMPLEX(k, ...)                 \
  switch (k) {                                \
    PLAIT_CASE(C64, Complex64, __VA_ARGS__)   \
    PLAIT_CASE(C128, Complex128, __VA_ARGS__) \
    default: return PLAIT_DECLINE;            \
  }
// For kernels that only move elements: one instance for each size serves all dtypes.
#define PLAIT_CASE_OF_SIZE(size, type, ...) \
  PLAIT_CASE_IF(::plait::core::selects_size(size), size, type, __VA_ARGS__)
#define PLAIT_BY_SIZE(size, ...)                 \
  switch (size) {                                \
    PLAIT_CASE_OF_SIZE(1, uint8_t, __VA_ARGS__)  \
    PLAIT_CASE_OF_SIZE(2, uint16_t, __VA_ARGS__) \
    PLAIT_CASE_OF_SIZE(4, uint32_t, __VA_ARGS__) \
    PLAIT_CASE_OF_SIZE(8, uint64_t, __VA_ARGS__) \
    PLAIT_CASE_OF_SIZE(16, Bits128, __VA_ARGS__) \
    default: return PLAIT_DECLINE;               \
  }

// Arguments and results of a call.

inline const DLTensor *tensor(const plait_call *c, int i) {  // NULL: not given
  return c->in[i].tag == PLAIT_TENSOR ? &c->in[i].u.t->dl : nullptr;
}
inline DLTensor *result(const plait_call *c, int i = 0) { return &c->out[i].u.t->dl; }
inline int64_t integer(const plait_call *c, int i, int64_t absent = 0) {
  const plait_value &v = c->in[i];
  return v.tag == PLAIT_NONE ? absent : v.tag == PLAIT_FLOAT ? int64_t(v.u.f) : v.u.i;
}
inline double real(const plait_call *c, int i, double absent = 0) {
  const plait_value &v = c->in[i];
  return v.tag == PLAIT_NONE      ? absent
         : v.tag == PLAIT_FLOAT   ? v.u.f
         : v.tag == PLAIT_COMPLEX ? v.u.fs[0]
                                  : double(v.u.i);
}
inline bool text_is(const plait_call *c, int i, const char *text) {
  return c->in[i].tag == PLAIT_STRING && strcmp(c->in[i].u.s, text) == 0;
}
inline int64_t wrapped(int64_t dim, int32_t ndim) { return dim < 0 ? dim + ndim : dim; }
template <class T>
T *data(const DLTensor *t) {
  return static_cast<T *>(t->data);
}
inline int64_t numel(const DLTensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->ndim; i++) n *= t->shape[i];
  return n;
}
inline bool is_contiguous(const DLTensor *t) {
  int64_t want = 1;
  for (int i = t->ndim - 1; i >= 0; i--) {
    if (t->shape[i] == 0) return true;
    if (t->shape[i] != 1 && t->strides[i] != want) return false;
    want *= t->shape[i];
  }
  return true;
}
// Writes a Python number as an element of kind k (wrapping around where it doesn't fit).
void store_number(Kind k, const plait_value &v, void *to);

#define PLAIT_FAIL(c, code, ...) ((c)->thread->runtime->fail((c), (code), __VA_ARGS__))
#define PLAIT_TRY(expression)                                \
  do {                                                       \
    const plait_status status_ = (expression);               \
    if (PLAIT_UNLIKELY(status_ != PLAIT_OK)) return status_; \
  } while (0)

// Memory and threads.

struct Roles {  // read the current tables with PLAIT_ROLE
  plait_role executor, memory, rng;
};
inline Roles roles{};  // set when the library is loaded

class Workspace {  // bytes for the duration of a kernel, 64-byte aligned
 public:
  Workspace() = default;
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;
  ~Workspace() {
    if (data_) from_->free(from_->ctx, data_, nbytes_, block_);
  }
  plait_status take(const plait_call *c, uint64_t nbytes) {
    return try_take(nbytes) ? PLAIT_OK : out_of_memory(c, nbytes);
  }
  // For use on several threads at once: sets no error.
  bool try_take(uint64_t nbytes) {
    from_ = PLAIT_ROLE(plait_allocator, roles.memory);
    nbytes_ = nbytes;
    if (from_->alloc(from_->ctx, DLDevice{kDLCPU, 0}, nbytes, nullptr, &data_, &block_) != PLAIT_OK)
      data_ = nullptr;
    return data_ != nullptr;
  }
  static plait_status out_of_memory(const plait_call *c, uint64_t nbytes) {
    return PLAIT_FAIL(c, PLAIT_MEMORY_ERROR, "no memory for a workspace of %llu bytes",
                      (unsigned long long)nbytes);
  }
  template <class T>
  T *as() const {
    return static_cast<T *>(data_);
  }

 private:
  const plait_allocator *from_ = nullptr;
  void *data_ = nullptr, *block_ = nullptr;
  uint64_t nbytes_ = 0;
};

// Runs f(i) for i in [0, n). Results must not depend on the number of threads: cut work by its size
// alone.
template <class F>
inline void parallel(const plait_call *, int64_t n, F &&f) {
  if (n == 1) return f(int64_t(0));
  const plait_executor *e = PLAIT_ROLE(plait_executor, roles.executor);
  struct Context {
    __typeof__(&f) function;
  } context{&f};
  e->parallel(
      e->ctx, uint64_t(n < 0 ? 0 : n),
      [](void *arg, uint64_t i) { (*static_cast<Context *>(arg)->function)(int64_t(i)); },
      &context);
}
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Runs f(begin, end) in parallel over ranges of `n` items, of about `grain` items each.
template <class F>
inline void parallel_ranges(const plait_call *c, int64_t n, int64_t grain, F &&f) {
  if (grain < 1) grain = 1;
  if (n <= grain + grain / 2) {
    if (n > 0) f(int64_t(0), n);
    return;
  }
  const int64_t chunks = ceil_div(n, grain);
  parallel(c, chunks, [&](int64_t i) {
    const int64_t begin = i * grain, end = begin + grain;
    f(begin, end < n ? end : n);
  });
}
constexpr int64_t kSerial = 32768;  // up to so many elements one thread is faster than two
// elements for one unit of parallel work that is limited by memory
constexpr int64_t kChunk = 16384;

}  // namespace plait::core
