// Collectives in which the members of a host exchange elements in memory that they share, and
// elements go from one host to another once.
//
// A reduction runs along the hosts in the order of their ranks: the members of a host add their
// elements, in order, to what came from the host before, so that the result has the bits of a sum
// in the order of all ranks. Each member of a host does so for a slice of the elements.
#ifndef PLAIT_COLLECTIVES_OVER_HOSTS_HPP
#define PLAIT_COLLECTIVES_OVER_HOSTS_HPP
#include <algorithm>
#include <memory>
#include <vector>

#include "algorithms.hpp"
#include "hosts.hpp"
#include "stage.hpp"

namespace plait::collectives {

class OverHosts : public Algorithm {
 public:
  // The stage is used when something is filled in.
  OverHosts(const Algorithm &a, const Hosts &hosts, const std::shared_ptr<Stage> &stage)
      : Algorithm(a),
        hosts_(hosts),
        stage_(stage),
        host_(hosts.host_of[rank_]),
        place_(hosts.place_of[rank_]),
        ranks_(hosts.ranks[host_]),
        wide_(accumulator_bytes(call_.dtype)) {
    plan();
  }

  // Whether fewer bytes leave the busiest host in this way. All members find the same, before they
  // share memory.
  bool pays() const {
    const uint64_t n = size_, bytes = call_.elements * item_;
    if (hosts_.largest() == 1 || area_ < least_area) return false;
    const bool reduces = sums_whole() || call_.kind == PLAIT_REDUCE_SCATTER;
    if (!reduces) return call_.kind == PLAIT_BROADCAST || call_.kind == PLAIT_ALL_GATHER;
    if (!hosts_.contiguous()) return false;
    if (hosts_.count() == 1) return true;
    // a chain of hosts takes longer to begin than an exchange
    const uint64_t all = bytes * (sums_whole() ? 1 : n);
    if (all < (hosts_.count() - 1) * most_late) return false;
    // a rank of a host and one of another, from which to which a slice goes
    uint64_t pairs = 0;
    for (const auto &ranks : hosts_.ranks)
      pairs = std::max(pairs, uint64_t(ranks.size()) * (n - ranks.size()));
    const uint64_t phases = call_.kind == PLAIT_ALL_REDUCE ? 2 : 1;
    return wide_ * n <= phases * pairs * item_;
  }

  size_t window() const { return window_; }

  bool fill(Chunk &c, uint64_t number) override {
    const uint64_t at = number * chunk_;
    if (at >= call_.elements) return false;
    const uint64_t n = std::min(chunk_, call_.elements - at);
    turn_ = number % window_;
    switch (call_.kind) {
      case PLAIT_BROADCAST: broadcast(c, at, n); break;
      case PLAIT_ALL_GATHER: gather(c, at, n); break;
      default: reduce(c, at, n); break;
    }
    return true;
  }

 private:
  // Phases: elements that are in the shared memory, elements that were taken from there, and
  // elements from host to host.
  enum Phase : uint32_t { staged, taken, between };
  // bytes that move while a host waits for another
  static constexpr uint64_t most_late = 128 << 10;
  static constexpr uint64_t most_window = 32, least_slice = 64 << 10, least_area = 4 << 10;
  struct Range {  // of elements
    uint64_t low, high;
    uint64_t size() const { return high > low ? high - low : 0; }
  };

  // How many chunks are under way, and how large they are.
  void plan() {
    const uint64_t hosts = hosts_.count(), most = hosts_.largest();
    // a chunk passes each host twice
    window_ = std::clamp<uint64_t>(2 * (hosts - 1) + 2, Schedule::window, most_window);
    room_ = Stage::part_bytes / window_ / 4096 * 4096;
    uint64_t areas = 2, slices = most;  // of a chunk's size in the room; slices of a chunk
    switch (call_.kind) {
      case PLAIT_BROADCAST: areas = slices = 1; break;
      case PLAIT_ALL_GATHER:
        areas = most_carried();
        slices = 1;
        break;
      case PLAIT_REDUCE_SCATTER: areas = 2 * size_; break;
      default: break;
    }
    const uint64_t largest = std::min(room_ / areas, message_bytes * slices) / 64 * 64;
    // small ones go in several chunks, too, so that hosts work at once
    const uint64_t even = call_.elements * item_ / (2 * window_);
    const uint64_t bytes = std::min(largest, std::max(even, least_slice * slices)) / 64 * 64;
    area_ = largest;
    chunk_ = std::max<uint64_t>(1, bytes / item_);
  }

