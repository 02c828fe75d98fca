// Declarations that the files of libplait_abi share. None is visible outside of the library.
#pragma once
#include <plait/fork.hpp>
#include <plait/plait.hpp>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace plait::abi {

extern plait_runtime runtime;        // runtime.cpp

// Whether the layer of a bit serves tensors whose bytes mean something else, and so their aliases.
// The others follow what happens to a handle.
constexpr bool sees_aliases(uint32_t bit) { return bit < 16 || (bit >= 36 && bit < 40); }

// The tables in force; fields are replaced atomically. Components find them by plait_runtime::role.
struct Roles {
  const plait_executor *executor;
  const plait_rng *rng;
  const plait_host *host;
  const plait_engine *engine;
  const plait_allocator *allocator[PLAIT_MAX_DEVICE_TYPES];
  const plait_device *device[PLAIT_MAX_DEVICE_TYPES];
  const plait_collectives *communicator[PLAIT_MAX_DEVICE_TYPES];
};
extern Roles roles;  // roles.cpp
template <class T>
const T *in_force(const T *const &table) {
  return __atomic_load_n(&table, __ATOMIC_ACQUIRE);
}
extern ForkMutex
    registry_mutex;  // guards definitions and registrations, never held while calling a plug-in
extern uint64_t observed;  // observe.cpp

// Tensor handles are made and freed all the time, so each thread keeps some free blocks of the two
// sizes that they need.
class BlockCache {
 public:
  void *take() { return n_ ? block_[--n_] : nullptr; }
  bool give(void *p) {
    if (n_ == kRoom) return false;
    block_[n_++] = p;
    return true;
  }
  ~BlockCache() { drain(); }
  void drain();

 private:
  static constexpr int kRoom = 128;
  int n_ = 0;
  void *block_[kRoom];
};

struct CurrentStream {
  DLDevice device;
  plait_stream *stream;  // owned; nullptr: the default stream
};

class Uses;
struct Thread : plait_thread {
  BlockCache tensors, storages, small;  // small: lists of tensors, and sizes of many dimensions
  std::vector<CurrentStream> streams;  // of devices other than the CPU
  const Uses *uses = nullptr;  // of its innermost call, while the host has no global lock
  const plait_op *composite = nullptr;  // the outermost one that runs as its decomposition
  DLDevice decomposing{kDLCPU, 0};      // where the innermost decomposition runs
  bool host_copies = false;  // a device declined a copy, which runs on the CPU
  uint64_t number = 0;       // from 1; no other thread has had it
  int64_t live = 0, peak = 0;  // blocks from malloc that this thread took minus those it freed, and
                               // the largest value of that number
};
Thread *this_thread();  // made on first use
bool is_alive(uint64_t thread);
void forget_thread(uint64_t thread);  // late_errors.cpp
Thread *this_thread_if_alive();  // nullptr if there is no memory, or while the thread ends

// Objects.

// What the runtime allocates for a tensor: the public fields, and room for its shape and strides.
struct TensorBlock : plait_tensor {
  int64_t inline_dims[10];  // of up to 5 dimensions
  uint64_t uses;  // see uses.hpp
};
// The stream that a storage of a device was made for, and whose later work may have its memory;
// borrowed.
plait_stream *stream_of(const plait_storage *);
extern const plait_type tensor_type, storage_type;
plait_status tensor_new(plait_thread *, DLDataType, int32_t, const int64_t *, const int64_t *,
                        DLDevice, plait_tensor **);
plait_status tensor_on(plait_thread *, plait_storage *, void *, DLDataType, int32_t,
                       const int64_t *, const int64_t *, plait_tensor **);
plait_status tensor_alias(plait_thread *, plait_tensor *, plait_tensor **);
plait_status tensor_repoint(plait_thread *, plait_tensor *, plait_tensor *);
plait_status storage_new(plait_thread *, DLDevice, uint64_t, plait_storage **);
plait_status storage_wrap(plait_thread *, void *, uint64_t, DLDevice, uint64_t, void (*)(void *),
                          void *, plait_storage **);
