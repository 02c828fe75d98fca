// Data that few nodes have: hooks, metadata, and in anomaly mode the call site.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine.hpp"

namespace plait::autograd {

enum class When : uint32_t {
  arrived,      // when the gradient of output `index` is complete; the hook may replace it
  retained,     // after the hooks `arrived`: a Cell stores the gradient
  before,       // before the node runs, with all gradients; the hook may replace them
  after,        // after the node ran, with its results; the hook may replace them
  accumulated,  // after a leaf's gradient was added to
};

// A hook is in its node's list and is owned by the handle that can remove it.
struct Hook {
  plait_object o;
  Hook *next;
  Node *node;  // NULL after it was removed from the list; guarded by `spin`
  plait_object *what;
  When when;
  uint32_t index;
  uint32_t spin, reserved;
};
extern const plait_type hook_type;

// Whether the call made a NaN or took one from an input; unknown: its results were not checked.
enum class Nan : uint32_t { unknown, none, made, took };

struct Extra {
  uint32_t spin;  // guards the members below; never held during a call
  Nan nan;
  Hook *hooks;  // in the order of registration
  plait_object *metadata;
  plait_object *site;
  uint32_t argument;  // the argument, for Nan::took
  uint32_t edge;      // its edge, if it is a leaf; else the number of edges
};

Extra *extra_of(Node *);  // made if there is none
void drop_extra(Node *) noexcept;

Ref<Hook> add_hook(Node *, When, uint32_t index, plait_object *object);
void remove_hook(Hook *) noexcept;
// The hooks of one kind, kept alive while they run.
std::vector<Ref<Hook>> hooks_at(Node *, When);
bool has_hooks(Node *, When) noexcept;
void move_cell(Node *from, Node *to, Cell *, uint32_t index);
// Drops hooks and metadata: the collector found that they keep their own node alive.
void untie(Node *) noexcept;

// Visits host objects that only `slot` keeps alive (an object with one owner): `held` gets counted
// objects, `wrapper` gets the wrappers that tensors own.
struct Visitor {
  int (*held)(plait_object *, void *arg);
  int (*wrapper)(void *, void *arg);
  void *arg;
};
int traverse(plait_object *slot, const Visitor &);

}  // namespace plait::autograd
