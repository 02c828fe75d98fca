// Files of recorded calls: what recorder.cpp writes and replay.cpp reads, in the machine's byte
// order (little-endian on both machines).
//
// A file is a list of records. A record is a call: the operator's name, its form, the state of the
// default generator before the call, the arguments as they were before it, the results, and the
// arguments that the call wrote to as they were after it.
#ifndef PLAIT_TESTS_REPLAY_CALLS_HPP
#define PLAIT_TESTS_REPLAY_CALLS_HPP
#include <plait/plait.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace replay {

using Bytes = std::string;

// The smallest run of bytes that holds all elements: where it begins relative to the first element.
struct Span {
  int64_t first = 0, nbytes = 0;
};

inline Span span_of(const plait_tensor *t) {
  int64_t low = 0, high = 0;
  for (int i = 0; i < t->dl.ndim; i++) {
    if (t->dl.shape[i] == 0) return {};
    const int64_t reach = (t->dl.shape[i] - 1) * t->dl.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t size = plait::itemsize(t->dl.dtype);
  return {low * size, (high - low + 1) * size};
}

// The elements in C order.
inline Bytes elements(const plait_tensor *t) {
  const int64_t size = plait::itemsize(t->dl.dtype), n = plait::numel(t);
  Bytes all;
  all.reserve(size_t(n * size));
  std::vector<int64_t> at(size_t(t->dl.ndim), 0);
  const char *p = static_cast<const char *>(t->dl.data);
  for (int64_t k = 0; k < n; k++) {
    all.append(p, size_t(size));
    for (int i = t->dl.ndim - 1; i >= 0; i--) {
      p += t->dl.strides[i] * size;
      if (++at[size_t(i)] < t->dl.shape[i]) break;
      p -= t->dl.shape[i] * t->dl.strides[i] * size;
      at[size_t(i)] = 0;
    }
  }
  return all;
}

class Writer {
 public:
  template <class T>
  void put(T value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  void put_bytes(const char *p, size_t n) {
    put(uint64_t(n));
    bytes.append(p, n);
  }
  // Returns false for what is not in the host's memory.
  bool put_tensor(const plait_tensor *t) {
    put(uint8_t(t != nullptr));
    if (!t) return true;
    if (t->dl.device.device_type != kDLCPU) return false;
    put(t->dl.dtype);
    put(uint64_t(t->flags & PLAIT_TENSOR_WRAPPED_NUMBER));
    put(int32_t(t->dl.ndim));
    for (int i = 0; i < t->dl.ndim; i++) put(t->dl.shape[i]), put(t->dl.strides[i]);
    const Span span = span_of(t);
    put(span.first);
    put_bytes(static_cast<const char *>(t->dl.data) + span.first, size_t(span.nbytes));
    return true;
  }
  bool put_value(const plait_value &v) {
    put(v.tag);
    put(v.n);
    switch (v.tag) {
      case PLAIT_NONE: return true;
      case PLAIT_TENSOR: return put_tensor(v.u.t);
      case PLAIT_COMPLEX: put(v.u.fs[0]), put(v.u.fs[1]); return true;
      case PLAIT_INTS:
        for (uint32_t i = 0; i < v.n; i++) put(v.u.is[i]);
        return true;
      case PLAIT_FLOATS:
        for (uint32_t i = 0; i < v.n; i++) put(v.u.fs[i]);
        return true;
      case PLAIT_TENSORS:
        for (uint32_t i = 0; i < v.n; i++)
          if (!put_tensor(v.u.ts[i])) return false;
        return true;
      case PLAIT_STRING: put_bytes(v.u.s, v.n); return true;
      case PLAIT_OBJECT:
        put_generator(reinterpret_cast<const plait_generator *>(v.u.o));
        return true;
      default: put(v.u.i); return true;  // numbers, dtypes and devices
    }
  }
  void put_generator(const plait_generator *g) {
    put(g->seed);
    put(__atomic_load_n(&g->offset, __ATOMIC_RELAXED));
  }
  Bytes bytes;
};

// What a recorded value becomes: owns what the value points to.
struct Argument {
  plait_value value = plait::none();
  plait::Tensor tensor;
  std::vector<plait::Tensor> tensors;
  std::vector<plait_tensor *> pointers;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  Bytes text;
  plait::Ref<plait_generator> generator;
};

class Reader {
 public:
  Reader(plait_thread *thread, const char *begin, const char *end)
      : thread_(thread), p_(begin), end_(end) {}
  bool done() const { return p_ == end_; }
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  Bytes get_bytes() {
    const auto n = size_t(get<uint64_t>());
    return Bytes(take(n), n);
  }
  plait::Tensor get_tensor() {
    if (!get<uint8_t>()) return {};
    const auto dtype = get<DLDataType>();
    const auto flags = get<uint64_t>();
    const auto ndim = get<int32_t>();
    std::vector<int64_t> shape, strides;
    for (int i = 0; i < ndim; i++)
      shape.push_back(get<int64_t>()), strides.push_back(get<int64_t>());
    const auto first = get<int64_t>();
    const auto n = size_t(get<uint64_t>());
    const char *bytes = take(n);
    const plait_runtime *r = thread_->runtime;
    auto storage = plait::Ref<plait_storage>::steal(nullptr);
    plait::check(r->storage_new(thread_, {kDLCPU, 0}, n, storage.out()));
    if (n) std::memcpy(storage->data, bytes, n);
    plait::Tensor t;
    char *data = static_cast<char *>(storage->data) - first;
    plait::check(r->tensor_on(thread_, storage.get(), data, dtype, ndim, shape.data(),
                              strides.data(), t.out()));
    t->flags |= flags;
    return t;
  }
  void get_value(Argument &a) {
    plait_value &v = a.value;
    v.tag = get<int32_t>();
    v.n = get<uint32_t>();
    switch (v.tag) {
      case PLAIT_NONE: return;
      case PLAIT_TENSOR:
        a.tensor = get_tensor();
        v.u.t = a.tensor.get();
        return;
      case PLAIT_COMPLEX:
        for (int i = 0; i < 2; i++) a.floats.push_back(get<double>());
        v.u.fs = a.floats.data();
        return;
      case PLAIT_INTS:
        for (uint32_t i = 0; i < v.n; i++) a.ints.push_back(get<int64_t>());
        v.u.is = a.ints.data();
        return;
      case PLAIT_FLOATS:
        for (uint32_t i = 0; i < v.n; i++) a.floats.push_back(get<double>());
        v.u.fs = a.floats.data();
        return;
      case PLAIT_TENSORS:
        for (uint32_t i = 0; i < v.n; i++) a.tensors.push_back(get_tensor());
        for (const auto &t : a.tensors) a.pointers.push_back(t.get());
        v.u.ts = a.pointers.data();
        return;
      case PLAIT_STRING:
        a.text = get_bytes();
        v.u.s = a.text.c_str();
        return;
      case PLAIT_OBJECT: {
        const auto seed = get<uint64_t>(), offset = get<uint64_t>();
        a.generator = plait::Ref<plait_generator>::steal(thread_->runtime->generator_new(seed));
        a.generator->offset = offset;
        v.u.o = &a.generator->o;
        return;
      }
      default: v.u.i = get<int64_t>();
    }
  }

 private:
  const char *take(size_t n) {
    if (n > size_t(end_ - p_)) throw std::runtime_error("the file of calls is cut off");
    return std::exchange(p_, p_ + n);
  }
  plait_thread *thread_;
  const char *p_, *end_;
};

}  // namespace replay
#endif  // PLAIT_TESTS_REPLAY_CALLS_HPP
