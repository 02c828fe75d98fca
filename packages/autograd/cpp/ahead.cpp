// Where branches of the graph are independent, several nodes are ready at once. Their derivatives
// run on the threads of the executor; what they give is delivered when their turn comes, so that
// the order of all sums, and every bit, is that of one thread.
#include "ahead.hpp"

#include "op_node.hpp"
#include "tangents.hpp"
#include "task.hpp"
#include "watch.hpp"

namespace plait::autograd {
namespace {

// Below, a derivative ends before another thread has woken up.
constexpr int64_t kLeast = 1 << 14, kLeastPointwise = 1 << 16;
// From here on operators divide their own work, which keeps more threads busy than nodes may.
constexpr int64_t kLarge = 1 << 20;

int64_t elements(const Layout &l) {
  int64_t n = l.ndim < 0 ? 0 : 1;
  for (int32_t k = 0; k < l.ndim; k++) n *= l.shape[k];
  return n;
}

// Elements of the largest result or, if values are saved, input.
int64_t work_of(const OpNode *n) {
  int64_t most = 0;
  const auto look = [&most](const Layout &l) {
    const int64_t size = elements(l);
    most = size > most ? size : most;
  };
  for (uint32_t i = 0; i < n->n_outs; i++) look(n->outs[i]);
  for (uint32_t i = 0; n->n_saved && i < n->n_edges; i++)
    if (const Edge &e = n->edges[i]; e.node) look(e.node->outs[e.index]);
  return most;
}

bool worthwhile(const Node *node) {
  if (node->kind != Kind::op || node->extra.load(std::memory_order_acquire)) return false;
  const auto *n = static_cast<const OpNode *>(node);
  if (!n->op->def->vjp || n->op->flags & PLAIT_OP_VIEW) return false;
  const int64_t work = work_of(n);
  return work >= (n->op->flags & PLAIT_OP_POINTWISE ? kLeastPointwise : kLeast) && work < kLarge;
}

// A worker's thread does as the one that runs the pass, which may itself be at work, with layers
// switched off for a while: so it does as that one did before the work was given out.
class Alike {
 public:
  Alike(plait_thread *worker, uint64_t excluded, uint64_t included)
      : worker_(worker), excluded_(worker->excluded), included_(worker->included) {
    worker->excluded = excluded;
    worker->included = included;
  }
  ~Alike() {
    worker_->excluded = excluded_;
    worker_->included = included_;
  }
  Alike(const Alike &) = delete;
  Alike &operator=(const Alike &) = delete;

 private:
  plait_thread *worker_;
  uint64_t excluded_, included_;
};

}  // namespace

uint32_t threads_for(const plait_thread *thread, bool particular) {
  const plait_executor *e = PLAIT_ROLE(thread->roles->executor);
  return particular || watching() || level_of(thread) || !e ? 1 : e->width(e->ctx);
}

void Task::look_ahead(Node *first) {
  const auto known = [this](const Node *n) {
    for (const Ahead &a : ahead_)
      if (a.node == n) return true;
    return false;
  };
  if (!worthwhile(first) || known(first)) return;
  const size_t old = ahead_.size();
  const auto add = [this](Node *n) {
    uint64_t need = 0;
    for (uint32_t i = 0; i < n->n_edges; i++)
      if (n->edges[i].node) need |= bit_of(i);
    ahead_.push_back({static_cast<OpNode *>(n), buffers(n), need, {}, false});
    ahead_.back().gx.resize(n->n_edges);
  };
  for (Node *n : heap_) {
    if (ahead_.size() - old + 1 >= width_) break;
    bool whole = worthwhile(n) && !known(n);
    for (uint32_t i = 0; whole && i < n->n_outs; i++) whole = buffers(n)[i];
    if (whole) add(n);
  }
  if (ahead_.size() == old) return;
  bool whole = true;
  for (uint32_t i = 0; whole && i < first->n_outs; i++) whole = buffers(first)[i];
  if (!whole) return ahead_.resize(old);
  add(first);
  struct Job {
    Task *task;
    Ahead *from;
    uint64_t excluded, included;
  } job{this, ahead_.data() + old, thread_->excluded, thread_->included};
  const plait_executor *e = PLAIT_ROLE(thread_->roles->executor);
  e->parallel(
      e->ctx, ahead_.size() - old,
      [](void *arg, uint64_t i) {
        auto *j = static_cast<Job *>(arg);
        j->task->compute(j->from[i], j->excluded, j->included);
      },
      &job);
}

// A derivative that fails here runs again when its turn comes, and fails there, in order; so the
// node keeps its values until it has succeeded.
void Task::compute(Ahead &a, uint64_t excluded, uint64_t included) const noexcept {
  plait_thread *thread = engine.runtime->thread();
  const Alike alike(thread, excluded, included);
  std::vector<plait_tensor *> gx;
  try {
    gx.resize(a.gx.size(), nullptr);
    vjp(thread, a.node, a.gy, a.need, gx.data(), true);
    if (!retain_) const Unpacked last(thread, a.node, false, false);
    a.done = true;
  } catch (...) {
    engine.runtime->clear(thread);
  }
  for (size_t i = 0; i < gx.size(); i++) {
    Tensor t = Tensor::steal(gx[i]);
    if (a.done) a.gx[i] = std::move(t);
  }
}

bool Task::computed(Node *n, plait_tensor **gx) {
  for (Ahead &a : ahead_) {
    if (a.node != n) continue;
    for (size_t i = 0; a.done && i < a.gx.size(); i++) gx[i] = a.gx[i].release();
    const bool done = a.done;
    std::swap(a, ahead_.back());
    ahead_.pop_back();
    return done;
  }
  return false;
}

}  // namespace plait::autograd
