// NCCL's library, opened when the first group is.
#pragma once
#include <plait/abi.h>

#include <string>

#include "host/nccl_types.h"

namespace plait::cuda::nccl {

struct Functions {
#define PLAIT_NCCL_FUNCTION(name, exported, parameters) Result(*name) parameters;
#define PLAIT_NCCL_TEXT(name, exported, parameters) const char *(*name)parameters;
#include "host/nccl_functions.h"
#undef PLAIT_NCCL_TEXT
#undef PLAIT_NCCL_FUNCTION
};

// The functions; NULL where NCCL is not installed.
const Functions *library();

// Sets the error that says how to install it.
plait_status fail_without_library(plait_thread *thread, const char *caller);

// What went wrong, in NCCL's words.
std::string error_text(Result result, Comm comm = nullptr);

}  // namespace plait::cuda::nccl
