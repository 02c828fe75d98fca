// A thin C++17 layer over the C ABI: counted handles, exceptions inside one component, operators by
// name. It is header-only, and nothing of it crosses the border of a component.
#ifndef PLAIT_HPP
#define PLAIT_HPP
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "abi.h"

namespace plait {

// Dtypes.

using DType = DLDataType;
namespace dtype {
inline constexpr DType bool_{kDLBool, 8, 1};
inline constexpr DType uint8{kDLUInt, 8, 1}, uint16{kDLUInt, 16, 1}, uint32{kDLUInt, 32, 1},
    uint64{kDLUInt, 64, 1};
inline constexpr DType int8{kDLInt, 8, 1}, int16{kDLInt, 16, 1}, int32{kDLInt, 32, 1},
    int64{kDLInt, 64, 1};
inline constexpr DType float16{kDLFloat, 16, 1}, bfloat16{kDLBfloat, 16, 1};
inline constexpr DType float32{kDLFloat, 32, 1}, float64{kDLFloat, 64, 1};
inline constexpr DType complex64{kDLComplex, 64, 1}, complex128{kDLComplex, 128, 1};
// float8 is stored and converted; the codes are those of DLPack 1.1, which an older dlpack.h lacks
inline constexpr DType float8_e4m3fn{10, 8, 1}, float8_e4m3fnuz{11, 8, 1}, float8_e5m2{12, 8, 1},
    float8_e5m2fnuz{13, 8, 1}, float8_e8m0fnu{14, 8, 1};
}  // namespace dtype
// One number for a dtype: cheap to compare and to switch on.
constexpr uint32_t key(DType d) { return uint32_t(d.code) << 8 | d.bits; }
constexpr bool same(DType a, DType b) { return key(a) == key(b) && a.lanes == b.lanes; }
constexpr bool is_float8(DType d) { return d.code >= 10 && d.code <= 14; }
constexpr bool is_floating(DType d) {
  return d.code == kDLFloat || d.code == kDLBfloat || is_float8(d);
}
// Whether there are negative numbers of it.
constexpr bool is_signed(DType d) {
  return d.code != kDLUInt && d.code != kDLBool && d.code != dtype::float8_e8m0fnu.code;
}
constexpr int64_t itemsize(DType d) { return (d.bits * d.lanes + 7) / 8; }
inline const char *name(DType d) {
  switch (key(d)) {
    case key(dtype::bool_): return "bool";
    case key(dtype::uint8): return "uint8";
    case key(dtype::uint16): return "uint16";
    case key(dtype::uint32): return "uint32";
    case key(dtype::uint64): return "uint64";
    case key(dtype::int8): return "int8";
    case key(dtype::int16): return "int16";
    case key(dtype::int32): return "int32";
    case key(dtype::int64): return "int64";
    case key(dtype::float16): return "float16";
    case key(dtype::bfloat16): return "bfloat16";
    case key(dtype::float32): return "float32";
    case key(dtype::float64): return "float64";
    case key(dtype::complex64): return "complex64";
    case key(dtype::complex128): return "complex128";
    case key(dtype::float8_e4m3fn): return "float8_e4m3fn";
    case key(dtype::float8_e4m3fnuz): return "float8_e4m3fnuz";
    case key(dtype::float8_e5m2): return "float8_e5m2";
    case key(dtype::float8_e5m2fnuz): return "float8_e5m2fnuz";
    case key(dtype::float8_e8m0fnu): return "float8_e8m0fnu";
    default: return "unknown dtype";
  }
}

// Errors.

#if defined(__cpp_exceptions)
// Thrown inside a component, turned back into its status by `border`; the text is in the thread's
// error object. With -fno-exceptions there is neither, nor what throws: use `try_call` and
// statuses.
struct Error : std::exception {
  explicit Error(plait_status s) : status(s) {}
  const char *what() const noexcept override {
    return "plait::Error: the text is in plait_thread::error";
  }
  plait_status status;
};
inline void check(plait_status s) {
  if (s < 0) throw Error(s);
}
template <class F>
plait_status border(plait_thread *thread, const char *origin, F &&f) noexcept {
  try {
    return f();
  } catch (const Error &e) {
    return e.status;
  } catch (const std::bad_alloc &) {
    return thread->runtime->raise(thread, PLAIT_MEMORY_ERROR, origin, "out of memory");
  } catch (const std::exception &e) {
    return thread->runtime->raise(thread, PLAIT_ERROR, origin, "%s", e.what());
  }
}
#endif

// Roles.

// The name of the role that a table fills.
template <class T>
constexpr const char *role_name = nullptr;
template <>
inline constexpr const char *role_name<plait_executor> = "executor";
template <>
inline constexpr const char *role_name<plait_rng> = "rng";
template <>
inline constexpr const char *role_name<plait_host> = "host";
template <>
inline constexpr const char *role_name<plait_engine> = "engine";
template <>
inline constexpr const char *role_name<plait_allocator> = "allocator";
template <>
inline constexpr const char *role_name<plait_device> = "device";
template <>
inline constexpr const char *role_name<plait_collectives> = "communicator";

// The table in force of a role that there is once, as in role<plait_engine>(runtime); NULL where
// it is not provided. Read the table once and use that one: plug-ins are added and removed while
// other threads call.
template <class T>
const T *role(const plait_runtime *runtime) {
  static const plait_role at = runtime->role(role_name<T>, 0);
  return PLAIT_ROLE(T, at);
}
// The same of a role that each device type has: "allocator", "device" or "communicator".
template <class T>
const T *role(const plait_runtime *runtime, int32_t device_type) {
  const plait_role at = runtime->role(role_name<T>, device_type);
  return PLAIT_ROLE(T, at);
}

// Devices.

inline bool same(DLDevice a, DLDevice b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}
// Neither the CPU nor `meta`: a device with streams, whose work goes on when a call has returned.
inline bool is_accelerator(DLDevice d) {
  return d.device_type > kDLCPU && uint32_t(d.device_type) < PLAIT_MAX_DEVICE_TYPES;
}
// The names of DLPack's device types, for devices without a component; NULL for other types.
inline const char *known_device_name(int32_t type) {
  switch (type) {
    case int32_t(PLAIT_META): return "meta";
    case kDLCPU: return "cpu";
    case kDLCUDA: return "cuda";
    case kDLVulkan: return "vulkan";
    case kDLMetal: return "metal";
    case kDLROCM: return "rocm";
    case kDLExtDev: return "ext";
    case kDLOneAPI: return "oneapi";
    case kDLWebGPU: return "webgpu";
    case kDLHexagon: return "hexagon";
    default: return nullptr;
  }
}
inline const char *device_name(const plait_runtime *runtime, int32_t type) {
  const auto *brought = role<plait_device>(runtime, type);
  return brought ? brought->name : known_device_name(type);
}
// "cpu", "cuda:1"
inline std::string device_text(const plait_runtime *runtime, DLDevice d) {
  const auto type = int32_t(d.device_type);
  const char *name = device_name(runtime, type);
  const std::string text = name ? name : "device type " + std::to_string(type);
  return type == kDLCPU || type == int32_t(PLAIT_META) ? text
                                                       : text + ":" + std::to_string(d.device_id);
}

// Later work in the stream `after` of `to` waits for the work that is now in `before` of `from`.
// The host does not, unless the devices are of two types.
inline plait_status wait_between(plait_thread *thread, DLDevice from, plait_stream *before,
                                 DLDevice to, plait_stream *after) {
  if (!is_accelerator(from) || (same(from, to) && before == after)) return PLAIT_OK;
  const plait_runtime *r = thread->runtime;
  plait_device_event *event = nullptr;
  plait_status s = r->event_new(thread, from, 0, &event);
  if (s >= 0) s = r->event_record(thread, event, before);
  if (s >= 0) s = r->stream_wait(thread, to, after, event);
  plait_release(event);
  return s;
}

// Makes a stream the thread's current one while it lives; for the CPU it does nothing.
class StreamGuard {
 public:
  StreamGuard(plait_thread *thread, DLDevice device, plait_stream *stream)
      : thread_(thread), device_(device) {
    set_ = is_accelerator(device) &&
           thread->runtime->set_stream(thread, device, stream, &previous_) >= 0;
  }
  StreamGuard(const StreamGuard &) = delete;
  StreamGuard &operator=(const StreamGuard &) = delete;
  ~StreamGuard() {
    if (set_) thread_->runtime->set_stream(thread_, device_, previous_, nullptr);
    plait_release(previous_);
  }