  bool alone() const { return ranks_.size() == 1; }  // on this host
  char *area(uint32_t place, uint64_t which) const {
    return stage_->part(place) + turn_ * room_ + which * area_;
  }
  // `work`, then a sign for each other member of this host: whoever has it sees what was written
  // before it was sent.
  Action &show(Chunk &c, std::function<void()> work) const {
    Action &a = local(c, std::move(work));
    for (const uint32_t r : ranks_)
      if (r != rank_) Chunk::order(a, sign(c, Action::is_send, r, staged));
    return a;
  }

  // ---- reductions

  // of the elements of a chunk, those that the member of a host sums
  static Range slice(uint64_t n, uint64_t place, uint64_t members) {
    return {n * place / members, n * (place + 1) / members};
  }
  Range slice_of(uint32_t rank, uint64_t n) const {
    return slice(n, hosts_.place_of[rank], hosts_.size_of(hosts_.host_of[rank]));
  }
  static Range common(const Range &a, const Range &b) {
    return {std::max(a.low, b.low), std::min(a.high, b.high)};
  }
  // Elements that this member gets of the result of a chunk.
  Range wanted(uint32_t rank, uint64_t n) const {
    if (call_.kind == PLAIT_REDUCE_SCATTER) return {rank * n, (rank + 1) * n};
    return {0, call_.kind == PLAIT_ALL_REDUCE || rank == call_.root ? n : 0};
  }

  // A chunk of n elements; of a reduce-scatter n of each part, one part behind the other.
  void reduce(Chunk &c, uint64_t at, uint64_t n) const {
    const bool parts = call_.kind == PLAIT_REDUCE_SCATTER;
    const uint64_t all = n * (parts ? size_ : 1);
    const Range mine = slice_of(rank_, all), got = wanted(rank_, n);
    const bool is_last = host_ + 1 == hosts_.count();
    const auto read = [this, at, n, parts](char *to) {
      if (!parts) return in_.read(at, n, to);
      for (uint32_t r = 0; r < size_; r++) part(call_.in, r).read(at, n, to + r * n * item_);
    };
    // what is gotten lies at `to`, from got.low on; or in a room until it is unpacked
    char *to = got.size() ? out_.place(at, got.size()) : nullptr;
    Action *unpack = nullptr;
    if (got.size() && !to) {
      to = c.room(got.size() * item_);
      unpack = &local(c, [this, at, got, to] { out_.write(at, got.size(), to); });
    }
    const auto arrived = [&](Action &a) {
      if (unpack) Chunk::order(a, *unpack);
    };

    // the elements of this host's ranks, and what came from the host before
    std::vector<const char *> from(ranks_.size());
    Action *given = nullptr;
    if (alone()) {
      from[0] = parts ? nullptr : in_.place(at, n);
      if (!from[0]) {
        char *room = c.room(all * item_);
        given = &local(c, [read, room] { read(room); });
        from[0] = room;
      }
    } else {
      char *place = area(place_, 0);
      given = &show(c, [read, place] { read(place); });
      for (uint32_t i = 0; i < ranks_.size(); i++) from[i] = area(i, 0) + mine.low * item_;
    }
    char *before = host_ ? c.room(mine.size() * wide_) : nullptr;
    char *sum = is_last ? result(c, mine, got, to) : c.room(mine.size() * wide_);
    Action &add = local(c, [this, from, before, sum, mine, is_last] {
      if (mine.size())
        reduce_part(call_.dtype, call_.reduction,
                    {before, from.data(), uint32_t(from.size()), sum, is_last, size_}, mine.size());
    });
    if (given) Chunk::order(*given, add);
    for (const uint32_t r : ranks_)
      if (r != rank_) Chunk::order(sign(c, Action::is_receive, r, staged), add);
    if (host_)
      for (const uint32_t r : hosts_.ranks[host_ - 1]) {
        const Range x = common(slice_of(r, all), mine);
        if (x.size())
          Chunk::order(receive_wide(c, r, before + (x.low - mine.low) * wide_, x.size()), add);
      }
    if (!is_last)
      for (const uint32_t r : hosts_.ranks[host_ + 1]) {
        const Range x = common(slice_of(r, all), mine);
        if (x.size())
          Chunk::order(add, send_wide(c, r, sum + (x.low - mine.low) * wide_, x.size()));
      }
    if (call_.kind == PLAIT_ALL_REDUCE)
      hand_back(c, n, add, sum, to, arrived);
    else
      hand_out(c, n, add, sum, to, arrived);
  }

