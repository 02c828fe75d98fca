// Messages from one member to another: several on their way at once, in order for each tag. The
// sender offers a message by a letter, which has its bytes if they are few; the receiver accepts or
// refuses it when it is asked for.
#ifndef PLAIT_COLLECTIVES_MESSAGES_HPP
#define PLAIT_COLLECTIVES_MESSAGES_HPP
#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithms.hpp"
#include "letters.hpp"
#include "operation.hpp"

namespace plait::collectives {

// What messages need to know of their group.
class Members {
 public:
  virtual ~Members() = default;
  virtual std::string name_of(uint32_t rank) const = 0;
  virtual void write_to(uint32_t rank, uint32_t kind, const Offer *, const Reply *,
                        const std::vector<char> &bytes) = 0;
  virtual const std::vector<Route> &routes() const = 0;
  virtual uint32_t own_rank() const = 0;
};

using Schedules = std::list<std::shared_ptr<Schedule>>;

class Messages {
 public:
  Messages(Members &members, Transport &transport, Schedules &lingering)
      : members_(members), transport_(transport), lingering_(lingering) {}

  bool idle() const { return open_.empty(); }

  void add(const std::shared_ptr<Operation> &op) {
    Open m;
    m.op = op;
    m.rank = op->call.root;
    m.sends = op->call.kind == PLAIT_SEND;
    m.bytes = op->call.elements * uint64_t(itemsize(op->call.dtype));
    op->deadline = now() + op->timeout;
    if (m.sends) return offer(std::move(m));
    auto &offers = offers_[m.rank];
    for (auto it = offers.begin(); it != offers.end(); ++it)
      if (it->offer.tag == op->tag) {
        const Arrived arrived = std::move(*it);
        offers.erase(it);
        return take(std::move(m), arrived);
      }
    open_.push_back(std::move(m));
  }

  void offered(uint32_t rank, const Offer &offer, const char *bytes, size_t n) {
    const Arrived arrived{offer, std::vector<char>(bytes, bytes + n)};
    for (auto it = open_.begin(); it != open_.end(); ++it)
      if (!it->sends && !it->schedule && it->rank == rank && it->op->tag == offer.tag) {
        Open m = std::move(*it);
        open_.erase(it);
        return take(std::move(m), arrived);
      }
    offers_[rank].push_back(arrived);
  }

  // false: the message was given up here, but its receiver waits for its bytes
  bool accepted(uint32_t rank, const Reply &reply) {
    const auto it = sent(rank, reply.id);
    if (it == open_.end()) return reply.whole;
    if (reply.whole) {
      finish(it, Outcome::done, "");
    } else {
      begin(*it);
    }
    return true;
  }

  void refused(uint32_t rank, const Reply &reply) {
    const auto it = sent(rank, reply.id);
    if (it == open_.end()) return;
    const Operation &op = *it->op;
    finish(it, Outcome::mismatch,
           different(op.tag, members_.own_rank(), op.call.elements, key(op.call.dtype), rank,
                     reply.elements, reply.dtype));
  }

  // false: this member accepted it meanwhile, and waits for its bytes
  bool taken_back(uint32_t rank, const Reply &reply) {
    offers_[rank].remove_if([&](const Arrived &a) { return a.offer.id == reply.id; });
    return std::none_of(open_.begin(), open_.end(), [&](const Open &m) {
      return !m.sends && m.schedule && m.rank == rank && m.id == reply.id;
    });
  }

  // Whether others may wait for a message of this member: for one that it sends, or whose bytes
  // move. Nobody waits for a receive.
  bool owe() const {
    return std::any_of(open_.begin(), open_.end(),
                       [](const Open &m) { return m.sends || m.schedule; });
  }
  // A member does not send, or answer, any more. Bytes that are on their way come though it has
  // left meanwhile: its goodbye is a letter, and may overtake them.
  void fail_those_of(uint32_t rank, const Explanation &reason) {
    for (auto it = open_.begin(); it != open_.end();) {
      const auto m = it++;
      if (m->rank == rank && !m->schedule) finish(m, Outcome::broken, reason);
    }
  }

  // moves messages on; the text and rank of one that failed, or was cut off by its timeout
  bool step(double t, Outcome &o, std::string &reason, uint32_t &rank, double &waited) {
    for (auto it = open_.begin(); it != open_.end();) {
      const auto m = it++;
      if (m->schedule) {
        m->schedule->pump();
        if (m->schedule->ended() != m->seen) m->op->deadline = t + m->op->timeout;
        m->seen = m->schedule->ended();
        if (m->schedule->done()) {
          finish(m, Outcome::done, "");
          continue;
        }
        if (m->schedule->failed()) {
          rank = m->rank;
          o = Outcome::broken;
          return true;
        }
      }
      if (t <= m->op->deadline) continue;
      const std::string text = "waited " + seconds(m->op->timeout) + " s for " +
                               members_.name_of(m->rank) +
                               (m->sends ? " to receive it" : " to send it") + " (tag " +
                               std::to_string(m->op->tag) + ")";
      if (m->schedule) {
        rank = m->rank;
        waited = m->op->timeout;
        o = Outcome::timed_out;
        reason = text;
        return true;
      }
      take_back(*m);
      finish(m, Outcome::timed_out, text);
    }
    return false;
  }

  // ends one that nothing was seen of by the other member; false if there is no such
  bool interrupt(const Operation *op) {
    for (auto it = open_.begin(); it != open_.end(); ++it)
      if (it->op.get() == op && !it->schedule) {
        take_back(*it);
        finish(it, Outcome::interrupted, "interrupted");
        return true;
      }
    return false;
  }
  bool has(const Operation *op) const {
    for (const Open &m : open_)
      if (m.op.get() == op) return true;
    return false;
  }

