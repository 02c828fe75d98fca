#include "transfers.hpp"

#include <algorithm>
#include <vector>

namespace plait::multiprocessing {
namespace {

uint32_t parts_of(uint64_t bytes, uint64_t part) { return uint32_t((bytes + part - 1) / part); }

constexpr double longest_unwatched = 0.05;  // seconds between looks at the others

struct Part {  // of a transfer, in elements
  uint64_t at, n;
};
Part part_number(uint32_t i, uint64_t elements, uint64_t each) {
  const uint64_t at = uint64_t(i) * each;
  return {at, std::min(each, elements - at)};
}

}  // namespace

void Transfers::add(const std::shared_ptr<Transfer> &t) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_.push_back(t);
    advance_all();
  }
  more_.notify_all();
  group_.ring(group_.rank());  // whoever drives looks again
}

void Transfers::finish(Transfer &t, Outcome outcome, Explanation explanation) {
  t.outcome = outcome;
  t.explanation = std::move(explanation);
  t.done = true;
  if (t.finished) t.finished(t);
}

std::string Transfers::call_text(bool sends, uint64_t elements, uint32_t dtype) const {
  return std::string(sends ? "sends " : "receives ") + std::to_string(elements) + " elements of " +
         name(DLDataType{uint8_t(dtype >> 8), uint8_t(dtype), 1});
}

void Transfers::free_message(Transfer &t) {
  if (const uint32_t lane = t.message->lane.load()) lane_taken_[lane - 1] = false;
  t.message->set(MESSAGE_FREE);
  t.message = nullptr;
}

// Moves a message of ours on; true when it is done.
bool Transfers::send(Transfer &t) {
  Outbox &own = group_.outbox(group_.rank());
  if (!t.message) {
    for (Message &m : own.message) {
      if (m.state() != MESSAGE_FREE) continue;
      m.lane = m.filled = m.taken = 0;
      m.to = t.peer;
      m.tag = t.tag;
      m.dtype = key(t.dtype);
      m.elements = t.elements.elements();
      m.word.store(++sequence_ << 3 | MESSAGE_POSTED, std::memory_order_release);
      t.message = &m;
      group_.ring(t.peer);
      return false;
    }
    return false;  // posted when an earlier one is received
  }
  Message &m = *t.message;
  const MessageState state = m.state();
  if (state == MESSAGE_POSTED || state == MESSAGE_EXAMINED) return false;
  if (state == MESSAGE_REFUSED) {
    finish(t, Outcome::mismatch,
           "the same tensor on both ranks is required (tag " + std::to_string(t.tag) + "); rank " +
               std::to_string(group_.rank()) + " " + call_text(true, m.elements, m.dtype) +
               ", rank " + std::to_string(t.peer) + " " +
               call_text(false, m.wanted_elements, m.wanted_dtype));
    free_message(t);
    return true;
  }
  const uint64_t item = uint64_t(itemsize(t.dtype)), each = group_.part() / item;
  const uint32_t parts = parts_of(m.elements, each);
  if (parts && !m.lane) {
    for (uint32_t i = 0; i < lanes && !m.lane; i++)
      if (!lane_taken_[i]) {
        lane_taken_[i] = true;
        m.lane = i + 1;
      }
    if (!m.lane) return false;
  }
  const uint32_t taken = m.taken.load(std::memory_order_acquire);
  for (uint32_t i = m.filled; i < parts && i < taken + 2; i++) {
    const Part p = part_number(i, m.elements, each);
    t.elements.read(p.at, p.n, group_.part_of(group_.rank(), m.lane - 1, i));
    m.filled.store(i + 1, std::memory_order_release);
    group_.ring(t.peer);
  }
  if (taken < parts) return false;
  free_message(t);
  finish(t, Outcome::done, "");
  return true;
}

// Tells both ends that the message does not fit; false if it was taken back.
bool Transfers::refuse(Transfer &t, Message &m, uint64_t word) {
  if (!m.move(word, MESSAGE_EXAMINED)) return false;
  const uint64_t elements = t.elements.elements();
  finish(t, Outcome::mismatch,
         "the same tensor on both ranks is required (tag " + std::to_string(t.tag) + "); rank " +
             std::to_string(t.peer) + " " + call_text(true, m.elements, m.dtype) + ", rank " +
             std::to_string(group_.rank()) + " " + call_text(false, elements, key(t.dtype)));
  m.wanted_elements = elements;
  m.wanted_dtype = key(t.dtype);
  m.set(MESSAGE_REFUSED);
  group_.ring(t.peer);
  return true;
}

// The oldest message that is posted for a receive; nullptr if there is none.
Message *Transfers::oldest_for(const Transfer &t, uint64_t &word) const {
  Message *oldest = nullptr;
  word = UINT64_MAX;
  for (Message &m : group_.outbox(t.peer).message) {
    const uint64_t read = m.read();
    if ((read & 7) == MESSAGE_POSTED && m.to == group_.rank() && m.tag == t.tag && read < word) {
      oldest = &m;
      word = read;
    }
  }
  return oldest;
}

