// Which bytes go where in a collective. A reduction is an exchange of slices, a local sum in the
// order of the ranks, and a gathering of the sums, so its bits depend on the number of ranks alone.
#ifndef PLAIT_COLLECTIVES_ALGORITHMS_HPP
#define PLAIT_COLLECTIVES_ALGORITHMS_HPP
#include <algorithm>
#include <cstring>
#include <vector>

#include "call.hpp"
#include "reduce.hpp"
#include "schedule.hpp"
#include "stream.hpp"

namespace plait::collectives {

// Bytes of one message of a chunk.
constexpr uint64_t message_bytes = 1 << 20;
// Channels of a group: of what an algorithm sends in up to three phases, and one for messages.
constexpr uint32_t channels_of_group = 4, message_channel = 3;
// In groups of more members calls are not written to every member, but handed on.
constexpr uint32_t most_direct = 16;

struct Route {  // to a member of a group
  uint32_t peer;  // in the transport
  uint32_t channel;  // the first one of the group in that process
};

// One collective of one member.
class Algorithm {
 public:
  virtual ~Algorithm() = default;
  Algorithm(const Collective &c, uint32_t rank, uint32_t size, const std::vector<Route> &routes)
      : call_(c),
        rank_(rank),
        size_(size),
        routes_(routes),
        item_(uint64_t(itemsize(c.dtype))),
        in_(c.in, c.n_in),
        out_(c.out, c.n_out) {}

  // ---- short ones: all bytes go along with the calls that members compare

  bool is_short() const {
    if (!has_bytes()) return true;
    if (size_ <= most_direct) return each() <= most_short();
    // all ranks' bytes come to all
    if (call_.kind == PLAIT_BROADCAST) return each() <= (16 << 10);
    return (sums_whole() || call_.kind == PLAIT_ALL_GATHER || call_.kind == split_kind) &&
           each() * size_ <= most_handed_on;
  }

  // bytes that go to a rank; where calls are handed on, those for the root go to all
  uint64_t short_bytes(uint32_t to) const { return sends_to(to) ? each() : 0; }
  void pack_short(uint32_t to, char *bytes) const {
    if (sends_to(to)) source(to).read(0, call_.elements, bytes);
  }
  // bytes of a rank that come to all where calls are handed on
  uint64_t handed_on_bytes(uint32_t from) const {
    return call_.kind == PLAIT_BROADCAST && from != call_.root ? 0 : each();
  }
  // the bytes that came, by rank; that of this rank is not looked at
  void finish_short(const std::vector<const char *> &from) {
    switch (call_.kind) {
      case PLAIT_ALL_REDUCE: return sum_short(from);
      case PLAIT_REDUCE_SCATTER: return sum_short(from);
      case PLAIT_REDUCE:
        if (is_root()) sum_short(from);
        return;
      case PLAIT_BROADCAST:
        if (!is_root()) return out_.write(0, call_.elements, from[call_.root]);
        return copy_apart();
      case PLAIT_GATHER:
        if (!is_root()) return;
        [[fallthrough]];
      case PLAIT_ALL_GATHER:
      case PLAIT_ALL_TO_ALL:
      case split_kind: return spread_short(from);
      case PLAIT_SCATTER:
        if (!is_root()) return out_.write(0, call_.elements, from[call_.root]);
        return copy(part(call_.in, rank_), 0, part(call_.out, 0), 0, call_.elements);
      default: return;
    }
  }

  // ---- long ones: chunk by chunk

  // fills in a chunk; false if there are no more
  virtual bool fill(Chunk &c, uint64_t number) {
    if (!has_bytes()) return false;
    const uint64_t most = elements_of_chunk(), at = number * most;
    if (at >= call_.elements) return false;
    const uint64_t n = std::min(most, call_.elements - at);
    switch (call_.kind) {
      case PLAIT_ALL_REDUCE: reduce_slices(c, at, n, true, true); break;
      case PLAIT_REDUCE: reduce_slices(c, at, n, false, is_root()); break;
      case PLAIT_BROADCAST: broadcast(c, at, n); break;
      case PLAIT_ALL_GATHER:
      case split_kind:
      case PLAIT_GATHER: gather(c, at, n); break;
      case PLAIT_SCATTER: scatter(c, at, n); break;
      case PLAIT_REDUCE_SCATTER: reduce_parts(c, at, n); break;
      case PLAIT_ALL_TO_ALL: exchange(c, at, n); break;
      default: return false;
    }
    return true;
  }