plait_status tensors_value(plait_thread *, plait_tensor *const *, uint32_t, plait_value *);
void release_value(plait_value *);
void touched(plait_storage *);
plait_generator *generator_new(uint64_t seed);
// first and one-past-last byte that the tensor's elements cover
struct Extent {
  const char *begin, *end;
};
Extent extent(const plait_tensor *);

// Devices; device.hpp has what is not in the table of functions.

plait_status device_count(plait_thread *, DLDeviceType, int32_t *);
plait_status use_device(plait_thread *, DLDevice);
plait_status event_share(plait_thread *, plait_device_event *, plait_shared_memory *);
plait_status event_open(plait_thread *, DLDevice, const plait_shared_memory *,
                        plait_device_event **);
plait_status stream_new(plait_thread *, DLDevice, int32_t, plait_stream **);
plait_status stream_wrap(plait_thread *, DLDevice, void *, plait_stream **);
plait_stream *current_stream(plait_thread *, DLDevice);
plait_status set_stream(plait_thread *, DLDevice, plait_stream *, plait_stream **);
plait_status stream_query(plait_thread *, DLDevice, plait_stream *, int32_t *);
plait_status stream_synchronize(plait_thread *, DLDevice, plait_stream *);
plait_status synchronize(plait_thread *, DLDevice);
plait_status event_new(plait_thread *, DLDevice, uint64_t, plait_device_event **);
plait_status event_record(plait_thread *, plait_device_event *, plait_stream *);
plait_status event_query(plait_thread *, plait_device_event *, int32_t *);
plait_status event_wait(plait_thread *, plait_device_event *);
plait_status stream_wait(plait_thread *, DLDevice, plait_stream *, plait_device_event *);
plait_status event_elapsed(plait_thread *, plait_device_event *, plait_device_event *, double *);
void record_use(plait_storage *, plait_stream *);
plait_status pinned_new(plait_thread *, DLDevice, uint64_t, plait_storage **);
plait_status host_copy(plait_thread *, plait_tensor *, plait_tensor **);
plait_status settle(plait_thread *, const plait_tensor *);  // see there
plait_status set_fallback(plait_thread *, DLDeviceType, int32_t);
void report_fallbacks(std::vector<plait_record> &);
void release_streams(Thread *);

// Errors.