  // Where the result of the own slice goes: the others see it there, unless it is for none of them.
  char *result(Chunk &c, const Range &mine, const Range &got, char *to) const {
    if (!alone()) return area(place_, areas_before_result());
    if (to && got.low <= mine.low && mine.high <= got.high)
      return to + (mine.low - got.low) * item_;
    return c.room(mine.size() * item_);
  }
  uint64_t areas_before_result() const { return call_.kind == PLAIT_REDUCE_SCATTER ? size_ : 1; }
  Action &send_wide(Chunk &c, uint32_t rank, const char *data, uint64_t n) const {
    Action &a = send(c, rank, between, data, n);
    a.bytes = n * wide_;
    return a;
  }
  Action &receive_wide(Chunk &c, uint32_t rank, char *data, uint64_t n) const {
    Action &a = receive(c, rank, between, data, n);
    a.bytes = n * wide_;
    return a;
  }

  // An all-reduce's result goes back from host to host.
  template <class F>
  void hand_back(Chunk &c, uint64_t n, Action &add, char *sum, char *to, const F &arrived) const {
    const Range mine = slice_of(rank_, n), got{0, n};
    const bool is_last = host_ + 1 == hosts_.count();
    char *whole = is_last ? sum : result(c, mine, got, to);
    Action &known = show_taken(c, [this, whole, to, mine] {
      char *place = to + mine.low * item_;
      if (whole != place && mine.size()) std::memcpy(place, whole, mine.size() * item_);
    });
    arrived(known);
    Chunk::order(add, known);
    if (!is_last)
      for (const uint32_t r : hosts_.ranks[host_ + 1]) {
        const Range x = common(slice_of(r, n), mine);
        if (!x.size()) continue;
        Action &a = receive(c, r, between, whole + (x.low - mine.low) * item_, x.size());
        // it may lie where the own elements are
        Chunk::order(add, a);
        Chunk::order(a, known);
      }
    if (host_)
      for (const uint32_t r : hosts_.ranks[host_ - 1]) {
        const Range x = common(slice_of(r, n), mine);
        if (x.size())
          Chunk::order(known, send(c, r, between, whole + (x.low - mine.low) * item_, x.size()));
      }
    for (uint32_t i = 0; i < ranks_.size(); i++)
      if (i != place_) take(c, i, slice_of(ranks_[i], n), got, to, arrived);
  }

