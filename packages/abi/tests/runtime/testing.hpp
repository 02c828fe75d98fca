// What the tests of the runtime share: the runtime, the list of tests, three small operators.
#pragma once
#include <plait/plait.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>
#include <vector>

using namespace plait;

inline const plait_runtime *rt;
inline plait_thread *th;
constexpr DLDevice kCpu{kDLCPU, 0};

inline std::map<std::string, std::function<void()>> &tests() {
  static std::map<std::string, std::function<void()>> all;
  return all;
}
struct Added {
  Added(const char *name, std::function<void()> f) { tests()[name] = std::move(f); }
};
#define TEST(name)                              \
  void test_##name();                           \
  const Added added_##name(#name, test_##name); \
  void test_##name()
#define REQUIRE(condition)                                                      \
  do {                                                                          \
    if (!(condition)) {                                                         \
      std::printf("%s:%d: %s is false\n", __FILE__, __LINE__, #condition);      \
      if (th && th->error) std::printf("last error: %s\n", th->error->message); \
      std::exit(1);                                                             \
    }                                                                           \
  } while (0)

inline bool error_has(std::initializer_list<const char *> parts) {
  if (!th->error) return false;
  for (const char *p : parts)
    if (!std::strstr(th->error->message, p)) {
      std::printf("`%s` lacks `%s`\n", th->error->message, p);
      return false;
    }
  return true;
}

inline Tensor make(Dims shape, std::vector<float> values = {}, DType dtype = dtype::float32) {
  Tensor t;
  check(rt->tensor_new(th, dtype, int32_t(shape.size()), shape.data(), nullptr, kCpu, t.out()));
  for (size_t i = 0; i < values.size(); i++) t.data<float>()[i] = values[i];
  return t;
}

// Three small operators: copy_ and clone, which dispatch itself needs, and a pointwise `twice`.
inline plait_status copy_shape(plait_call *c) {
  return numel(c->in[0].u.t) == numel(c->in[1].u.t)
             ? PLAIT_OK
             : rt->fail(c, PLAIT_SHAPE_ERROR, "sizes differ");
}
inline plait_status like_shape(plait_call *c) {
  const plait_tensor *t = c->in[0].u.t;
  return rt->result(c, 0, t->dl.dtype, t->dl.ndim, t->dl.shape);
}
inline float *at(const plait_tensor *t, int64_t i) {  // up to two dimensions, any strides
  int64_t offset = 0;
  for (int d = t->dl.ndim - 1; d >= 0; d--) {
    offset += i % t->dl.shape[d] * t->dl.strides[d];
    i /= t->dl.shape[d];
  }
  return static_cast<float *>(t->dl.data) + offset;
}
inline plait_status copy_kernel(plait_call *c) {
  for (int64_t i = 0, n = numel(c->in[0].u.t); i < n; i++)
    *at(c->in[0].u.t, i) = *at(c->in[1].u.t, i);
  return PLAIT_OK;
}
inline plait_status clone_kernel(plait_call *c) {
  for (int64_t i = 0, n = numel(c->out[0].u.t); i < n; i++)
    *at(c->out[0].u.t, i) = *at(c->in[0].u.t, i);
  return PLAIT_OK;
}
inline plait_status twice_kernel(plait_call *c) {
  for (int64_t i = 0, n = numel(c->out[0].u.t); i < n; i++)
    *at(c->out[0].u.t, i) = 2 * *at(c->in[0].u.t, i);
  return PLAIT_OK;
}
inline plait_status reverse_kernel(
    plait_call *c) {  // not pointwise: the output may not overlap the input
  for (int64_t i = 0, n = numel(c->out[0].u.t); i < n; i++)
    *at(c->out[0].u.t, i) = *at(c->in[0].u.t, n - 1 - i);
  return PLAIT_OK;
}

// An operator without derivatives; what a later header adds to a definition is 0.
inline plait_op_def definition(const char *schema, uint64_t flags, plait_kernel shape,
                               plait_kernel decompose = nullptr) {
  plait_op_def def{};
  def.h = PLAIT_HEADER(plait_op_def);
  def.schema = schema;
  def.doc = "";
  def.flags = flags;
  def.shape = shape;
  def.decompose = decompose;
  return def;
}

inline const plait_op *define(const char *schema, uint64_t flags, plait_kernel shape,
                              plait_kernel kernel, plait_kernel decompose = nullptr) {
  auto *def = new plait_op_def(definition(schema, flags, shape, decompose));
  const plait_op *op = nullptr;
  check(rt->define(th, def, &op));
  if (kernel) check(rt->implement(th, op, kDLCPU, kernel, nullptr, nullptr, nullptr));
  return op;
}
inline void define_basics() {
  define("copy_(Tensor(a)! self, Tensor src) -> Tensor(a)!", 0, copy_shape, copy_kernel);
  define("clone(Tensor self) -> Tensor", 0, like_shape, clone_kernel);
  define("twice(Tensor self) -> Tensor", PLAIT_OP_POINTWISE | PLAIT_OP_INPLACE | PLAIT_OP_OUT,
         like_shape, twice_kernel);
  define("reverse(Tensor self) -> Tensor", PLAIT_OP_INPLACE | PLAIT_OP_OUT, like_shape,
         reverse_kernel);
}
inline plait_status run(const char *name, std::vector<plait_value> in, plait_value *out,
                        uint32_t form = PLAIT_FUNCTION) {
  try {
    call(th, rt->op(name), in.data(), in.size(), out, form);
    return PLAIT_OK;
  } catch (const Error &e) {
    return e.status;
  }
}
inline plait_status run_into(const char *name, const Tensor &in, const Tensor &target,
                             uint32_t form = PLAIT_OUT) {
  plait_value out = value(target);
  return run(name, {value(in)}, &out, form);
}

// A plug-in that brings nothing by itself, for what is registered in its name.
inline const plait_plugin chosen_plugin{
    PLAIT_HEADER(plait_plugin), "chosen", "1", 0, nullptr, nullptr};
