// The functions of libucp that are used, found when the library is opened at run time. Declared
// here are the calling conventions and layouts of UCX's stable interface (UCP 1.10 to 1.x): its
// structures begin with a mask of the fields that are filled in, so that later versions only
// append.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

struct sockaddr;

namespace plait::ucx {

using Status = int8_t;  // 0, 1 for "in progress", or a negative error

constexpr Status status_ok = 0, status_in_progress = 1, status_busy = -15, status_canceled = -16;

struct ContextParams {
  uint64_t field_mask, features;
  size_t request_size;
  void *request_init, *request_cleanup;
  uint64_t tag_sender_mask;
  int mt_workers_shared;
  size_t estimated_num_eps, estimated_num_ppn;
  const char *name;
  size_t node_local_id;
};
enum : uint64_t { context_features = 1, context_workers_shared = 1 << 5, context_peers = 1 << 6 };
enum : uint64_t { feature_tag = 1, feature_wakeup = 1 << 4 };

struct WorkerParams {
  uint64_t field_mask;
  int thread_mode;
  uint64_t cpu_mask[16];
  unsigned events;
  void *user_data;
  int event_fd;
  uint64_t flags;
  const char *name;
  size_t am_alignment;
  uint64_t client_id;
};
enum : uint64_t { worker_thread_mode = 1 };
enum { threads_serialized = 1 };

struct SocketAddress {
  const sockaddr *address;
  uint32_t length;
};
struct EndpointParams {
  uint64_t field_mask;
  const void *address;
  int error_mode;
  struct {
    void (*call)(void *, void *endpoint, Status);
    void *argument;
  } error_handler;
  void *user_data;
  unsigned flags;
  SocketAddress remote;
  void *request;
  const char *name;
  SocketAddress local;
};
enum : uint64_t { endpoint_address = 1, endpoint_error_mode = 1 << 1, endpoint_handler = 1 << 2 };
enum { errors_of_peers = 1 };

struct RequestParams {
  uint32_t mask, flags;
  void *request;
  void (*call)();  // a union of callbacks
  uint64_t datatype;
  void *user_data, *reply_buffer;
  int memory_type;
  void *received;
  void *memory;
  uint64_t remote_datatype;
  const void *remote;
  size_t remote_count;
};
enum : uint32_t { request_flags = 1 << 4, request_memory_type = 1 << 6 };
enum : uint32_t { close_by_force = 1 };

struct MessageInfo {
  uint64_t tag;
  size_t bytes;
};

struct Functions {
  void (*get_version)(unsigned *, unsigned *, unsigned *);
  Status (*config_read)(const char *, const char *, void **);
  Status (*config_modify)(void *, const char *, const char *);
  void (*config_release)(void *);
  Status (*init_version)(unsigned, unsigned, const ContextParams *, const void *, void **);
  void (*cleanup)(void *);
  Status (*worker_create)(void *, const WorkerParams *, void **);
  void (*worker_destroy)(void *);
  Status (*worker_get_address)(void *, void **, size_t *);
  void (*worker_release_address)(void *, void *);
  Status (*worker_get_efd)(void *, int *);
  Status (*worker_arm)(void *);
  unsigned (*worker_progress)(void *);
  Status (*worker_signal)(void *);
  Status (*ep_create)(void *, const EndpointParams *, void **);
  void *(*ep_close_nbx)(void *, const RequestParams *);
  void *(*tag_send_nbx)(void *, const void *, size_t, uint64_t, const RequestParams *);
  void *(*tag_recv_nbx)(void *, void *, size_t, uint64_t, uint64_t, const RequestParams *);
  void *(*tag_probe_nb)(void *, uint64_t, uint64_t, int, MessageInfo *);
  void *(*tag_msg_recv_nbx)(void *, void *, size_t, void *, const RequestParams *);
  Status (*request_check_status)(void *);
  void (*request_cancel)(void *, void *);
  void (*request_free)(void *);
  unsigned version[3];
  std::string path;
};

// What a call returns that begins an operation: nothing, an error, or a request.
inline bool is_request(const void *p) {
  return reinterpret_cast<uintptr_t>(p) - 1 < uintptr_t(-101);
}
inline Status status_of(const void *p) {
  return is_request(p) ? status_in_progress : Status(reinterpret_cast<intptr_t>(p));
}
const char *status_text(Status);

// Opens the library at its first call; NULL with a text if it is not there or of another kind.
const Functions *library(std::string &reason);
void set_library_path(const char *);  // of libucp, tried before the system's

}  // namespace plait::ucx
