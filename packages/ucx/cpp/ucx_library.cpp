#include "ucx_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <vector>

namespace plait::ucx {
namespace {

constexpr unsigned first_minor = 10;  // the first with all functions under their present names

std::mutex mutex;
std::string chosen_path;

// Sets an environment variable while a library is opened, unless the user has set it.
class TemporaryVariable {
 public:
  TemporaryVariable(const char *name, const char *value)
      : name_(name), is_set_here_(!std::getenv(name)) {
    if (is_set_here_) setenv(name, value, 1);
  }
  TemporaryVariable(const TemporaryVariable &) = delete;
  ~TemporaryVariable() {
    if (is_set_here_) unsetenv(name_);
  }

 private:
  const char *name_;
  bool is_set_here_;
};

void *open_first(const std::vector<std::string> &paths, std::string &path, std::string &reason) {
  // UCX must not replace Python's signal handlers, and must not log: its errors are raised.
  const TemporaryVariable handlers("UCX_ERROR_SIGNALS", ""), level("UCX_LOG_LEVEL", "fatal"),
      unused("UCX_WARN_UNUSED_ENV_VARS", "n");
  for (const std::string &each : paths) {
    if (void *handle = dlopen(each.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      path = each;
      return handle;
    }
    const char *error = dlerror();
    reason += (reason.empty() ? "" : "; ") + std::string(error ? error : "it cannot be opened");
  }
  return nullptr;
}

template <class F>
bool find(void *handle, const char *name, F &function, std::string &reason) {
  function = reinterpret_cast<F>(dlsym(handle, name));
  if (!function) reason = std::string("it has no function ") + name;
  return function;
}

bool find_all(void *h, Functions &f, std::string &reason) {
  return find(h, "ucp_get_version", f.get_version, reason) &&
         find(h, "ucp_config_read", f.config_read, reason) &&
         find(h, "ucp_config_modify", f.config_modify, reason) &&
         find(h, "ucp_config_release", f.config_release, reason) &&
         find(h, "ucp_init_version", f.init_version, reason) &&
         find(h, "ucp_cleanup", f.cleanup, reason) &&
         find(h, "ucp_worker_create", f.worker_create, reason) &&
         find(h, "ucp_worker_destroy", f.worker_destroy, reason) &&
         find(h, "ucp_worker_get_address", f.worker_get_address, reason) &&
         find(h, "ucp_worker_release_address", f.worker_release_address, reason) &&
         find(h, "ucp_worker_get_efd", f.worker_get_efd, reason) &&
         find(h, "ucp_worker_arm", f.worker_arm, reason) &&
         find(h, "ucp_worker_progress", f.worker_progress, reason) &&
         find(h, "ucp_worker_signal", f.worker_signal, reason) &&
         find(h, "ucp_ep_create", f.ep_create, reason) &&
         find(h, "ucp_ep_close_nbx", f.ep_close_nbx, reason) &&
         find(h, "ucp_tag_send_nbx", f.tag_send_nbx, reason) &&
         find(h, "ucp_tag_recv_nbx", f.tag_recv_nbx, reason) &&
         find(h, "ucp_tag_probe_nb", f.tag_probe_nb, reason) &&
         find(h, "ucp_tag_msg_recv_nbx", f.tag_msg_recv_nbx, reason) &&
         find(h, "ucp_request_check_status", f.request_check_status, reason) &&
         find(h, "ucp_request_cancel", f.request_cancel, reason) &&
         find(h, "ucp_request_free", f.request_free, reason);
}

bool load(Functions &f, std::string &reason) {
  reason.clear();
  std::vector<std::string> paths;
  if (const char *chosen = std::getenv("PLAIT_UCX_LIBRARY"); chosen && *chosen) {
    paths = {chosen};  // no other one is tried
  } else {
    if (!chosen_path.empty()) paths.push_back(chosen_path);
    paths.emplace_back("libucp.so.0");
  }
  void *handle = open_first(paths, f.path, reason);
  if (!handle) {
    reason = "UCX is not available: " + reason +
             "; install libucx-cu13 with pip, or the system's package of UCX (libucx0), or set "
             "PLAIT_UCX_LIBRARY to the path of libucp.so.0";
    return false;
  }
  if (!find_all(handle, f, reason)) {
    reason = f.path + " is not a UCX library that plait can use: " + reason;
    return false;
  }
  f.get_version(&f.version[0], &f.version[1], &f.version[2]);
  if (f.version[0] != 1 || f.version[1] < first_minor) {
    reason = f.path + " is of UCX " + std::to_string(f.version[0]) + "." +
             std::to_string(f.version[1]) + "; 1." + std::to_string(first_minor) +
             " or a later 1.x is required";
    return false;
  }
  return true;
}

}  // namespace

void set_library_path(const char *path) {
  const std::lock_guard<std::mutex> lock(mutex);
  chosen_path = path ? path : "";
}

const Functions *library(std::string &reason) {
  static Functions *loaded = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!loaded) {
    static Functions functions;
    functions = {};
    if (!load(functions, reason)) return nullptr;
    loaded = &functions;
  }
  return loaded;
}

const char *status_text(Status s) {
  switch (s) {
    case -3: return "input or output failed";
    case -4: return "out of memory";
    case -6: return "it cannot be reached";
    case -8:
    case -22: return "the transport cannot do this";
    case -9: return "the message is longer than the memory for it";
    case -14: return "there is no network device";
    case -16: return "cancelled";
    case -20: return "it did not answer";
    case -24: return "not connected";
    case -25: return "the connection was closed by the other side";
    default: return "UCX reports an error";
  }
}

}  // namespace plait::ucx
