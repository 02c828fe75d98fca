// Calls from JavaScript: arguments are checked, and errors of C++ become those of JavaScript.
#pragma once
#define NAPI_VERSION 8
#include <node_api.h>
#include <plait/run.h>
#include <plait/plait.hpp>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace plait::node {

// An error of JavaScript, by the status of plait that says which kind.
struct Failure {
  plait_status status;
  std::string text;
};
// JavaScript has an exception already.
struct Pending {};

[[noreturn]] inline void fail(plait_status status, std::string text) {
  throw Failure{status, std::move(text)};
}

// A saved graph that is open.
struct GraphHandle {
  plait_run *pointer = nullptr;
  GraphHandle() = default;
  GraphHandle(GraphHandle &&g) noexcept : pointer(std::exchange(g.pointer, nullptr)) {}
  GraphHandle &operator=(GraphHandle &&) = delete;
  ~GraphHandle();
  void check(int status) const;  // throws the text that the handle has
};

struct Bytes {
  const void *data;
  uint64_t size;
};

// What a value of JavaScript holds. It stays until JavaScript forgets the value; `free` empties it.
struct Box {
  enum Kind { tensor, generator, graph } kind;
  Tensor t;
  Ref<plait_generator> g;
  std::unique_ptr<GraphHandle> run;
  int64_t bytes = 0;  // that the collector of garbage was told
  std::shared_ptr<std::unordered_set<const void *>> boxes;  // all of this thread of JavaScript
};

// One call from JavaScript.
class Call {
 public:
  Call(napi_env environment, napi_callback_info info);
  napi_env env() const { return env_; }

  // Arguments. `what` names one in errors.
  napi_value at(size_t i) const { return i < count_ ? values_[i] : undefined(); }
  std::string text(size_t i) const { return text_of(at(i), argument(i)); }
  double number(size_t i) const;
  bool flag(size_t i) const;
  Bytes bytes(size_t i) const;
  template <class T>
  T integer(size_t i) const {
    const double x = number(i);
    if constexpr (std::is_floating_point_v<T>) return x;
    if (x != std::floor(x) || x < double(std::numeric_limits<T>::min()) ||
        x > double(std::numeric_limits<T>::max()))
      fail(PLAIT_TYPE_ERROR, argument(i) + " must be a whole number");
    return T(x);
  }
  Box &box(size_t i, Box::Kind kind) const { return box_of(at(i), kind, argument(i)); }
  Tensor &tensor(size_t i) const { return box(i, Box::tensor).t; }
  GraphHandle &graph(size_t i) const { return *box(i, Box::graph).run; }
  Box &any_box(napi_value value, const std::string &what) const;
  Box &box_of(napi_value value, Box::Kind kind, const std::string &what) const;
  std::string text_of(napi_value value, const std::string &what) const;
  napi_valuetype type(napi_value value) const;
  bool is_missing(napi_value value) const;
  std::vector<napi_value> items(napi_value array, const std::string &what) const;
  bool is_array(napi_value value) const;
  napi_value member(napi_value object, const char *name) const;

  // Results.
  napi_value undefined() const;
  napi_value null() const;
  napi_value number_value(double x) const;
  napi_value flag_value(bool x) const;
  napi_value text_value(const std::string &text) const;
  napi_value array(const std::vector<napi_value> &values) const;
  napi_value list(const int64_t *values, int64_t count) const;
  napi_value object(const std::vector<std::pair<const char *, napi_value>> &members) const;
  napi_value buffer(size_t size, void **data) const;
  napi_value tensor_value(Tensor t) const;
  napi_value generator_value(Ref<plait_generator> g) const;
  napi_value graph_value(GraphHandle graph) const;
  napi_value description(const plait_run_tensor &tensor) const;

  void check(napi_status status) const;

 private:
  static std::string argument(size_t i) { return "argument " + std::to_string(i + 1); }
  napi_value external(std::unique_ptr<Box> box) const;

  napi_env env_;
  size_t count_;
  napi_value values_[8];
};

void throw_error(napi_env env, const Failure &failure);

template <napi_value (*function)(Call &)>
napi_value entry(napi_env env, napi_callback_info info) {
  try {
    Call call(env, info);
    return function(call);
  } catch (const Failure &failure) {
    throw_error(env, failure);
  } catch (const Pending &) {
  } catch (const std::bad_alloc &) {
    throw_error(env, {PLAIT_MEMORY_ERROR, "out of memory"});
  } catch (const std::exception &e) {
    throw_error(env, {PLAIT_ERROR, e.what()});
  }
  return nullptr;
}

struct Entry {
  const char *name;
  napi_callback function;
};

// Functions of the other files.
void define(napi_env env, napi_value exports, const Entry *entries, size_t count);
void define_tensors(napi_env env, napi_value exports);
void define_operators(napi_env env, napi_value exports);
void define_graphs(napi_env env, napi_value exports);

}  // namespace plait::node