 private:
  plait_thread *thread_;
  DLDevice device_;
  plait_stream *previous_ = nullptr;
  bool set_;
};

// Counted handles.

template <class T>
class Ref {
 public:
  Ref() = default;
  static Ref steal(T *p) { return Ref(p); }
  static Ref share(T *p) {
    if (p) plait_retain(p);
    return Ref(p);
  }
  Ref(const Ref &r) : p_(r.p_) {
    if (p_) plait_retain(p_);
  }
  Ref(Ref &&r) noexcept : p_(std::exchange(r.p_, nullptr)) {}
  Ref &operator=(Ref r) noexcept {
    std::swap(p_, r.p_);
    return *this;
  }
  ~Ref() { plait_release(p_); }
  T *get() const { return p_; }
  T *operator->() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }
  T *release() { return std::exchange(p_, nullptr); }
  T **out() { return &p_; }  // for functions that fill in a new reference; must be empty

 protected:
  explicit Ref(T *p) : p_(p) {}
  T *p_ = nullptr;
};

// Of a storage's version, what the history of `t` is checked against: the writes through handles
// like it. Those through `x.data` are not x's (notes 0002).
inline uint64_t history_version(const plait_tensor *t, uint64_t version) {
  return t->flags & PLAIT_TENSOR_DATA ? version >> 32 : version & 0xffffffff;
}
inline uint64_t history_version(const plait_tensor *t) {
  return history_version(t, __atomic_load_n(&t->storage->version, __ATOMIC_RELAXED));
}
// A write through `t`, raised by whoever makes it outside of a call. Two racing writers may raise
// the version once; readers only test whether it changed.
inline void wrote(const plait_tensor *t) {
  const uint64_t one = t->flags & PLAIT_TENSOR_DATA ? uint64_t(1) << 32 : 1;
  uint64_t *version = &t->storage->version;
  __atomic_store_n(version, __atomic_load_n(version, __ATOMIC_RELAXED) + one, __ATOMIC_RELAXED);
}
// After a write to memory that only its owner has seen, as if the storage were a new one: history
// sees `version` again, and caches see a version that they have not seen.
inline void restore_version(plait_storage *s, uint64_t version) {
  const uint64_t high = (__atomic_load_n(&s->version, __ATOMIC_ACQUIRE) >> 32) + 1;
  __atomic_store_n(&s->version, high << 32 | uint32_t(version), __ATOMIC_RELEASE);
}

