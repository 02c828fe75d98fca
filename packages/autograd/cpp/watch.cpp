#include "watch.hpp"

#include <deque>
#include <mutex>
#include <unordered_map>

#include "record.hpp"

namespace plait::autograd {

std::atomic<const Watch *> watch{nullptr};
std::atomic<bool> anomaly{false}, anomaly_nan{true};
std::atomic<int> packers{0};

namespace {

__thread int packing_depth = 0;

// Writes.
struct Written {
  uint64_t version;   // after the write
  uint64_t sequence;  // of the next node
  std::string name;
  plait_object *site;
};
constexpr size_t kStorages = 4096, kWrites = 16;

struct Writes {  // the last writes, by storage, of the storages that were written to last
  ForkMutex guard;
  std::unordered_map<const plait_storage *, std::deque<Written>> of;
};
Writes *const all_writes = new Writes;  // never destroyed: threads may outlive the end of main
Writes &writes() { return *all_writes; }

void forget_all() {
  std::unordered_map<const plait_storage *, std::deque<Written>> old;
  {
    const std::lock_guard<ForkMutex> lock(writes().guard);
    old.swap(writes().of);
  }
  for (auto &entry : old)  // outside of the lock, as the host may be called
    for (Written &w : entry.second) plait_release_object(w.site);
}

void note_write(const plait_call *c, const plait_tensor *t) {
  if (t->flags & PLAIT_TENSOR_DATA) return;  // writes through `data` are not checked
  const Watch *w = watch.load(std::memory_order_acquire);
  Written now{history_version(t), next_sequence(), written_name(c->op, c->form),
              w ? w->site() : nullptr};
  plait_object *old = nullptr;
  {
    const std::lock_guard<ForkMutex> lock(writes().guard);
    auto &list = writes().of[t->storage];
    // the address belonged to another storage
    if (!list.empty() && list.back().version >= now.version) {
      while (!list.empty() && !old) {
        old = list.back().site;
        list.pop_back();
      }
    }
    list.push_back(std::move(now));
    if (list.size() > kWrites && !old) {
      old = list.front().site;
      list.pop_front();
    }
  }
  plait_release_object(old);
  if (writes().of.size() > kStorages) forget_all();
}

void ended(void *, const plait_event *e, uint64_t, plait_status status) {
  const plait_call *c = e->call;
  if (status != PLAIT_OK || !c) return;
  try {
    if (c->form != PLAIT_FUNCTION)
      for (uint16_t i = 0; i < c->n_out; i++)
        if (c->out[i].tag == PLAIT_TENSOR && c->out[i].u.t) note_write(c, c->out[i].u.t);
    for (uint16_t i = 0; i < c->n_in; i++)
      if ((plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES) && c->in[i].tag == PLAIT_TENSOR)
        note_write(c, c->in[i].u.t);
  } catch (const std::exception &) {  // out of memory: the write is not recorded
  }
}

void began(void *, const plait_event *, uint64_t *) {}
const plait_observer observer{PLAIT_HEADER(plait_observer), nullptr, PLAIT_EVENT_OP, began, ended};

struct Recent {  // a recorded write, which is always remembered
  const plait_storage *storage;
  uint64_t version;   // after it
  uint64_t sequence;  // of the next node
  const plait_op *op;
  uint32_t form;
  plait_object *code;
  int64_t offset;
};
constexpr size_t kRecent = 256;
Recent recent[kRecent];
size_t recent_count = 0;
uint32_t recent_spin = 0;

bool recent_write(const plait_storage *, uint64_t version, uint64_t sequence, Write *);
bool watched_write(const plait_storage *, uint64_t version, uint64_t sequence, Write *);

std::string line_of(plait_object *code, int64_t offset) {
  const plait_host *host = role<plait_host>(engine.runtime);
  if (!host || !code) return "";
  const plait_site site{code, offset};
  char text[512];
  host->describe(host->ctx, &site, text, sizeof text);
  return text[0] ? std::string(" at ") + text : "";
}

LazyOperator op_isnan("isnan"), op_any("any");

Tensor first_of(plait_thread *thread, LazyOperator &op, const plait_tensor *t) {
  plait_value out[PLAIT_MAX_RESULTS];
  const plait_value in[] = {value(const_cast<plait_tensor *>(t))};
  call(thread, op.get(thread), in, 1, out);
  return Tensor::steal(out[0].u.t);
}

}  // namespace

static ForkMutex anomaly_guard;

plait_status set_anomaly(plait_thread *thread, int on, int check_nan) {
  const std::lock_guard<ForkMutex> lock(anomaly_guard);
  anomaly_nan = check_nan != 0;
  if (anomaly == (on != 0)) return PLAIT_OK;
  const plait_status s = engine.runtime->observe(thread, &observer, on != 0);
  if (s < 0) return s;
  anomaly = on != 0;
  if (!on) forget_all();
  return PLAIT_OK;
}

plait_object *site_of(const Node *n) noexcept {
  const Extra *x = n->extra.load(std::memory_order_acquire);
  return x ? x->site : nullptr;
}

void note_site(Node *n) noexcept {
  const Watch *w = watch.load(std::memory_order_acquire);
  if (!w || n->kind == Kind::leaf) return;
  try {
    Extra *x = extra_of(n);
    if (!x->site) x->site = w->site();
  } catch (const std::exception &) {
  }
}

std::string where(plait_object *site) {
  const Watch *w = watch.load(std::memory_order_acquire);
  if (!w || !site) return "";
  char text[512];
  w->describe(site, 0, text, sizeof text);
  return text[0] ? std::string(" at ") + text : "";
}

std::string where(const Node *n) {
  const std::string result = where(site_of(n));
  return result.empty() ? line_of(n->code, n->offset) : result;
}

std::string made_at(const Node *n) {
  const std::string line = where(n);
  return line.empty() ? line : " (the call was made" + line + ")";
}

plait_site current_site() noexcept {
  plait_site result{nullptr, 0};
  if (const plait_host *host = role<plait_host>(engine.runtime)) host->site(host->ctx, &result);
  return result;
}

void note_recent_write(const plait_call *c, const plait_tensor *t) noexcept {
  if (t->flags & PLAIT_TENSOR_DATA) return;
  const plait_site at = current_site();
  const Recent now{t->storage, history_version(t), next_sequence(), c->op, c->form,
                   at.code,    at.offset};
  plait_object *old;
  {
    const Spin guard(recent_spin);
    Recent &slot = recent[recent_count++ % kRecent];
    old = slot.code;
    slot = now;
  }
  plait_release_object(old);
}

bool write_after(const plait_storage *s, uint64_t version, uint64_t sequence, Write *out) {
  return watched_write(s, version, sequence, out) || recent_write(s, version, sequence, out);
}

namespace {

bool recent_write(const plait_storage *s, uint64_t version, uint64_t sequence, Write *out) {
  Recent first{};
  {
    const Spin guard(recent_spin);
    for (const Recent &r : recent)
      if (r.storage == s && r.version > version && r.sequence > sequence &&
          (!first.op || r.version < first.version))
        first = r;
    if (!first.op) return false;
    if (first.code) plait_retain_object(first.code);
  }
  out->name = written_name(first.op, first.form);
  out->line = line_of(first.code, first.offset);
  plait_release_object(first.code);
  return true;
}

bool watched_write(const plait_storage *s, uint64_t version, uint64_t sequence, Write *out) {
  plait_object *site = nullptr;
  {
    const std::lock_guard<ForkMutex> lock(writes().guard);
    const auto it = writes().of.find(s);
    if (it == writes().of.end()) return false;
    const Written *first = nullptr;
    for (const Written &w : it->second)
      if (w.version > version && w.sequence > sequence && !first) first = &w;
    if (!first) return false;
    out->name = first->name;
    site = first->site;
    if (site) plait_retain_object(site);
  }
  out->line = where(site);
  plait_release_object(site);
  return true;
}

}  // namespace

// NaN.
bool has_nan(plait_thread *thread, const plait_tensor *t) {
  if (!t || !differentiable(t->dl.dtype) || t->dl.device.device_type == PLAIT_META) return false;
  const Excluding quiet(thread, false);
  const Tensor any = first_of(thread, op_any, first_of(thread, op_isnan, t).get());
  Tensor here;
  check(thread->runtime->host_copy(thread, any.get(), here.out()));
  return *here.data<bool>();
}

namespace {

// Notes an input that has a NaN: a leaf or a tensor outside of the graph is the origin; if it is
// the result of an earlier call, this call is not the first.
void note_input(plait_thread *thread, Node *n, Extra *x, const plait_tensor *t, uint32_t argument) {
  if (x->nan == Nan::none || !has_nan(thread, t)) return;
  const bool outside = is_leaf(t);
  x->nan = outside ? Nan::took : Nan::none;
  x->argument = argument;
  x->edge = 0;
  const Leaf *leaf = outside && has_bit(t) ? as_leaf(t->slot[0]) : nullptr;
  while (x->edge < n->n_edges && (!leaf || n->edges[x->edge].node != leaf)) x->edge++;
}

}  // namespace

void note_nan(const plait_call *c, Node *n) {
  Extra *x = extra_of(n);
  bool result = false;
  each_result(c, [&](const plait_tensor *t, uint32_t, uint32_t, uint32_t) {
    result = result || has_nan(c->thread, t);
  });
  x->nan = result ? Nan::made : Nan::none;
  if (!result || c->form == PLAIT_INPLACE) return;  // the values before a write are gone
  each_input(c, [&](const plait_tensor *t, uint32_t argument, uint32_t, uint32_t) {
    note_input(c->thread, n, x, t, argument);
  });
}

void note_nan(plait_thread *thread, Node *n, plait_tensor *const *inputs, uint32_t n_in,
              plait_tensor *const *outputs, uint32_t n_out) {
  Extra *x = extra_of(n);
  bool result = false;
  for (uint32_t i = 0; i < n_out; i++) result = result || has_nan(thread, outputs[i]);
  x->nan = result ? Nan::made : Nan::none;
  for (uint32_t i = 0; result && i < n_in; i++)
    if (inputs[i]) note_input(thread, n, x, inputs[i], i);
}

// Saved tensors.
int set_packing(int depth) {
  const int before = std::exchange(packing_depth, depth);
  if ((depth > 0) != (before > 0)) packers += depth > 0 ? 1 : -1;
  return before;
}
bool packing_here() noexcept { return packing_depth > 0; }

namespace {

[[noreturn]] void refuse_nan(plait_thread *thread, const std::vector<Node *> &visited, Node *n,
                             uint32_t edge) {
  const Node *first = nullptr;  // the earliest call whose result had a NaN
  for (const Node *m : visited) {
    const Extra *x = m->extra.load(std::memory_order_acquire);
    if (x && x->nan > Nan::none && (!first || m->sequence < first->sequence)) first = m;
  }
  std::string forward;
  if (first) {
    const Extra *x = first->extra.load(std::memory_order_acquire);
    const auto *op = first->kind == Kind::op ? static_cast<const OpNode *>(first) : nullptr;
    const std::string name = op ? written_name(op->op, op->form) : node_name(first);
    forward = "; in the forward pass the first NaN ";
    if (x->nan == Nan::took && op)
      forward +=
          std::string("came in as `") + plait_arg_at(op->op, x->argument)->name + "` of " + name;
    else
      forward += "was made by " + name;
    forward += where(first);
  }
  const std::string called = where(n);
  raise(thread, PLAIT_ERROR, node_name(n),
        "it returned NaN as gradient of input %u, of gradients that were not NaN%s%s%s",
        unsigned(edge), called.empty() ? "" : "; the call was made", called.c_str(),
        forward.c_str());
}

}  // namespace

void check_nan(plait_thread *thread, const std::vector<Node *> &visited, Node *n,
               plait_tensor *const *arguments, plait_tensor *const *result) {
  for (uint32_t i = 0; i < n->n_edges; i++) {
    if (!result[i] || !n->edges[i].node || !has_nan(thread, result[i])) continue;
    for (uint32_t k = 0; k < n->n_outs; k++)
      if (has_nan(thread, arguments[k]))  // no earlier node made the NaN
        raise(thread, PLAIT_ERROR, node_name(n),
              "it returned NaN as gradient of input %u because it was given NaN: the gradient of a "
              "result, or what a hook returned, is NaN",
              unsigned(i));
    refuse_nan(thread, visited, n, i);
  }
}

}  // namespace plait::autograd
