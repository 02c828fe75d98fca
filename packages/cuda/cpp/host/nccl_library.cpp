#include "host/nccl_library.h"

#include <dlfcn.h>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "driver/driver.h"

namespace plait::cuda::nccl {
namespace {

bool look_up(void *library, Functions *to) {
  struct Entry {
    void *to;
    const char *exported;
  };
  const Entry entries[] = {
#define PLAIT_NCCL_FUNCTION(name, exported, parameters) {&to->name, exported},
#define PLAIT_NCCL_TEXT PLAIT_NCCL_FUNCTION
#include "host/nccl_functions.h"
#undef PLAIT_NCCL_TEXT
#undef PLAIT_NCCL_FUNCTION
  };
  for (const Entry &each : entries) {
    void *function = dlsym(library, each.exported);
    if (!function) return false;
    memcpy(each.to, &function, sizeof function);
  }
  return true;
}

// The library that PLAIT_NCCL_LIBRARY names; else that of the package nvidia-nccl beside this one,
// or that of the system. The emulation has its own.
const Functions *open_library() {
  static Functions functions;
  const std::string here = driver::folder();
  std::vector<std::string> names;
  if (const char *choice = getenv("PLAIT_NCCL_LIBRARY"); choice && *choice)
    names = {choice};
  else if (driver::emulated())
    names = {here + "../emulation/libnccl.so.2"};
  else
    names = {here + "../../nvidia/nccl/lib/libnccl.so.2", "libnccl.so.2"};
  for (const std::string &name : names)
    if (void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
      if (look_up(library, &functions)) return &functions;
  return nullptr;
}

}  // namespace

const Functions *library() {
  static const Functions *const chosen = open_library();
  return chosen;
}

plait_status fail_without_library(plait_thread *thread, const char *caller) {
  const char *choice = getenv("PLAIT_NCCL_LIBRARY");
  const std::string where =
      choice && *choice ? std::string("; PLAIT_NCCL_LIBRARY is ") + choice : "";
  return thread->runtime->raise(
      thread, PLAIT_ERROR, caller,
      "collectives of GPUs need NCCL (libnccl.so.2), which is not installed: pip install "
      "plait-cuda[libraries]%s",
      where.c_str());
}

std::string error_text(Result result, Comm comm) {
  const Functions *f = library();
  const char *name = f->error_name(result), *detail = f->last_error(comm);
  std::string text = name ? name : "unknown error";
  if (detail && *detail) text += std::string(", ") + detail;
  return text + " (error " + std::to_string(result) + " of NCCL)";
}

}  // namespace plait::cuda::nccl

#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

// The version of NCCL as it counts, such as 22703; 0 where it is not installed.
PLAIT_EXPORT int plait_cuda_nccl_version() {
  int version = 0;
  const auto *f = plait::cuda::nccl::library();
  return f && f->version(&version) == plait::cuda::nccl::kSuccess ? version : 0;
}