  void fail_all(Outcome o, const Explanation &reason) {
    while (!open_.empty()) finish(open_.begin(), o, reason);
  }

 private:
  static constexpr uint64_t most_whole = 16 << 10;
  struct Open {
    std::shared_ptr<Operation> op;
    uint32_t rank = 0;
    bool sends = false;
    uint64_t id = 0, bytes = 0, seen = 0;  // id: the sender's number of it
    std::shared_ptr<Schedule> schedule;  // while its bytes move
  };
  struct Arrived {
    Offer offer;
    std::vector<char> bytes;
  };

  static Stream stream_of(const Collective &c) {
    return c.kind == PLAIT_SEND ? Stream(c.in, 1) : Stream(c.out, 1);
  }
  std::list<Open>::iterator sent(uint32_t rank, uint64_t id) {
    auto it = open_.begin();
    while (it != open_.end() && !(it->sends && it->id == id && it->rank == rank)) ++it;
    return it;
  }
  static std::string different(int64_t tag, uint32_t sender, uint64_t elements, uint32_t dtype,
                               uint32_t receiver, uint64_t required, uint32_t wanted_dtype) {
    const auto what = [](uint64_t n, uint32_t d) {
      return std::to_string(n) + " elements of " + dtype_name(d);
    };
    return "the same tensor on both ranks is required (tag " + std::to_string(tag) + "); rank " +
           std::to_string(sender) + " sends " + what(elements, dtype) + ", rank " +
           std::to_string(receiver) + " receives " + what(required, wanted_dtype);
  }

  void offer(Open m) {
    const Collective &c = m.op->call;
    m.id = ++last_;
    const bool whole = m.bytes <= most_whole;
    const Offer offer{m.id, m.op->tag, c.elements, key(c.dtype), whole};
    std::vector<char> bytes(whole ? m.bytes : 0);
    if (!bytes.empty()) stream_of(c).read(0, c.elements, bytes.data());
    members_.write_to(m.rank, LETTER_OFFER, &offer, nullptr, bytes);
    open_.push_back(std::move(m));
  }

  void take(Open m, const Arrived &a) {
    const Collective &c = m.op->call;
    const Reply reply{a.offer.id, c.elements, key(c.dtype), a.offer.whole};
    if (a.offer.elements != c.elements || a.offer.dtype != key(c.dtype)) {
      members_.write_to(m.rank, LETTER_REFUSE, nullptr, &reply, {});
      m.op->finish(Outcome::mismatch,
                   different(a.offer.tag, m.rank, a.offer.elements, a.offer.dtype,
                             members_.own_rank(), c.elements, key(c.dtype)));
      return;
    }
    if (a.offer.whole) {
      if (c.elements && a.bytes.size() == m.bytes)
        stream_of(c).write(0, c.elements, a.bytes.data());
      members_.write_to(m.rank, LETTER_ACCEPT, nullptr, &reply, {});
      m.op->finish(Outcome::done, "");
      return;
    }
    m.id = a.offer.id;
    open_.push_back(std::move(m));
    begin(open_.back());  // receives before the other member sends
    members_.write_to(open_.back().rank, LETTER_ACCEPT, nullptr, &reply, {});
  }

  // One chunk with all bytes: they follow each other in one channel.
  void begin(Open &m) {
    const Collective c = m.op->call;
    const bool sends = m.sends;
    const uint64_t bytes = m.bytes;
    const uint32_t rank = m.rank;
    const Route to = members_.routes()[rank];
    const uint32_t channel =
        (sends ? to.channel : members_.routes()[members_.own_rank()].channel) + message_channel;
    const auto fill = [=](Chunk &chunk, uint64_t number) {
      if (number) return false;
      const Stream stream = stream_of(c);
      char *data = stream.place(0, c.elements);
      Action *unpack = nullptr;
      if (!data) {
        char *packed = data = chunk.room(bytes);
        if (sends) {
          stream.read(0, c.elements, packed);
        } else {
          unpack = &chunk.add(Action::is_local);
          unpack->work = [stream, packed, n = c.elements] { stream.write(0, n, packed); };
        }
      }
      for (uint64_t at = 0; at < bytes; at += most_transfer) {
        Action &a = chunk.add(sends ? Action::is_send : Action::is_receive);
        a.rank = rank;
        a.peer = to.peer;
        a.channel = channel;
        a.data = data + at;
        a.bytes = std::min(most_transfer, bytes - at);
        if (unpack) Chunk::order(a, *unpack);
      }
      return true;
    };
    m.schedule = std::make_shared<Schedule>(transport_, m.op->tensors, fill);
    m.schedule->pump();  // now: accepted messages of one member are sent in this order
  }

  void take_back(const Open &m) {
    if (!m.sends) return;
    const Reply reply{m.id, 0, 0, 0};
    members_.write_to(m.rank, LETTER_TAKE_BACK, nullptr, &reply, {});
  }

  void finish(std::list<Open>::iterator it, Outcome o, Explanation reason) {
    Open m = std::move(*it);
    open_.erase(it);
    if (m.schedule && m.schedule->running()) {
      m.schedule->abandon();
      lingering_.push_back(m.schedule);
    }
    m.schedule.reset();  // before the message is done, as it has the tensors
    m.op->finish(o, std::move(reason));
  }

  Members &members_;
  Transport &transport_;
  Schedules &lingering_;
  std::list<Open> open_;
  std::map<uint32_t, std::list<Arrived>> offers_;  // by the sender's rank
  uint64_t last_ = 0;
};

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_MESSAGES_HPP
