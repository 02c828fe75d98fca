// Modules, their functions, and launches.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "emulation/driver/state.h"

namespace plait::cuda::driver {

struct ModuleHandle {
  ContextHandle *context;
  const emulation::Library *library;
  std::string name;
};
struct FunctionHandle {
  ContextHandle *context;
  const emulation::Library *library;
  const emulation::Entry *entry;
  std::atomic<int> most_shared{48 << 10};
};

namespace {

constexpr int kSharedOptIn = 227 << 10;

Handles<ModuleHandle> &modules() {
  static auto *all = new Handles<ModuleHandle>();
  return *all;
}
Handles<FunctionHandle> &functions() {
  static auto *all = new Handles<FunctionHandle>();
  return *all;
}

std::string own_folder() {
  Dl_info info;
  const std::string path =
      dladdr(reinterpret_cast<void *>(&own_folder), &info) ? info.dli_fname : "";
  return path.substr(0, path.rfind('/') + 1);
}

// The library of kernels beside this one.
const emulation::Library *library() {
  static const emulation::Library *const one = []() -> const emulation::Library * {
    const std::string path = own_folder() + "libplait_cuda_kernels.so";
    void *opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!opened) {
      fprintf(stderr, "plait_cuda emulation: %s\n", dlerror());
      return nullptr;
    }
    void *function = dlsym(opened, kEmulatedLibraryFunction);
    return function ? reinterpret_cast<decltype(&plait_cuda_emulated_library)>(function)()
                    : nullptr;
  }();
  return one;
}

// "cpp/kernels/normalization/softmax.cpp" -> "normalization_softmax", as images are called.
std::string module_of(const char *file) {
  std::string text(file);
  const size_t folder = text.rfind("kernels/");
  if (folder != std::string::npos) text = text.substr(folder + 8);
  text.resize(std::min(text.size(), text.rfind('.')));
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

}  // namespace

// Nothing is read from `path`: its stem says which file of kernels is meant.
Result module_load(Module *out, const char *path) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (!out || !path) return kInvalidValue;
  if (const Result r = check_capture()) return r;
  const emulation::Library *from = library();
  if (!from) return kFileNotFound;
  std::string stem(path);
  stem = stem.substr(stem.rfind('/') + 1);
  stem.resize(std::min(stem.size(), stem.rfind('.')));
  const bool has_kernels = std::any_of(
      from->begin, from->end, [&](const emulation::Entry &e) { return module_of(e.file) == stem; });
  if (!has_kernels) return kFileNotFound;
  *out = modules().add(std::make_shared<ModuleHandle>(ModuleHandle{context, from, stem}));
  return kSuccess;
}
Result module_unload(Module module) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  return modules().remove(module) ? kSuccess : kInvalidHandle;
}

Result module_function(Function *out, Module handle, const char *name) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (!out || !name) return kInvalidValue;
  const auto module = modules().find(handle);
  if (!module) return kInvalidHandle;
  const emulation::Library *from = module->library;
  for (const emulation::Entry *each = from->begin; each != from->end; each++) {
    if (strcmp(each->name, name) || module_of(each->file) != module->name) continue;
    auto function = std::make_shared<FunctionHandle>();
    function->context = module->context;
    function->library = from;
    function->entry = each;
    *out = functions().add(function);
    return kSuccess;
  }
  return kNotFound;
}

Result function_attribute(int *value, int attribute, Function handle) {
  if (const Result r = entered()) return r;
  const auto function = functions().find(handle);
  if (!function) return kInvalidHandle;
  if (!value) return kInvalidValue;
  if (attribute == kFunctionMaxThreads)
    *value = int(function->entry->max_threads);
  else if (attribute == kFunctionDynamicShared)
    *value = function->most_shared;
  else
    return kInvalidValue;
  return kSuccess;
}
Result function_set(Function handle, int attribute, int value) {
  if (const Result r = entered()) return r;
  const auto function = functions().find(handle);
  if (!function) return kInvalidHandle;
  if (attribute != kFunctionDynamicShared || value < 0 || value > kSharedOptIn)
    return kInvalidValue;
  function->most_shared = value;
  return kSuccess;
}
Result occupancy(int *blocks, Function handle, int threads, size_t shared) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  const auto function = functions().find(handle);
  if (!function) return kInvalidHandle;
  if (!blocks || threads <= 0) return kInvalidValue;
  *blocks = threads > int(function->entry->max_threads) ? 0 : std::min(32, 2048 / threads);
  if (shared) *blocks = std::min(*blocks, int((kSharedOptIn + 1024) / (shared + 1024)));
  return kSuccess;
}

namespace {

Result check_launch(const FunctionHandle &function, const unsigned grid[3], unsigned threads,
                    unsigned shared) {
  for (int i = 0; i < 3; i++)
    if (grid[i] == 0 || grid[i] > (i ? 65535u : 0x7fffffffu)) return kInvalidValue;
  if (threads == 0 || threads > 1024) return kInvalidValue;
  if (threads > function.entry->max_threads) return kLaunchOutOfResources;
  return shared > unsigned(function.most_shared) ? kInvalidValue : kSuccess;
}

void run_launch(ContextHandle &context, const FunctionHandle &function,
                const emulation::Launch &launch) {
  emulation::Trap trap = {kSuccess, {}};
  function.library->launch(launch, &trap);
  if (trap.code != kSuccess) set_fault(context, trap.code, trap.text);
}

}  // namespace

Result launch(Function handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
              unsigned block_y, unsigned block_z, unsigned shared, Stream to, void **parameters,
              void **extra) {
  StreamPtr stream;
  ContextHandle *context;
  if (const Result r = entered(to, &stream)) return r;
  if (const Result r = entered(&context)) return r;
  const auto function = functions().find(handle);
  if (!function || function->context != context || stream->context != context)
    return kInvalidHandle;
  const unsigned grid[3] = {grid_x, grid_y, grid_z};
  // kernels of plait have blocks in one direction, and one parameter
  if (block_y != 1 || block_z != 1 || extra || !parameters || !parameters[0]) return kInvalidValue;
  if (const Result r = check_launch(*function, grid, block_x, shared)) return r;
  if (is_due(kLaunchFailsIn)) return kLaunchOutOfResources;
  count(kLaunches);
  emulation::Launch launch = {function->entry, nullptr, {grid_x, grid_y, grid_z},
                              block_x,         shared,  stream->context->ordinal,
                              &services()};
  const uint32_t size = function->entry->args_size;
  const std::shared_ptr<void> args(::operator new(size, std::align_val_t(64)),
                                   [](void *p) { ::operator delete(p, std::align_val_t(64)); });
  memcpy(args.get(), parameters[0], size);
  launch.args = args.get();
  const TracedCall call = trace_call(emulation::TracedKind::kKernel, function->entry->name, 0);
  return submit(stream, [stream, function, launch, args, call] {
    work(stream, call, [&] { run_launch(*stream->context, *function, launch); });
  });
}

}  // namespace plait::cuda::driver