// Whether a status is an error's code; and one that needs no exception of the host language.
inline bool is_code(plait_status s) { return s < 0 && s >= PLAIT_LINALG_ERROR; }
inline bool is_own_code(plait_status s) { return is_code(s) && s != PLAIT_HOST_ERROR; }
std::string device_text(DLDevice);  // "cpu", "cuda:1"
// names the operator that was called in the error of an operator that it is made of
void name_caller(const plait_call *);
plait_status raise(plait_thread *, plait_status, const char *origin, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
plait_status fail(const plait_call *, plait_status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
plait_status named(const plait_call *, plait_status);  // the thread's error, as one of the call
plait_status raise_host(plait_thread *, plait_object *, const char *);
void clear(plait_thread *);

// Operators.

struct Schema {  // owns every string that the plait_arg tables point to
  std::string name, base;
  std::vector<plait_arg> args, results;
  std::deque<std::string> strings;
  std::deque<std::vector<int64_t>> int_lists;
};
// throws std::runtime_error whose text has the position
void parse_schema(const char *text, Schema &out);

struct Registration {
  uint64_t id;
  uint32_t slot;
  plait_entry entry;
  std::string name;  // of `implement_named`: that of the operator
};
struct Op : plait_op {
  const plait_plugin *who;  // whose `init` defined it, or nullptr
  bool writes;  // an argument is marked !
  uint64_t own_layers = 0;  // bits of those that have a function for this very operator
  Schema parsed;
  std::string schema_text, doc_text;
  std::vector<Registration> registrations;
};
plait_status define(plait_thread *, const plait_op_def *, const plait_op **);
void cost(const plait_call *, plait_cost *);  // cost.cpp
const plait_op *find_op(const char *name);
uint64_t list_ops(const plait_op **, uint64_t);
plait_status implement(plait_thread *, const plait_op *, uint32_t, plait_kernel, void *,
                       const plait_plugin *, uint64_t *);
plait_status implement_named(plait_thread *, const char *, uint32_t, plait_kernel, void *,
                             const plait_plugin *, uint64_t *);
plait_status retract(plait_thread *, uint64_t);
plait_status layer(plait_thread *, const char *, uint32_t, uint32_t *);
uint64_t passive_layers();  // bits of those that only look at calls
// Whether a tensor's bytes are not its elements: a layer below 16 serves it. Objects of classes
// with __torch_dispatch__ ("python") may have bytes of their own, and are no such tensors.
bool has_no_elements(const plait_tensor *);
// names and providers for the report
void report_ops(std::vector<plait_record> &);

// Dispatch.

plait_status call(plait_call *);
plait_status call_below(plait_call *);
plait_status decompose(plait_call *);
plait_status result(plait_call *, uint32_t, DLDataType, int32_t, const int64_t *);
plait_status result_strided(plait_call *, uint32_t, DLDataType, int32_t, const int64_t *,
                            const int64_t *);
plait_status view(plait_call *, uint32_t, plait_tensor *, int32_t, const int64_t *, const int64_t *,
                  int64_t);
plait_status cast(plait_call *, uint32_t, DLDataType);
// the operators that dispatch calls itself, set when they are defined
extern std::atomic<const plait_op *> op_cast, op_copy, op_clone, op_dense, op_detach;

// Roles, observers and plug-ins.

plait_status provide(plait_thread *, const char *, int32_t, const plait_header *,
                     const plait_plugin *, uint64_t *);
const plait_header *const *role(const char *, int32_t);
const plait_header *provider(const char *, const char *, int32_t);
bool retract_role(uint64_t);
void undefine_ops_of(const plait_plugin *);  // the operators that its `init` defined
void retract_ops_of(const plait_plugin *);  // these three remove all that one plug-in registered
void retract_roles_of(const plait_plugin *);
// whether a plug-in may go: not while tensors have the memory of a device that it brought
plait_status may_retract(plait_thread *, const plait_plugin *);
bool has_gone_device(const plait_plugin *);  // that it brought, and that cannot be used any more
void end_devices_of(const plait_plugin *);
void forget_observers_of(plait_thread *, const plait_plugin *);
void report_roles(std::vector<plait_record> &);
// A package's defaults come after what a user chose, whatever is loaded first.
inline bool is_default(const plait_plugin *p) { return p && p->flags & PLAIT_PLUGIN_DEFAULT; }
uint64_t next_undo();
void install_default_roles();

plait_status observe(plait_thread *, const plait_observer *, int);
void report_observers(std::vector<plait_record> &);
void emit(const plait_event *);
uint64_t begin_event(const plait_event *, uint64_t *, uint64_t);
void end_event(const plait_event *, const uint64_t *, uint64_t, plait_status);

plait_status load(plait_thread *, const char *);
plait_status attach(plait_thread *, const plait_plugin *);
void report_plugins(std::vector<plait_record> &);
plait_status detach(plait_thread *, const char *);
void quiesce();  // of all plug-ins, once
const plait_plugin *initialising();  // the plug-in whose init runs on this thread, or nullptr
bool version_fits(plait_thread *, const char *subject, const plait_header &);
// whether a struct is as long as that of version 0.3, whose last field ends at `required`
bool size_fits(plait_thread *, const char *subject, const plait_header &, size_t required);
// whether all flags that must be understood are among `known`
bool flags_fit(plait_thread *, const char *subject, uint64_t flags, uint64_t known);
#define PLAIT_END_OF(T, field) (offsetof(T, field) + sizeof(((T *)nullptr)->field))

}  // namespace plait::abi
