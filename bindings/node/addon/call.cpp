#include "call.hpp"

#include <cstring>

namespace plait::node {
namespace {

using Boxes = std::shared_ptr<std::unordered_set<const void *>>;

// The boxes of a thread of JavaScript, each of which has instances of its own.
Boxes &boxes_of(napi_env env) {
  void *data = nullptr;
  napi_get_instance_data(env, &data);
  return *static_cast<Boxes *>(data);
}

void forget(napi_env env, void *data, void *) {
  std::unique_ptr<Box> box(static_cast<Box *>(data));
  int64_t total;
  if (box->bytes) napi_adjust_external_memory(env, -box->bytes, &total);
  box->boxes->erase(box.get());
}

const char *code_of(plait_status status) {
  switch (status) {
    case PLAIT_SHAPE_ERROR: return "SHAPE_ERROR";
    case PLAIT_DTYPE_ERROR: return "DTYPE_ERROR";
    case PLAIT_VALUE_ERROR: return "VALUE_ERROR";
    case PLAIT_INDEX_ERROR: return "INDEX_ERROR";
    case PLAIT_TYPE_ERROR: return "TYPE_ERROR";
    case PLAIT_MEMORY_ERROR: return "MEMORY_ERROR";
    case PLAIT_NOT_IMPLEMENTED: return "NOT_IMPLEMENTED";
    default: return "ERROR";
  }
}

}  // namespace

void throw_error(napi_env env, const Failure &failure) {
  const char *code = code_of(failure.status), *text = failure.text.c_str();
  switch (failure.status) {
    case PLAIT_DTYPE_ERROR:
    case PLAIT_TYPE_ERROR: napi_throw_type_error(env, code, text); break;
    case PLAIT_SHAPE_ERROR:
    case PLAIT_VALUE_ERROR:
    case PLAIT_INDEX_ERROR: napi_throw_range_error(env, code, text); break;
    default: napi_throw_error(env, code, text);
  }
}

Call::Call(napi_env environment, napi_callback_info info) : env_(environment), count_(8) {
  check(napi_get_cb_info(env_, info, &count_, values_, nullptr, nullptr));
  if (count_ > 8) count_ = 8;
}

void Call::check(napi_status status) const {
  if (status == napi_ok) return;
  bool pending = false;
  napi_is_exception_pending(env_, &pending);
  if (pending) throw Pending{};
  const napi_extended_error_info *info = nullptr;
  napi_get_last_error_info(env_, &info);
  fail(PLAIT_ERROR, info && info->error_message ? info->error_message : "the engine refused");
}

napi_valuetype Call::type(napi_value value) const {
  napi_valuetype result;
  check(napi_typeof(env_, value, &result));
  return result;
}

bool Call::is_missing(napi_value value) const {
  const napi_valuetype t = type(value);
  return t == napi_undefined || t == napi_null;
}

std::string Call::text_of(napi_value value, const std::string &what) const {
  if (type(value) != napi_string) fail(PLAIT_TYPE_ERROR, what + " must be a string");
  size_t size = 0;
  check(napi_get_value_string_utf8(env_, value, nullptr, 0, &size));
  std::string result(size, ' ');
  check(napi_get_value_string_utf8(env_, value, result.data(), size + 1, &size));
  if (std::strlen(result.c_str()) != result.size())
    fail(PLAIT_VALUE_ERROR, what + " must be a string without a null character");
  return result;
}

double Call::number(size_t i) const {
  if (type(at(i)) != napi_number) fail(PLAIT_TYPE_ERROR, argument(i) + " must be a number");
  double result;
  check(napi_get_value_double(env_, at(i), &result));
  return result;
}

bool Call::flag(size_t i) const {
  if (type(at(i)) != napi_boolean) fail(PLAIT_TYPE_ERROR, argument(i) + " must be a boolean");
  bool result;
  check(napi_get_value_bool(env_, at(i), &result));
  return result;
}

Bytes Call::bytes(size_t i) const {
  bool typed = false;
  check(napi_is_typedarray(env_, at(i), &typed));
  if (!typed) fail(PLAIT_TYPE_ERROR, argument(i) + " must be a typed array");
  napi_typedarray_type kind;
  size_t count;
  void *data;
  check(napi_get_typedarray_info(env_, at(i), &kind, &count, &data, nullptr, nullptr));
  static const uint64_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8};  // by napi_typedarray_type
  if (size_t(kind) >= std::size(sizes)) fail(PLAIT_TYPE_ERROR, argument(i) + ": unknown elements");
  return {data, count * sizes[kind]};
}

Box &Call::any_box(napi_value value, const std::string &what) const {
  void *data = nullptr;
  if (type(value) == napi_external) check(napi_get_value_external(env_, value, &data));
  if (!data || !boxes_of(env_)->count(data)) fail(PLAIT_TYPE_ERROR, what + " must be a tensor");
  return *static_cast<Box *>(data);
}

Box &Call::box_of(napi_value value, Box::Kind kind, const std::string &what) const {
  static const char *const names[] = {"tensor", "generator", "graph"};
  void *data = nullptr;
  if (type(value) == napi_external) check(napi_get_value_external(env_, value, &data));
  auto *box = data && boxes_of(env_)->count(data) ? static_cast<Box *>(data) : nullptr;
  if (!box || box->kind != kind) fail(PLAIT_TYPE_ERROR, what + " must be a " + names[kind]);
  if (!box->t && !box->g && !box->run)
    fail(PLAIT_VALUE_ERROR, what + ": the " + names[kind] + " was freed");
  return *box;
}

