// Saved graphs for JavaScript. Most functions are written by tools/bindings.
#include <cstring>
#include <mutex>

#include "libraries.hpp"

namespace plait::node {
namespace {

#include "run_table.inc"

const RunFunctions *table;  // never freed: threads of JavaScript end in any order

// libplait_run, from the folders of the first call in the process.
const RunFunctions &run_functions(const std::string &folders = "") {
  static std::mutex lock;
  const std::lock_guard<std::mutex> guard(lock);
  if (!table)
    table = new RunFunctions(find_functions(open_library(folders, "plait_graph", "plait_run")));
  return *table;
}

// plait_run_settings from an object; `libraries` is required.
class RunSettings {
 public:
  RunSettings(const Call &c, size_t i)
      : libraries_(c.text_of(c.member(c.at(i), "libraries"), "libraries")) {
    run_functions(libraries_);
    settings_.size = sizeof settings_;
    settings_.libraries = libraries_.c_str();
    settings_.memory_limit = uint64_t(number(c, c.at(i), "memoryLimit", 0x1p53));
    settings_.threads = uint32_t(number(c, c.at(i), "threads", 4096));
    bool map = false;
    napi_value flag = c.member(c.at(i), "mapWeights");
    if (c.type(flag) == napi_boolean) c.check(napi_get_value_bool(c.env(), flag, &map));
    settings_.flags = map ? PLAIT_RUN_MAP_WEIGHTS : 0;
  }
  const plait_run_settings *get() const { return &settings_; }

 private:
  static double number(const Call &c, napi_value object, const char *name, double most) {
    napi_value value = c.member(object, name);
    if (c.is_missing(value)) return 0;
    double x = -1;
    if (c.type(value) == napi_number) c.check(napi_get_value_double(c.env(), value, &x));
    if (!(x >= 0 && x <= most))
      fail(PLAIT_VALUE_ERROR, std::string("Graph: `") + name + "` must be a number from 0 on");
    return x;
  }
  std::string libraries_;
  plait_run_settings settings_ = {};
};

#include "run_functions.inc"

// run_read(graph, kind, index): the elements in C order, as an ArrayBuffer; null without a value
napi_value run_read(Call &c) {
  GraphHandle &graph = c.graph(0);
  plait_run_tensor t = {};
  t.size = sizeof t;
  const auto kind = c.integer<int>(1);
  graph.check(run_functions().plait_run_get(graph.pointer, kind, c.integer<uint32_t>(2), &t));
  if (!t.data && t.nbytes) return c.null();
  void *to = nullptr;
  napi_value result = c.buffer(t.nbytes, &to);
  std::vector<int64_t> at(size_t(std::max(t.ndim, 0)));
  auto *bytes = static_cast<char *>(to);
  for (uint64_t done = 0; done < t.nbytes; done += t.item_size) {
    int64_t offset = 0;
    for (size_t i = 0; i < at.size(); i++) offset += at[i] * t.strides[i];
    std::memcpy(bytes + done, static_cast<const char *>(t.data) + offset * t.item_size,
                t.item_size);
    for (size_t i = at.size(); i-- > 0 && ++at[i] == t.shape[i];) at[i] = 0;
  }
  return result;
}

}  // namespace

GraphHandle::~GraphHandle() {
  if (pointer) run_functions().plait_run_close(pointer);
}

void GraphHandle::check(int status) const {
  if (status >= 0) return;
  fail(status, pointer ? run_functions().plait_run_error(pointer) : "plait_run_open: no memory");
}

napi_value Call::description(const plait_run_tensor &t) const {
  return object({{"name", t.name ? text_value(t.name) : null()},
                 {"dtype", t.dtype ? text_value(t.dtype) : null()},
                 {"shape", list(t.shape, std::max(t.ndim, 0))}});
}

void define_graphs(napi_env env, napi_value exports) {
  define(env, exports, run_entries, std::size(run_entries));
  const Entry entries[] = {{"run_read", entry<run_read>}};
  define(env, exports, entries, std::size(entries));
}

}  // namespace plait::node
