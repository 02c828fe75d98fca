#include "member.hpp"

#include <signal.h>
#include <unistd.h>

#include <thread>

namespace plait::multiprocessing {
namespace {

std::atomic<bool> process_ends{false};
bool ask_for_end(void *) { return process_ends.load(); }

}  // namespace

std::atomic<int64_t> unfinished{0};

Outcome Member::run_observed(const Collective &c, const Patience &patience, Explanation &reason) {
  if (!(__atomic_load_n(runtime->observed, __ATOMIC_RELAXED) & PLAIT_EVENT_COLLECTIVE))
    return run(*group, c, patience, reason);
  plait_event e{};
  e.size = sizeof e;
  e.kind = PLAIT_EVENT_COLLECTIVE;
  e.name = kind_name(c.kind);
  e.a = c.elements * uint64_t(itemsize(c.dtype));
  e.device = {kDLCPU, 0};
  uint64_t tokens[PLAIT_TOKENS];
  const uint64_t n = runtime->begin(&e, tokens, PLAIT_TOKENS);
  const Outcome o = run(*group, c, patience, reason);
  runtime->end(&e, tokens, n, o == Outcome::done ? PLAIT_OK : PLAIT_ERROR);
  return o;
}

// Without memory the others must not wait for this member.
Outcome Member::run_safely(const Collective &c, const Patience &patience,
                           Explanation &explanation) {
  try {
    return run_observed(c, patience, explanation);
  } catch (const std::bad_alloc &) {
    const Reason reason(group->rank(), group->rank(), CAUSE_INTERRUPTED);
    return group->give_up(Outcome::broken, reason, 0, explanation, "out of memory");
  }
}

// Behind all that was started before.
Outcome Member::run_now(const Collective &c, double timeout, Signals &signals,
                        Explanation &reason) {
  {
    Held lock(mutex);
    while (busy || !queue.empty()) {
      changed.wait_for(lock, pause);
      if (!busy && queue.empty()) break;
      lock.unlock();  // asking may wait for the interpreter's lock
      const bool interrupted = signals.asked();
      lock.lock();
      if (interrupted)
        return group->give_up(Outcome::interrupted,
                              {group->rank(), group->rank(), CAUSE_INTERRUPTED}, 0, reason,
                              "interrupted");
    }
    busy = true;
  }
  const Outcome o = run_safely(c, signals.patience(timeout), reason);
  const std::lock_guard<std::mutex> lock(mutex);
  busy = false;
  changed.notify_all();
  return o;
}

template <class F>
void Member::start_thread(F &&body) {  // the mutex is held
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's own threads
  threads++;
  try {
    std::thread([self = shared_from_this(), body] {
      body();
      const std::lock_guard<std::mutex> lock(self->mutex);
      if (--self->threads == 0 && self->closing) self->group->leave();
    }).detach();
  } catch (...) {
    threads--;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Member::enqueue(const std::shared_ptr<Operation> &o) {
  const std::lock_guard<std::mutex> lock(mutex);
  const bool transfers_it = o->call.kind == PLAIT_SEND || o->call.kind == PLAIT_RECEIVE;
  bool &has = transfers_it ? has_mover : has_worker;
  if (!has) {
    if (transfers_it)
      start_thread([this] { move_messages(); });
    else
      start_thread([this] { work(); });
    has = true;
  }
  if (!transfers_it) queue.push_back(o);
  changed.notify_all();
}

void Member::move_messages() {
  for (;;) {
    try {
      return transfers.drive_all({0, ask_for_end, nullptr});
    } catch (const std::bad_alloc &) {  // memory may come back
      std::this_thread::sleep_for(pause);
    }
  }
}

void Member::work() {
  for (;;) {
    std::shared_ptr<Operation> o;
    {
      Held lock(mutex);
      changed.wait(lock, [&] { return !busy && (closing || !queue.empty()); });
      if (queue.empty()) return;
      o = queue.front();
      queue.pop_front();
      busy = true;
    }
    const Outcome outcome = run_safely(o->call, {o->timeout, ask_for_end, nullptr}, o->explanation);
    o->release();
    const std::lock_guard<std::mutex> lock(mutex);
    busy = false;
    o->outcome = outcome;
    o->done = true;
    unfinished--;
    changed.notify_all();
  }
}

void Member::close() {
  transfers.stop();
  const bool no_messages = transfers.idle();
  const std::lock_guard<std::mutex> lock(mutex);
  closing = true;
  // else the last of its threads does it; one that moved messages may have ended meanwhile
  if (threads == 0 || (no_messages && queue.empty() && !busy)) group->leave();
  changed.notify_all();
}

void stop_collectives() {
  process_ends = true;
  for (int i = 0; i < 100 && unfinished.load() > 0; i++) std::this_thread::sleep_for(pause);
}

void forget_collectives() { unfinished = 0; }

}  // namespace plait::multiprocessing
