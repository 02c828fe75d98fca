// Callbacks of the Python binding for the engine, beyond the role "host" (anomaly mode and hooks of
// saved tensors), and anomaly mode itself: call sites, writes, and the origin of the first NaN.
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "extra.hpp"

namespace plait::autograd {

struct Watch {
  plait_header h;
  plait_object *(*site)(void);  // the call site of this thread, or NULL; any thread
  // "file.py:12 in forward", or with `full` the lines of a traceback, into text (truncated)
  void (*describe)(plait_object *site, int full, char *text, uint64_t size);
  // warns the user that the node failed; `site` may be NULL
  void (*failed)(const char *node, plait_object *site);
  // saved tensors: pack gives a counted object or NULL with the thread's error
  plait_object *(*pack)(plait_thread *, plait_tensor *);
  plait_status (*unpack)(plait_thread *, plait_object *, plait_tensor **);
};

extern std::atomic<const Watch *> watch;  // NULL without the Python binding
extern std::atomic<bool> anomaly;  // of all threads, as in PyTorch
extern std::atomic<bool> anomaly_nan;  // whether gradients are checked for NaN

inline bool watching() { return __builtin_expect(anomaly.load(std::memory_order_relaxed), false); }

plait_status set_anomaly(plait_thread *, int on, int check_nan);

plait_site current_site() noexcept;  // of this thread, from the host; code is a new reference
void note_site(Node *) noexcept;
std::string where(plait_object *site);  // "", or " at file.py:12 in forward"
plait_object *site_of(const Node *) noexcept;  // borrowed, or NULL; anomaly mode's whole stack
std::string where(const Node *);  // of its call: from `site`, or from Node::code
std::string made_at(const Node *);  // "", or " (the call was made at ...)"
// Remembers a recorded write; anomaly mode does so for all writes.
void note_recent_write(const plait_call *, const plait_tensor *) noexcept;

bool has_nan(plait_thread *, const plait_tensor *);
// Raises an error if a node made gradients with a NaN from gradients without one. The error names
// the first call of the forward pass with a NaN, among the nodes of the backward pass.
void check_nan(plait_thread *, const std::vector<Node *> &visited, Node *,
               plait_tensor *const *arguments, plait_tensor *const *result);
// Notes on the node whether its call made a NaN, or took one from outside of the graph.
void note_nan(const plait_call *, Node *);
void note_nan(plait_thread *, Node *, plait_tensor *const *inputs, uint32_t n_in,
              plait_tensor *const *outputs, uint32_t n_out);

struct Write {  // a write to a storage
  std::string name, line;
};
// The first write after the storage had this version and the node with this sequence number was
// recorded. Earlier writes went to another storage at this address, as the node keeps this one
// alive.
bool write_after(const plait_storage *, uint64_t version, uint64_t sequence, Write *);

// Hooks of saved tensors that are in force on this thread.
int set_packing(int depth);
bool packing_here() noexcept;
extern std::atomic<int> packers;  // number of threads with such hooks
inline bool packing() noexcept {
  return __builtin_expect(packers.load(std::memory_order_relaxed) != 0, false) && packing_here();
}

}  // namespace plait::autograd
