#include "host/nccl_library.h"

#include <cstdlib>
#include <cstring>

#include "host/library.h"

namespace plait::cuda::nccl {
namespace {

const char *choice() { return getenv("PLAIT_CUDA_NCCL"); }

const Functions *open() {
  static Functions f;
  void *const library = open_library({{"nccl/lib", "libnccl.so.2"}}, choice());
  const bool works = library && look_up(library, {
#define PLAIT_NCCL_FUNCTION(name, exported, parameters) {&f.name, exported},
#define PLAIT_NCCL_TEXT PLAIT_NCCL_FUNCTION
#include "host/nccl_functions.h"
#undef PLAIT_NCCL_TEXT
#undef PLAIT_NCCL_FUNCTION
                                                 });
  return works ? &f : nullptr;
}

}  // namespace

const Functions *library() {
  static const Functions *const chosen = open();
  return chosen;
}

plait_status fail_without_library(plait_thread *thread, const char *caller) {
  const char *const text = choice();
  return thread->runtime->raise(
      thread, PLAIT_ERROR, caller,
      "collectives of GPUs need NCCL (libnccl.so.2), which is not installed: pip install "
      "plait-cuda[libraries]%s",
      text && strcmp(text, "0") == 0 ? "; PLAIT_CUDA_NCCL is 0" : "");
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