 protected:
  bool is_root() const { return rank_ == call_.root; }
  bool has_bytes() const { return call_.kind != PLAIT_BARRIER && call_.elements > 0; }
  uint64_t each() const { return has_bytes() ? call_.elements * item_ : 0; }
  // of which all ranks together may be in one letter
  static constexpr uint64_t most_handed_on = 96 << 10;
  bool sums_whole() const { return call_.kind == PLAIT_ALL_REDUCE || call_.kind == PLAIT_REDUCE; }
  // In an all-reduce each rank gets all elements of all, which are more bytes than slices are.
  uint64_t most_short() const {
    const uint64_t others = std::max(size_, 2u) - 1;
    return call_.kind == PLAIT_ALL_REDUCE ? (64 << 10) / others : (16 << 10);
  }
  bool sends_to(uint32_t to) const {
    switch (call_.kind) {
      case PLAIT_BROADCAST:
      case PLAIT_SCATTER: return is_root();
      case PLAIT_REDUCE:
      case PLAIT_GATHER: return to == call_.root;
      case PLAIT_BARRIER: return false;
      default: return true;
    }
  }
  bool by_destination() const {
    return call_.kind == PLAIT_SCATTER || call_.kind == PLAIT_REDUCE_SCATTER ||
           call_.kind == PLAIT_ALL_TO_ALL;
  }
  Stream source(uint32_t to) const { return by_destination() ? part(call_.in, to) : in_; }
  static Stream part(plait_tensor *const *tensors, uint32_t i) { return Stream(tensors + i, 1); }

  // ---- local work

  static constexpr uint64_t tile = 32 << 10;  // bytes
  void copy(const Stream &from, uint64_t at, const Stream &to, uint64_t there, uint64_t n) const {
    alignas(64) char bytes[tile];
    for (uint64_t x = 0; x < n;) {
      const uint64_t m = std::min(n - x, tile / item_);
      from.read(at + x, m, bytes);
      to.write(there + x, m, bytes);
      x += m;
    }
  }
  // where a rank's own part lies already, nothing is copied
  static bool same_place(const plait_tensor *a, const plait_tensor *b) {
    return a->dl.data == b->dl.data;
  }
  void copy_apart() const {
    for (uint32_t i = 0; i < call_.n_out; i++)
      if (!same_place(call_.in[i], call_.out[i])) {
        const Stream from = part(call_.in, i);
        copy(from, 0, part(call_.out, i), 0, from.elements());
      }
  }
  // elements of a stream, packed: where they lie, or a copy
  char *packed(Chunk &c, const Stream &s, uint64_t at, uint64_t n, bool must_copy = false) const {
    char *p = must_copy ? nullptr : s.place(at, n);
    if (p) return p;
    p = c.room(n * item_);
    s.read(at, n, p);
    return p;
  }

  void sum_short(const std::vector<const char *> &from) const {
    const Stream mine = source(rank_);
    std::vector<char> own;
    std::vector<const char *> all = from;
    all[rank_] = mine.place(0, call_.elements);
    if (!all[rank_]) {
      own.resize(each());
      mine.read(0, call_.elements, own.data());
      all[rank_] = own.data();
    }
    if (char *to = out_.place(0, call_.elements)) return sum(all.data(), to, call_.elements);
    std::vector<char> result(each());
    sum(all.data(), result.data(), call_.elements);
    out_.write(0, call_.elements, result.data());
  }
  void sum(const char *const *from, char *to, uint64_t n) const {
    reduce(call_.dtype, call_.reduction, from, size_, to, n);
  }
  // an output may be an input of this rank: its own part is taken first
  void spread_short(const std::vector<const char *> &from) const {
    std::vector<char> own(each());
    source(rank_).read(0, call_.elements, own.data());
    for (uint32_t r = 0; r < size_; r++)
      part(call_.out, r).write(0, call_.elements, r == rank_ ? own.data() : from[r]);
  }

  // ---- actions

