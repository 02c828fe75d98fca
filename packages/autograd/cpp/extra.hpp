// What few nodes have: hooks, metadata, and in anomaly mode the place where the call was made.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine.hpp"

namespace plait::autograd {

enum class When : uint32_t {
  arrived,      // a gradient of output `index` is complete: may replace it
  retained,     // a Cell, after those
  before,       // all gradients, just before the node runs: may replace them
  after,        // what the node made of them: may replace it
  accumulated,  // of a leaf, whose gradient has grown
};

// In the node's list and, counted, in the handle that can take it out again.
struct Hook {
  plait_object o;
  Hook *next;
  Node *node;  // NULL once it is in no list; guarded by `spin`
  plait_object *what;
  When when;
  uint32_t index;
  uint32_t spin, reserved;
};
extern const plait_type hook_type;

// What the call had to do with the first NaN; unknown: nobody looked at its results.
enum class Nan : uint32_t { unknown, none, made, took };

struct Extra {
  uint32_t spin;  // guards what follows, never held across a call
  Nan nan;
  Hook *hooks;  // in the order of registration
  plait_object *metadata;
  plait_object *site;
  uint32_t argument;  // Nan::took: which
  uint32_t edge;      // and of which edge, if from a leaf; else the number of edges
};

Extra *extra_of(Node *);  // made if there is none
void drop_extra(Node *) noexcept;

Ref<Hook> add_hook(Node *, When, uint32_t index, plait_object *what);
void remove_hook(Hook *) noexcept;
// The hooks of one kind, kept alive while they run.
std::vector<Ref<Hook>> hooks_at(Node *, When);
bool has_hooks(Node *, When) noexcept;
void move_cell(Node *from, Node *to, Cell *, uint32_t index);
// Drops hooks and metadata: the collector found that they keep their own node alive.
void untie(Node *) noexcept;

// Visits host objects that nothing but `slot` (an object that its owner alone counts) keeps alive:
// `held` are counted objects, `wrapper` the wrappers that tensors own.
struct Visitor {
  int (*held)(plait_object *, void *arg);
  int (*wrapper)(void *, void *arg);
  void *arg;
};
int traverse(plait_object *slot, const Visitor &);

}  // namespace plait::autograd