bool Call::is_array(napi_value value) const {
  bool result = false;
  check(napi_is_array(env_, value, &result));
  return result;
}

std::vector<napi_value> Call::items(napi_value array, const std::string &what) const {
  if (!is_array(array)) fail(PLAIT_TYPE_ERROR, what + " must be an array");
  uint32_t count = 0;
  check(napi_get_array_length(env_, array, &count));
  if (count > 1000000) fail(PLAIT_VALUE_ERROR, what + " has too many elements");
  std::vector<napi_value> result(count);
  for (uint32_t i = 0; i < count; i++) check(napi_get_element(env_, array, i, &result[i]));
  return result;
}

napi_value Call::member(napi_value object, const char *name) const {
  napi_value result;
  check(napi_get_named_property(env_, object, name, &result));
  return result;
}

napi_value Call::undefined() const {
  napi_value result;
  check(napi_get_undefined(env_, &result));
  return result;
}

napi_value Call::null() const {
  napi_value result;
  check(napi_get_null(env_, &result));
  return result;
}

napi_value Call::number_value(double x) const {
  napi_value result;
  check(napi_create_double(env_, x, &result));
  return result;
}

napi_value Call::flag_value(bool x) const {
  napi_value result;
  check(napi_get_boolean(env_, x, &result));
  return result;
}

napi_value Call::text_value(const std::string &text) const {
  napi_value result;
  check(napi_create_string_utf8(env_, text.data(), text.size(), &result));
  return result;
}

napi_value Call::array(const std::vector<napi_value> &values) const {
  napi_value result;
  check(napi_create_array_with_length(env_, values.size(), &result));
  for (size_t i = 0; i < values.size(); i++)
    check(napi_set_element(env_, result, uint32_t(i), values[i]));
  return result;
}

napi_value Call::list(const int64_t *values, int64_t count) const {
  std::vector<napi_value> all;
  for (int64_t i = 0; i < count; i++) all.push_back(number_value(double(values[i])));
  return array(all);
}

napi_value Call::object(const std::vector<std::pair<const char *, napi_value>> &members) const {
  napi_value result;
  check(napi_create_object(env_, &result));
  for (const auto &[name, value] : members)
    check(napi_set_named_property(env_, result, name, value));
  return result;
}

napi_value Call::buffer(size_t size, void **data) const {
  napi_value result;
  check(napi_create_arraybuffer(env_, size, data, &result));
  return result;
}

napi_value Call::external(std::unique_ptr<Box> box) const {
  box->boxes = boxes_of(env_);
  box->boxes->insert(box.get());
  int64_t total;
  if (box->bytes) check(napi_adjust_external_memory(env_, box->bytes, &total));
  napi_value result;
  const napi_status status = napi_create_external(env_, box.get(), forget, nullptr, &result);
  if (status != napi_ok) box->boxes->erase(box.get());
  check(status);
  box.release();
  return result;
}

napi_value Call::tensor_value(Tensor t) const {
  auto box = std::make_unique<Box>();
  box->kind = Box::tensor;
  // views count again: the collector should come rather too early
  if (t->storage) box->bytes = int64_t(t->storage->nbytes);
  box->t = std::move(t);
  return external(std::move(box));
}

napi_value Call::generator_value(Ref<plait_generator> g) const {
  auto box = std::make_unique<Box>();
  box->kind = Box::generator;
  box->g = std::move(g);
  return external(std::move(box));
}

napi_value Call::graph_value(GraphHandle graph) const {
  auto box = std::make_unique<Box>();
  box->kind = Box::graph;
  box->run = std::make_unique<GraphHandle>(std::move(graph));
  return external(std::move(box));
}

namespace {

// Empties a box now, rather than when JavaScript collects it.
napi_value free_box(Call &c) {
  Box &box = c.any_box(c.at(0), "the argument");
  box.t = Tensor();
  box.g = Ref<plait_generator>();
  box.run.reset();
  int64_t total;
  if (box.bytes) napi_adjust_external_memory(c.env(), -box.bytes, &total);
  box.bytes = 0;
  return c.undefined();
}

}  // namespace

void define(napi_env env, napi_value exports, const Entry *entries, size_t count) {
  for (size_t i = 0; i < count; i++) {
    napi_value function;
    napi_create_function(env, entries[i].name, NAPI_AUTO_LENGTH, entries[i].function, nullptr,
                         &function);
    napi_set_named_property(env, exports, entries[i].name, function);
  }
}

}  // namespace plait::node

// Each thread of JavaScript that loads the addon calls this.
NAPI_MODULE_INIT() {
  using namespace plait::node;
  auto *boxes = new Boxes(std::make_shared<std::unordered_set<const void *>>());
  napi_set_instance_data(
      env, boxes, [](napi_env, void *data, void *) { delete static_cast<Boxes *>(data); }, nullptr);
  const Entry own[] = {{"free", entry<free_box>}};
  define(env, exports, own, std::size(own));
  define_tensors(env, exports);
  define_operators(env, exports);
  define_graphs(env, exports);
  return exports;
}
