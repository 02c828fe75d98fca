#include "parallel.hpp"

#include "evaluate.hpp"
#include "record.hpp"
#include "tangents.hpp"
#include "unpack.hpp"
#include "watch.hpp"

namespace plait::autograd {
namespace {

// With less work, a derivative ends before another thread has woken up.
constexpr int64_t kLeast = 1 << 14, kLeastPointwise = 1 << 16;
// From this size on operators are parallel themselves, which uses more threads than parallel nodes.
constexpr int64_t kLarge = 1 << 20;

int64_t elements(const Layout &l) {
  int64_t n = l.ndim < 0 ? 0 : 1;
  for (int32_t k = 0; k < l.ndim; k++) n *= l.shape[k];
  return n;
}

// The number of elements of the largest result or input.
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

// Whether derivatives take about the same time. A thread that ends much earlier than the others
// would wait for one whose operators, computed alone, would have used all threads.
bool alike(const Node *a, const Node *b) {
  const auto *x = static_cast<const OpNode *>(a), *y = static_cast<const OpNode *>(b);
  const int64_t work = work_of(x), other = work_of(y);
  return x->op == y->op && work <= 2 * other && other <= 2 * work;
}

// Gives a worker the modes that the thread of the pass had before the work was distributed, as that
// thread may have switched layers off in the meantime.
class ModesOf {
 public:
  ModesOf(plait_thread *worker, const Modes &modes)
      : worker_(worker), before_{worker->excluded, worker->included, worker->device} {
    set(modes);
  }
  ~ModesOf() { set(before_); }
  ModesOf(const ModesOf &) = delete;
  ModesOf &operator=(const ModesOf &) = delete;

 private:
  void set(const Modes &modes) {
    worker_->excluded = modes.excluded;
    worker_->included = modes.included;
    worker_->device = modes.device;
  }
  plait_thread *worker_;
  const Modes before_;
};

}  // namespace

// Uses one thread in anomaly mode, within a level of forward mode, and where a layer sees all calls
// of the thread, which it gets in one order.
void ParallelDerivatives::start(plait_thread *thread, bool keep, bool serial) {
  thread_ = thread;
  keep_ = keep;
  const plait_executor *e = role<plait_executor>(thread->runtime);
  const bool in_order = serial || watching() || level_of(thread) || thread->included;
  width_ = in_order || !e ? 1 : e->width(e->ctx);
}

void ParallelDerivatives::look_ahead(Node *first, const std::vector<Node *> &others,
                                     PassMarks &marks) {
  const auto known = [this](const Node *n) {
    for (const Derivative &d : done_)
      if (d.node == n) return true;
    return false;
  };
  if (!worthwhile(first) || known(first)) return;
  const size_t old = done_.size();
  const auto add = [&](Node *n) {
    uint64_t need = 0;
    for (uint32_t i = 0; i < n->n_edges; i++)
      if (n->edges[i].node) need |= bit_of(i);
    done_.push_back({static_cast<OpNode *>(n), marks.buffers(n), need, {}, false});
    done_.back().gx.resize(n->n_edges);
  };
  for (Node *n : others) {
    if (done_.size() - old + 1 >= width_) break;
    bool whole = worthwhile(n) && alike(first, n) && !known(n);
    for (uint32_t i = 0; whole && i < n->n_outs; i++) whole = marks.buffers(n)[i];
    if (whole) add(n);
  }
  if (done_.size() == old) return;
  bool whole = true;
  for (uint32_t i = 0; whole && i < first->n_outs; i++) whole = marks.buffers(first)[i];
  if (!whole) return done_.resize(old);
  add(first);
  struct Job {
    ParallelDerivatives *all;
    Derivative *from;
    Modes modes;
  } job{this, done_.data() + old, {thread_->excluded, thread_->included, thread_->device}};
  const plait_executor *e = role<plait_executor>(thread_->runtime);
  e->parallel(
      e->ctx, done_.size() - old,
      [](void *arg, uint64_t i) {
        auto *j = static_cast<Job *>(arg);
        j->all->compute(j->from[i], j->modes);
      },
      &job);
}

// A derivative that fails here runs again in its turn, so that errors come in order. So the node
// keeps its values until it has succeeded.
void ParallelDerivatives::compute(Derivative &d, const Modes &modes) const noexcept {
  plait_thread *thread = engine.runtime->thread();
  const ModesOf alike(thread, modes);
  const StreamGuard stream(thread, device_of(d.node), d.node->stream);
  std::vector<plait_tensor *> gx;
  try {
    gx.resize(d.gx.size(), nullptr);
    vjp({thread, true, false}, d.node, d.gy, 0, d.need, gx.data());
    if (!keep_) const Unpacked last(thread, d.node, false, false);
    d.done = true;
  } catch (...) {
    engine.runtime->clear(thread);
  }
  for (size_t i = 0; i < gx.size(); i++) {
    Tensor t = Tensor::steal(gx[i]);
    if (d.done) d.gx[i] = std::move(t);
  }
}

bool ParallelDerivatives::move_result(const Node *n, plait_tensor **gx) {
  for (Derivative &d : done_) {
    if (d.node != n) continue;
    for (size_t i = 0; d.done && i < d.gx.size(); i++) gx[i] = d.gx[i].release();
    const bool done = d.done;
    std::swap(d, done_.back());
    done_.pop_back();
    return done;
  }
  return false;
}

}  // namespace plait::autograd