inline int64_t numel(const plait_tensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->dl.ndim; i++) n *= t->dl.shape[i];
  return n;
}
inline bool is_contiguous(const plait_tensor *t) {
  int64_t want = 1;
  for (int i = t->dl.ndim - 1; i >= 0; i--) {
    if (t->dl.shape[i] == 0) return true;
    if (t->dl.shape[i] != 1 && t->dl.strides[i] != want) return false;
    want *= t->dl.shape[i];
  }
  return true;
}

class Tensor : public Ref<plait_tensor> {
 public:
  Tensor() = default;
  Tensor(Ref<plait_tensor> r) : Ref(std::move(r)) {}
  static Tensor steal(plait_tensor *p) { return Tensor(Ref::steal(p)); }
  static Tensor share(plait_tensor *p) { return Tensor(Ref::share(p)); }
  int32_t ndim() const { return p_->dl.ndim; }
  int64_t size(int64_t i) const { return p_->dl.shape[i]; }
  int64_t stride(int64_t i) const { return p_->dl.strides[i]; }
  const int64_t *shape() const { return p_->dl.shape; }
  DType dtype() const { return p_->dl.dtype; }
  DLDevice device() const { return p_->dl.device; }
  int64_t numel() const { return plait::numel(p_); }
  template <class T>
  T *data() const {
    return static_cast<T *>(p_->dl.data);
  }
};

// Values of arguments.

inline plait_value none() { return plait_value{PLAIT_NONE, 0, {0}}; }
inline plait_value value(plait_tensor *t) {
  plait_value v{t ? PLAIT_TENSOR : PLAIT_NONE, 0, {0}};
  v.u.t = t;
  return v;
}
inline plait_value value(const Tensor &t) { return value(t.get()); }
inline plait_value value(int64_t i) { return plait_value{PLAIT_INT, 0, {i}}; }
inline plait_value value(int i) { return value(int64_t(i)); }
inline plait_value value(bool b) { return plait_value{PLAIT_BOOL, 0, {b}}; }
inline plait_value value(double f) {
  plait_value v{PLAIT_FLOAT, 0, {0}};
  v.u.f = f;
  return v;
}
inline plait_value value(DType d) {
  plait_value v{PLAIT_DTYPE, 0, {0}};
  v.u.dtype = d;
  return v;
}
inline plait_value value(DLDevice d) {
  plait_value v{PLAIT_DEVICE, 0, {0}};
  v.u.device = d;
  return v;
}
inline plait_value value(const char *s) {
  plait_value v{PLAIT_STRING, uint32_t(std::strlen(s)), {0}};
  v.u.s = s;
  return v;
}
inline plait_value ints(const int64_t *p, size_t n) {
  plait_value v{PLAIT_INTS, uint32_t(n), {0}};
  v.u.is = p;
  return v;
}
inline plait_value tensors(plait_tensor *const *p, size_t n) {
  plait_value v{PLAIT_TENSORS, uint32_t(n), {0}};
  v.u.ts = p;
  return v;
}
inline plait_value value(const plait_value &v) { return v; }

// Calls of operators.