// Claims the oldest message that fits, or takes what there is of the claimed one; true when done.
bool Transfers::receive(Transfer &t) {
  if (!t.message) {
    uint64_t word = 0;
    // The first look may have passed a place before an older message was posted there. Whoever has
    // seen a message sees all that were posted before it.
    if (!oldest_for(t, word)) return false;
    Message *oldest = oldest_for(t, word);
    if (!oldest) return false;
    if (oldest->elements != t.elements.elements() || oldest->dtype != key(t.dtype))
      return refuse(t, *oldest, word);
    if (!oldest->move(word, MESSAGE_CLAIMED)) return false;
    t.message = oldest;
    group_.ring(t.peer);
  }
  Message &m = *t.message;
  const uint64_t item = uint64_t(itemsize(t.dtype)), each = group_.part() / item;
  // its own count: the sender frees the message when the last part is taken
  const uint64_t elements = t.elements.elements();
  const uint32_t parts = parts_of(elements, each);
  uint32_t taken = parts ? m.taken.load(std::memory_order_relaxed) : 0;
  while (taken < parts && taken < m.filled.load(std::memory_order_acquire)) {
    const Part p = part_number(taken, elements, each);
    t.elements.write(p.at, p.n, group_.part_of(t.peer, m.lane - 1, taken));
    m.taken.store(++taken, std::memory_order_release);
    group_.ring(t.peer);
  }
  if (taken < parts) return false;
  finish(t, Outcome::done, "");
  return true;
}

void Transfers::advance_all() {
  for (auto it = open_.begin(); it != open_.end();) {
    Transfer &t = **it;
    // messages of a tag go in order: one waits for an earlier one that has not begun
    const bool begun = t.message || std::none_of(open_.begin(), it, [&](const auto &other) {
                         return other->sends == t.sends && other->peer == t.peer &&
                                other->tag == t.tag && !other->message;
                       });
    const bool done = t.done || (begun && (t.sends ? send(t) : receive(t)));
    it = done ? open_.erase(it) : std::next(it);
  }
}

// Takes back a transfer of which the other member has seen nothing.
bool Transfers::withdraw(Transfer &t) {
  if (!t.message) return true;
  const uint64_t word = t.message->read();
  if (!t.sends || (word & 7) != MESSAGE_POSTED || !t.message->move(word, MESSAGE_FREE))
    return false;
  t.message = nullptr;
  return true;
}

// Ends a transfer that cannot go on, or whose time is over.
void Transfers::examine(Transfer &t, bool interrupted) {
  Explanation explanation;
  const auto is_done = [&] {
    advance_all();
    return t.done;
  };
  // of messages only those of a rank that left fail; a collective needs it, and breaks the group
  const auto ends_alone = [&] { return withdraw(t); };
  const Outcome o = group_.check(t.peer, is_done, explanation, ends_alone);
  if (t.done) return;
  if (o != Outcome::done) {
    finish(t, o, explanation);
  } else if (interrupted || now() > t.deadline) {
    const bool late = now() > t.deadline;
    const std::string text = late ? "waited " + seconds(t.timeout) + " s for " +
                                        group_.name(t.peer) +
                                        (t.sends ? " to receive it" : " to send it") + " (tag " +
                                        std::to_string(t.tag) + ")"
                                  : "interrupted";
    const Outcome outcome = late ? Outcome::timed_out : Outcome::interrupted;
    if (withdraw(t)) {
      finish(t, outcome, text);
    } else if (!t.message || t.message->state() < MESSAGE_EXAMINED) {
      const Reason reason(group_.rank(), t.peer, late ? CAUSE_TIMED_OUT : CAUSE_INTERRUPTED);
      group_.give_up(outcome, reason, t.timeout, explanation, text);
      finish(t, outcome, explanation);
    }
  }
}

// Waits until something happens to a message; whether it is time to look at the others and the
// clock. It is, too, while messages come all the time.
bool Transfers::listen(uint32_t seen, double &looked) const {
  group_.listen(seen);
  const double t = now();
  if (own_bell() != seen && t - looked < longest_unwatched) return false;
  looked = t;
  return true;
}

uint32_t Transfers::own_bell() const {
  return group_.outbox(group_.rank()).bell.load(std::memory_order_acquire);
}

void Transfers::drive(Transfer &t, const Patience &patience) {
  double looked = now();
  for (;;) {
    const uint32_t seen = own_bell();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      advance_all();
      if (t.done) return;
    }
    if (!listen(seen, looked)) continue;
    const bool interrupted = patience.ended();  // it may wait for the interpreter's lock
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!t.done) examine(t, interrupted);
    advance_all();
    if (t.done) return;
  }
}

void Transfers::drive_all(const Patience &patience) {
  double looked = now();
  for (;;) {
    const uint32_t seen = own_bell();
    {
      Held lock(mutex_);
      more_.wait(lock, [&] { return stopping_ || !open_.empty(); });
      if (open_.empty()) return;
      advance_all();
    }
    if (!listen(seen, looked)) continue;
    const bool interrupted = patience.ended();
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto &t : std::vector(open_.begin(), open_.end()))
      if (!t->done) examine(*t, interrupted);
    advance_all();
  }
}

void Transfers::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    for (const auto &t : open_)
      if (!t->done && !t->sends && !t->message)
        finish(*t, Outcome::broken, "interrupted, as this process left the group");
    open_.remove_if([](const auto &t) { return t->done; });
  }
  more_.notify_all();
}

bool Transfers::idle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return open_.empty();
}

}  // namespace plait::multiprocessing
