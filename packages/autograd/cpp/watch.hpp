// What our own binding lends the engine beyond the role "host" (anomaly mode and hooks of saved
// tensors), and anomaly mode itself: where calls were made, who wrote, where the first NaN came
// from.
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "extra.hpp"

namespace plait::autograd {

struct Watch {
  plait_header h;
  plait_object *(*site)(void);  // where this thread is now, or NULL; any thread
  // "file.py:12 in forward", or with `full` the lines of a traceback, into text (truncated)
  void (*describe)(plait_object *site, int full, char *text, uint64_t size);
  // tells the user that the node failed; `site` may be NULL
  void (*failed)(const char *node, plait_object *site);
  // saved tensors: pack gives a counted object or NULL with the thread's error
  plait_object *(*pack)(plait_thread *, plait_tensor *);
  plait_status (*unpack)(plait_thread *, plait_object *, plait_tensor **);
  // the innermost user code of this thread: a new reference, left alone where there is none
  void (*here)(plait_object **code, int64_t *offset);
};

extern std::atomic<const Watch *> watch;  // NULL without our binding
extern std::atomic<bool> anomaly;         // of all threads, as in PyTorch
extern std::atomic<bool> anomaly_nan;     // whether gradients are looked at

inline bool watching() { return __builtin_expect(anomaly.load(std::memory_order_relaxed), false); }

plait_status set_anomaly(plait_thread *, int on, int check_nan);

void note_site(Node *) noexcept;
std::string where(plait_object *site);  // "", or " at file.py:12 in forward"
plait_object *site_of(const Node *) noexcept;  // borrowed, or NULL; anomaly mode's whole stack
std::string where(const Node *);               // of its call: from that, or from Node::code
std::string made_at(const Node *);             // "", or " (the call was made at ...)"
// Remembers a recorded write, as anomaly mode does for all of them.
void note_recent_write(const plait_call *, const plait_tensor *) noexcept;

bool has_nan(plait_thread *, const plait_tensor *);
// Refuses a NaN among the gradients of inputs that a node made of gradients without one, and names
// the first call of the forward pass, among the nodes that the backward pass visits, that had one.
void check_nan(plait_thread *, const std::vector<Node *> &visited, Node *,
               plait_tensor *const *given, plait_tensor *const *made);
// Remembers on the node whether its call made a NaN, or took one from outside the graph.
void note_nan(const plait_call *, Node *);
void note_nan(plait_thread *, Node *, plait_tensor *const *inputs, uint32_t n_in,
              plait_tensor *const *outputs, uint32_t n_out);

struct Write {  // what is known of a write into a storage
  std::string name, place;
};
// The first write after the storage had this version and the node with this sequence was recorded,
// which has kept it alive: earlier ones went to another storage in its place.
bool write_after(const plait_storage *, uint64_t version, uint64_t sequence, Write *);

// Hooks of saved tensors that are in force on this thread.
int set_packing(int depth);
bool packing_here() noexcept;
extern std::atomic<int> packers;  // how many threads have some
inline bool packing() noexcept {
  return __builtin_expect(packers.load(std::memory_order_relaxed) != 0, false) && packing_here();
}

}  // namespace plait::autograd