  // The result goes from the last host to those that get some of it.
  template <class F>
  void hand_out(Chunk &c, uint64_t n, Action &add, char *sum, char *to, const F &arrived) const {
    const uint64_t all = n * (call_.kind == PLAIT_REDUCE_SCATTER ? size_ : 1);
    const Range mine = slice_of(rank_, all), got = wanted(rank_, n);
    const uint32_t last = hosts_.count() - 1;
    const bool is_last = host_ == last;
    Action &known = show_taken(c, [this, sum, to, mine, got, is_last] {
      const Range x = common(mine, got);
      if (!is_last || !x.size()) return;
      char *place = to + (x.low - got.low) * item_;
      const char *from = sum + (x.low - mine.low) * item_;
      if (from != place) std::memcpy(place, from, x.size() * item_);
    });
    Chunk::order(add, known);
    arrived(known);
    if (is_last) {
      for (uint32_t h = 0; h < last; h++)
        for (const uint32_t r : hosts_.ranks[h]) {
          const Range x = common(wanted(r, n), mine);
          if (x.size())
            Chunk::order(add, send(c, r, between, sum + (x.low - mine.low) * item_, x.size()));
        }
    } else {
      for (const uint32_t r : hosts_.ranks[last]) {
        const Range x = common(slice_of(r, all), got);
        if (!x.size()) continue;
        Action &a = receive(c, r, between, to + (x.low - got.low) * item_, x.size());
        // it may lie where the own elements are
        Chunk::order(add, a);
        arrived(a);
      }
    }
    for (uint32_t i = 0; i < ranks_.size(); i++)
      if (i != place_)
        take(c, i, slice_of(ranks_[i], all), is_last ? got : Range{0, 0}, to, arrived);
  }

  // `work`, then a sign for the others of this host that their elements are not needed any more,
  // and that the result is there.
  Action &show_taken(Chunk &c, std::function<void()> work) const {
    Action &a = local(c, std::move(work));
    for (const uint32_t r : ranks_)
      if (r != rank_) Chunk::order(a, sign(c, Action::is_send, r, taken));
    return a;
  }
  // waits for that of another one, and takes what is wanted of its slice
  template <class F>
  void take(Chunk &c, uint32_t place, const Range &slice, const Range &got, char *to,
            const F &arrived) const {
    const Range x = common(slice, got);
    const char *from =
        area(place, areas_before_result()) + (x.size() ? x.low - slice.low : 0) * item_;
    Action &copied = local(c, [this, x, from, to, got] {
      if (x.size()) std::memcpy(to + (x.low - got.low) * item_, from, x.size() * item_);
    });
    Chunk::order(sign(c, Action::is_receive, ranks_[place], taken), copied);
    arrived(copied);
  }

  // ---- a broadcast: a tree of hosts, of each of which one member takes part

  void broadcast(Chunk &c, uint64_t at, uint64_t n) const {
    const uint32_t hosts = hosts_.count(), root_host = hosts_.host_of[call_.root];
    const auto leader = [&](uint32_t position) {
      const uint32_t h = (position + root_host) % hosts;
      return h == root_host ? call_.root : hosts_.ranks[h][0];
    };
    const uint32_t position = (host_ + hosts - root_host) % hosts, first = leader(position);
    if (rank_ != first) {
      const char *from = area(hosts_.place_of[first], 0);
      Action &copied = local(c, [this, at, n, from] { out_.write(at, n, from); });
      Chunk::order(sign(c, Action::is_receive, first, staged), copied);
      Chunk::order(copied, sign(c, Action::is_send, first, taken));
      return;
    }
    char *bytes = alone() ? nullptr : area(place_, 0);
    Action *here = nullptr;  // the bytes are
    if (is_root()) {
      if (call_.n_out && at == 0) local(c, [this] { copy_apart(); });
      if (alone())
        bytes = packed(c, in_, at, n);
      else
        here = &show(c, [this, at, n, bytes] { in_.read(at, n, bytes); });
    } else {
      char *direct = alone() ? out_.place(at, n) : nullptr;
      if (alone()) bytes = direct ? direct : c.room(n * item_);
      Action &got = receive(c, leader(position & (position - 1)), between, bytes, n);
      here = &got;
      if (!alone()) Chunk::order(got, show(c, [] {}));
      if (!direct) Chunk::order(got, local(c, [this, at, n, bytes] { out_.write(at, n, bytes); }));
    }
    for (const uint32_t r : ranks_)
      if (r != rank_) sign(c, Action::is_receive, r, taken);
    uint32_t step = 1;
    while (step < hosts && !(position & step)) step <<= 1;
    for (step >>= 1; step; step >>= 1)
      if (position + step < hosts) {
        Action &sent = send(c, leader(position + step), between, bytes, n);
        if (here) Chunk::order(*here, sent);
      }
  }