  uint64_t elements_of_chunk() const {
    return std::max<uint64_t>(1, message_bytes * (sums_whole() ? size_ : 1) / item_);
  }
  Action &transfer(Chunk &c, Action::Kind kind, uint32_t rank, uint32_t phase, const char *data,
                   uint64_t n) const {
    Action &a = c.add(kind);
    const Route &to = routes_[kind == Action::is_send ? rank : rank_];
    a.rank = rank;
    a.peer = routes_[rank].peer;
    a.channel = to.channel + phase;
    a.data = const_cast<char *>(data);
    a.bytes = n * item_;
    return a;
  }
  Action &send(Chunk &c, uint32_t rank, uint32_t phase, const char *data, uint64_t n) const {
    return transfer(c, Action::is_send, rank, phase, data, n);
  }
  Action &receive(Chunk &c, uint32_t rank, uint32_t phase, char *data, uint64_t n) const {
    return transfer(c, Action::is_receive, rank, phase, data, n);
  }
  // tells a member that something was done, or waits for that
  Action &sign(Chunk &c, Action::Kind kind, uint32_t rank, uint32_t phase) const {
    Action &a = transfer(c, kind, rank, phase, nullptr, 0);
    a.data = &a.sign;
    a.bytes = 1;
    return a;
  }
  static Action &local(Chunk &c, std::function<void()> work) {
    Action &a = c.add(Action::is_local);
    a.work = std::move(work);
    return a;
  }
  // receives elements of a stream
  Action &receive_into(Chunk &c, uint32_t rank, const Stream &s, uint64_t at, uint64_t n,
                       uint32_t phase = 0) const {
    if (char *p = s.place(at, n)) return receive(c, rank, phase, p, n);
    char *p = c.room(n * item_);
    Action &a = receive(c, rank, phase, p, n);
    Chunk::order(a, local(c, [s, at, n, p] { s.write(at, n, p); }));
    return a;
  }
  uint32_t other(uint32_t i) const { return (rank_ + i) % size_; }

  uint64_t cut(uint64_t n, uint32_t rank) const { return n * rank / size_; }

  // `all`: every rank gets the result, else the root
  void reduce_slices(Chunk &c, uint64_t at, uint64_t n, bool all, bool gets) const {
    const uint64_t low = cut(n, rank_), m = cut(n, rank_ + 1) - low;
    char *mine = packed(c, in_, at, n);
    char *result = gets ? out_.place(at, n) : nullptr;
    const bool direct = result != nullptr;
    if (!direct) result = c.room((gets ? n : m) * item_) - (gets ? 0 : low * item_);
    std::vector<const char *> from(size_);
    from[rank_] = mine + low * item_;
    std::vector<Action *> before, after;
    for (uint32_t i = 1; i < size_; i++) {
      const uint32_t r = other(i);
      const uint64_t l = cut(n, r), k = cut(n, r + 1) - l;
      Action *sent = k ? &send(c, r, 0, mine + l * item_, k) : nullptr;
      if (gets && k) {
        Action &got = receive(c, r, 1, result + l * item_, k);
        if (mine == result) Chunk::order(*sent, got);
        after.push_back(&got);
      }
      if (!m) continue;
      char *part = c.room(m * item_);
      from[r] = part;
      before.push_back(&receive(c, r, 0, part, m));
    }
    if (m) {
      char *to = result + low * item_;
      Action &sum_up = local(c, [this, from, to, m] { sum(from.data(), to, m); });
      for (Action *a : before) Chunk::order(*a, sum_up);
      after.push_back(&sum_up);
      for (uint32_t i = 1; i < size_; i++)
        if (all || other(i) == call_.root) Chunk::order(sum_up, send(c, other(i), 1, to, m));
    }
    if (!gets || direct) return;
    Action &unpack = local(c, [this, at, n, result] { out_.write(at, n, result); });
    for (Action *a : after) Chunk::order(*a, unpack);
  }

