// A plug-in that records calls: it watches all operators and appends those that a program calls
// (not the ones that these call in turn) to the file that PLAIT_RECORD names. Calls of more than
// five megabytes, calls that fail, and those on devices are left out.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "calls.hpp"

namespace {

using replay::Bytes;
using replay::Writer;

constexpr size_t kMost = 5 << 20;  // bytes of a call

const plait_runtime *runtime;
std::FILE *file;
std::mutex lock;
thread_local std::vector<Writer> running;  // what was known before each call that is not done

// Operators that return uninitialised memory, and one that asks for LAPACK where it is loaded.
bool left_out(const plait_op *op) {
  const std::string name = op->name;
  return name.rfind("empty", 0) == 0 || name.rfind("new_empty", 0) == 0 || name == "lu_unpack";
}

Writer before(const plait_call *c) {
  Writer w;
  w.put_bytes(c->op->name, std::strlen(c->op->name));
  w.put(c->form);
  const plait_rng *rng = plait::role<plait_rng>(runtime);
  w.put_generator(rng->default_generator(rng->ctx));
  w.put(uint32_t(c->n_in));
  bool whole = !left_out(c->op);
  for (size_t i = 0; i < c->n_in && whole; i++)
    whole = w.put_value(c->in[i]) && w.bytes.size() < kMost;
  w.put(uint32_t(c->n_out));
  const bool given = c->form == PLAIT_OUT;  // targets, whose elements do not matter
  for (size_t i = 0; i < c->n_out && whole && given; i++) whole = w.put_value(c->out[i]);
  if (!whole) w.bytes.clear();
  return w;
}

void after(Writer w, const plait_call *c) {
  bool whole = !w.bytes.empty();
  for (size_t i = 0; i < c->n_out && whole; i++) whole = w.put_value(c->out[i]);
  for (size_t i = 0; i < c->n_in && whole; i++)
    if (plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES) whole = w.put_value(c->in[i]);
  if (!whole || w.bytes.size() > 2 * kMost) return;
  const std::lock_guard<std::mutex> guard(lock);
  std::fwrite(w.bytes.data(), 1, w.bytes.size(), file);
}

void begin(void *, const plait_event *event, uint64_t *token) {
  *token = running.size();
  running.push_back(running.empty() ? before(event->call) : Writer());
}

void end(void *, const plait_event *event, uint64_t token, plait_status status) {
  if (token >= running.size()) return;
  Writer w = std::move(running[token]);
  running.resize(token);
  if (token == 0 && status >= 0) after(std::move(w), event->call);
}

const plait_observer kObserver = {PLAIT_HEADER(plait_observer), nullptr, PLAIT_EVENT_OP, begin,
                                  end};

plait_status init(const plait_runtime *r, const plait_plugin *) {
  runtime = r;
  const char *path = std::getenv("PLAIT_RECORD");
  file = path ? std::fopen(path, "wb") : nullptr;
  if (!file)
    return r->raise(r->thread(), PLAIT_ERROR, "recorder", "PLAIT_RECORD must name a file to write");
  return r->observe(r->thread(), &kObserver, 1);
}

void quiesce() { std::fclose(file); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "recorder", "1", 0, init, quiesce};