  // ---- an all-gather: each member receives for its host what some members of other hosts have

  // the member of a host that receives what a rank has
  uint32_t carrier(uint32_t rank, uint32_t host) const {
    if (hosts_.host_of[rank] == host) return rank;
    return hosts_.ranks[host][hosts_.place_of[rank] % hosts_.size_of(host)];
  }
  // the ranks whose elements a member shows to its host, in order
  std::vector<uint32_t> carried(uint32_t by) const {
    std::vector<uint32_t> found;
    for (uint32_t r = 0; r < size_; r++)
      if (carrier(r, hosts_.host_of[by]) == by) found.push_back(r);
    return found;
  }

  // by the first member of the smallest host
  uint64_t most_carried() const {
    size_t least = size_, all = 0;
    for (const auto &r : hosts_.ranks) least = std::min(least, r.size());
    for (const auto &r : hosts_.ranks) all += (r.size() + least - 1) / least;
    return all;
  }

  void gather(Chunk &c, uint64_t at, uint64_t n) const {
    const Stream mine = part(call_.out, rank_);
    const bool in_place = same_place(call_.in[0], call_.out[rank_]);
    const std::vector<uint32_t> own = carried(rank_);
    for (uint32_t i = 0; i < own.size(); i++) {
      const uint32_t r = own[i];
      char *bytes = alone() ? nullptr : area(place_, i);
      if (r == rank_) {
        Action *here = nullptr;
        if (alone())
          bytes = packed(c, in_, at, n, is_output(call_.in[0], false));
        else
          here = &show(c, [this, at, n, bytes] { in_.read(at, n, bytes); });
        Action &copied = local(c, [mine, at, n, bytes, in_place] {
          if (!in_place) mine.write(at, n, bytes);
        });
        if (here) Chunk::order(*here, copied);
        for (uint32_t h = 0; h < hosts_.count(); h++) {
          if (h == host_) continue;
          Action &sent = send(c, carrier(rank_, h), between, bytes, n);
          if (here) Chunk::order(*here, sent);
        }
        continue;
      }
      const Stream to = part(call_.out, r);
      if (alone()) {
        receive_into(c, r, to, at, n, between);
        continue;
      }
      Action &got = receive(c, r, between, bytes, n);
      Chunk::order(got, show(c, [to, at, n, bytes] { to.write(at, n, bytes); }));
    }
    for (uint32_t p = 0; p < ranks_.size(); p++) {
      if (p == place_) continue;
      Action &done = sign(c, Action::is_send, ranks_[p], taken);
      const std::vector<uint32_t> theirs = carried(ranks_[p]);
      for (uint32_t i = 0; i < theirs.size(); i++) {
        const Stream to = part(call_.out, theirs[i]);
        const char *bytes = area(p, i);
        Action &copied = local(c, [to, at, n, bytes] { to.write(at, n, bytes); });
        Chunk::order(sign(c, Action::is_receive, ranks_[p], staged), copied);
        Chunk::order(copied, done);
      }
      sign(c, Action::is_receive, ranks_[p], taken);
    }
  }

  const Hosts &hosts_;
  const std::shared_ptr<Stage> &stage_;
  const uint32_t host_, place_;
  const std::vector<uint32_t> &ranks_;  // of this host
  const uint64_t wide_;                 // bytes of an accumulator
  uint64_t window_ = 0, room_ = 0, area_ = 0, chunk_ = 0, turn_ = 0;
};

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_OVER_HOSTS_HPP