  void reduce_parts(Chunk &c, uint64_t at, uint64_t n) const {
    std::vector<const char *> from(size_);
    from[rank_] = packed(c, part(call_.in, rank_), at, n);
    Action &sum_up = local(c, {});
    for (uint32_t i = 1; i < size_; i++) {
      const uint32_t r = other(i);
      Action &sent = send(c, r, 0, packed(c, part(call_.in, r), at, n), n);
      // the output may be what is sent
      if (same_place(call_.in[r], call_.out[0])) Chunk::order(sent, sum_up);
      char *p = c.room(n * item_);
      from[r] = p;
      Chunk::order(receive(c, r, 0, p, n), sum_up);
    }
    char *to = out_.place(at, n), *room = to ? to : c.room(n * item_);
    sum_up.work = [this, from, to, room, at, n] {
      sum(from.data(), room, n);
      if (!to) out_.write(at, n, room);
    };
  }

  // down a binomial tree
  void broadcast(Chunk &c, uint64_t at, uint64_t n) const {
    const uint32_t place = (rank_ + size_ - call_.root) % size_;
    const auto rank_of = [&](uint32_t p) { return (p + call_.root) % size_; };
    char *bytes = nullptr;
    Action *got = nullptr;
    if (is_root()) {
      bytes = packed(c, in_, at, n);
      if (call_.n_out && at == 0) local(c, [this] { copy_apart(); });
    } else {
      bytes = out_.place(at, n);
      const bool direct = bytes != nullptr;
      if (!direct) bytes = c.room(n * item_);
      got = &receive(c, rank_of(place & (place - 1)), 0, bytes, n);
      if (!direct) Chunk::order(*got, local(c, [this, at, n, bytes] { out_.write(at, n, bytes); }));
    }
    uint32_t step = 1;
    while (step < size_ && !(place & step)) step <<= 1;
    for (step >>= 1; step; step >>= 1)
      if (place + step < size_) {
        Action &sent = send(c, rank_of(place + step), 0, bytes, n);
        if (got) Chunk::order(*got, sent);
      }
  }

  // what is sent may be where something else is received: then it is copied first
  bool is_output(const plait_tensor *t, bool own_too) const {
    for (uint32_t i = 0; i < call_.n_out; i++)
      if ((own_too || i != rank_) && same_place(t, call_.out[i])) return true;
    return false;
  }

  void gather(Chunk &c, uint64_t at, uint64_t n) const {
    const bool all = call_.kind != PLAIT_GATHER, gets = all || is_root();
    char *mine = packed(c, in_, at, n, is_output(call_.in[0], false));
    for (uint32_t i = 1; i < size_; i++) {
      const uint32_t r = other(i);
      if (all || r == call_.root) send(c, r, 0, mine, n);
      if (gets) receive_into(c, r, part(call_.out, r), at, n);
    }
    if (gets && !same_place(call_.in[0], call_.out[rank_]))
      part(call_.out, rank_).write(at, n, mine);
  }

  void scatter(Chunk &c, uint64_t at, uint64_t n) const {
    if (!is_root()) {
      receive_into(c, call_.root, out_, at, n);
      return;
    }
    if (same_place(call_.in[rank_], call_.out[0])) {
      for (uint32_t i = 1; i < size_; i++)
        send(c, other(i), 0, packed(c, part(call_.in, other(i)), at, n), n);
      return;
    }
    Action &own = local(c, [this, at, n] { copy(part(call_.in, rank_), at, out_, at, n); });
    for (uint32_t i = 1; i < size_; i++) {
      const uint32_t r = other(i);
      Action &sent = send(c, r, 0, packed(c, part(call_.in, r), at, n), n);
      if (same_place(call_.in[r], call_.out[0])) Chunk::order(sent, own);
    }
  }

  void exchange(Chunk &c, uint64_t at, uint64_t n) const {
    std::vector<char *> parts(size_);
    for (uint32_t r = 0; r < size_; r++)
      parts[r] = packed(c, part(call_.in, r), at, n, is_output(call_.in[r], true));
    for (uint32_t i = 1; i < size_; i++) {
      const uint32_t r = other(i);
      send(c, r, 0, parts[r], n);
      receive_into(c, r, part(call_.out, r), at, n);
    }
    part(call_.out, rank_).write(at, n, parts[rank_]);
  }

  const Collective call_;
  const uint32_t rank_, size_;
  const std::vector<Route> &routes_;
  const uint64_t item_;
  const Stream in_, out_;
};

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_ALGORITHMS_HPP