// Calls op with one value for each argument of its schema (trailing ones take their defaults).
inline plait_status try_call(plait_thread *thread, const plait_op *op, const plait_value *in,
                             size_t n_in, plait_value *out, uint32_t form = PLAIT_FUNCTION) {
  plait_value full[PLAIT_MAX_ARGS];
  for (size_t i = 0; i < op->n_args; i++) full[i] = i < n_in ? in[i] : plait_arg_at(op, i)->value;
  plait_call c{};
  c.size = sizeof c;
  c.n_in = op->n_args;
  c.n_out = op->n_results;
  c.op = op;
  c.in = full;
  c.out = out;
  c.thread = thread;
  c.form = form;
  if (form == PLAIT_FUNCTION)
    for (size_t i = 0; i < op->n_results; i++) out[i] = none();
  return thread->runtime->call(&c);
}

// What the operator's derivative will read, for gradients of the inputs in `need`.
inline plait_needs needs_of(const plait_call *c, uint64_t need) {
  plait_needs needs{};
  needs.size = sizeof needs;
  if (c->op->def->saves) c->op->def->saves(c, need, &needs);
  return needs;
}

#if defined(__cpp_exceptions)
// The same; throws Error.
inline void call(plait_thread *thread, const plait_op *op, const plait_value *in, size_t n_in,
                 plait_value *out, uint32_t form = PLAIT_FUNCTION) {
  check(try_call(thread, op, in, n_in, out, form));
}

// An operator looked up once: `static const Operator mul(runtime, "mul"); Tensor c = mul(thread, a,
// b);`
class Operator {
 public:
  Operator(const plait_runtime *runtime, const char *name) : op_(runtime->op(name)), name_(name) {}
  template <class... A>
  Tensor operator()(plait_thread *thread, const A &...args) const {
    const plait_value in[] = {value(args)..., none()};
    plait_value out[PLAIT_MAX_ARGS];
    call(thread, known(thread), in, sizeof...(A), out);
    return Tensor::steal(out[0].u.t);
  }
  template <class... A>
  Tensor in_place(plait_thread *thread, const Tensor &self, const A &...args) const {
    const plait_value in[] = {value(self), value(args)..., none()};
    plait_value out[PLAIT_MAX_ARGS];
    out[0] = value(Tensor(self).release());
    call(thread, known(thread), in, 1 + sizeof...(A), out, PLAIT_INPLACE);
    return Tensor::steal(out[0].u.t);
  }
  const plait_op *get() const { return op_; }

 private:
  const plait_op *known(plait_thread *thread) const {
    if (!op_)
      check(thread->runtime->raise(thread, PLAIT_NOT_IMPLEMENTED, name_,
                                   "no such operator is defined"));
    return op_;
  }
  const plait_op *op_;
  const char *name_;
};
#endif

// Small vectors of sizes.

[[noreturn]] inline void out_of_range([[maybe_unused]] const char *text) {
#if defined(__cpp_exceptions)
  throw std::out_of_range(text);
#else
  std::abort();
#endif
}

// Index i of a list of n items, counted from 0; -1 is the last item. Out of range it throws, so
// that a missing check of an argument cannot become a stray read or write.
inline int64_t checked_index(int64_t i, int64_t n) {
  const int64_t at = i < 0 ? i + n : i;
  if (uint64_t(at) >= uint64_t(n)) out_of_range("a list of sizes or tensors is too short");
  return at;
}

class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> l) {
    for (int64_t x : l) push(x);
  }
  Dims(const int64_t *p, int64_t n) {
    for (int64_t i = 0; i < n; i++) push(p[i]);
  }
  Dims(int64_t n, int64_t fill) {
    for (int64_t i = 0; i < n; i++) push(fill);
  }
  void push(int64_t x) {
    if (n_ == PLAIT_MAX_DIMS) out_of_range("more than 64 dimensions");
    d_[n_++] = x;
  }
  int64_t size() const { return n_; }
  int64_t &operator[](int64_t i) { return d_[checked_index(i, n_)]; }
  int64_t operator[](int64_t i) const { return d_[checked_index(i, n_)]; }
  const int64_t *data() const { return d_; }
  int64_t *data() { return d_; }
  const int64_t *begin() const { return d_; }
  const int64_t *end() const { return d_ + n_; }

 private:
  int64_t n_ = 0;
  int64_t d_[PLAIT_MAX_DIMS];
};

// "(2, 3)", with Python's comma for one dimension
inline std::string text(const int64_t *p, int64_t n) {
  std::string s = "(";
  for (int64_t i = 0; i < n; i++) s += (i ? ", " : "") + std::to_string(p[i]);
  return s + (n == 1 ? ",)" : ")");
}
inline std::string text(const Dims &d) { return text(d.data(), d.size()); }
inline std::string shape_text(const plait_tensor *t) { return text(t->dl.shape, t->dl.ndim); }

}  // namespace plait
#endif  // PLAIT_HPP
