// The collectives, in chunks through the staging areas. A rank fills the area of a chunk, consumes
// the chunk when all have filled it, and, in a large all-reduce, finishes it when all have consumed
// it. It does so for a chunk while others are still busy with the one before.
#include "collectives.hpp"

#include <plait/collectives/reduce.hpp>
#include <plait/collectives/stream.hpp>

#include <algorithm>

namespace plait::multiprocessing {
namespace {

constexpr uint64_t small = 32 << 10;  // bytes below which every rank reduces everything itself
constexpr uint64_t piece = 16 << 10;  // bytes that are reduced at once, in the first cache

uint64_t parts(uint64_t n, uint64_t each) { return n ? (n - 1) / each + 1 : 1; }

class Run {
 public:
  Run(Group &group, const Collective &c, const Patience &patience, Explanation &reason)
      : group_(group),
        call_(c),
        patience_(patience),
        why_(reason),
        in_(c.in, c.n_in),
        out_(c.out, c.n_out) {}

  Outcome run() {
    item_ = uint64_t(itemsize(call_.dtype));
    group_.announce(call_of(call_));
    divide();
    first_ = group_.chunks;
    const Outcome o = by_slices_ ? reduce_by_slices() : run_chunks(false);
    group_.operations++;
    // Of different calls each has its own number of chunks. Nobody has read the first one, so the
    // next collective of all begins at its areas again.
    if (o != Outcome::mismatch) group_.chunks += chunks_;
    return o;
  }

 private:
  bool is_root() const { return group_.rank() == call_.root; }
  bool only_root_sends() const {
    return call_.kind == PLAIT_BROADCAST || call_.kind == PLAIT_SCATTER;
  }
  bool sends() const { return !only_root_sends() || is_root(); }
  // whether there is a tensor for each rank
  bool by_destination() const {
    return call_.kind == PLAIT_SCATTER || call_.kind == PLAIT_REDUCE_SCATTER ||
           call_.kind == PLAIT_ALL_TO_ALL;
  }

  // Chunks of about one size. One of a collective by destination has a part for each of `ranks_`
  // ranks, so that all of them work on it at once.
  void divide() {
    const uint64_t room = group_.chunk() / item_;
    by_slices_ = call_.kind == PLAIT_ALL_REDUCE && call_.elements * item_ > small;
    if (by_destination()) ranks_ = std::min(uint64_t(group_.size()), room);
    const uint64_t most = room / ranks_, count = parts(call_.elements, most);
    each_ = std::min(most, (parts(call_.elements, count) + 63) / 64 * 64);
    in_row_ = parts(call_.elements, each_);
    chunks_ = in_row_ * (by_destination() ? parts(group_.size(), ranks_) : 1);
  }

  struct Chunk {  // elements [at, at + n) of each tensor
    uint64_t at, n;
    uint32_t begin, end;  // the ranks that it has parts for
    uint64_t turn;  // of the areas
  };
  Chunk chunk(uint64_t i) const {
    const uint64_t at = i % in_row_ * each_, begin = i / in_row_ * ranks_;
    return {at, std::min(each_, call_.elements - at), uint32_t(begin),
            uint32_t(std::min(begin + ranks_, uint64_t(group_.size()))), first_ + i};
  }

  // All chunks; `filled`: the first one was filled, and all ranks have met. Ranks are at most
  // `slack` chunks apart, so that a short delay of one member does not stop the others.
  Outcome run_chunks(bool filled) {
    const uint64_t slack = chunks_ > 2 ? most_slack : 1;
    const uint64_t stages = by_slices_ ? 2 : 1, last = chunks_ - 1 + slack * stages;
    for (uint64_t i = 0;; i++) {
      if (i < chunks_ && (i || !filled) && sends()) fill(chunk(i));
      if (i >= slack && i - slack < chunks_) consume(chunk(i - slack));
      if (by_slices_ && i >= 2 * slack) finish(chunk(i - 2 * slack));
      if (i == last) return Outcome::done;
      if (i || !filled) {
        const Outcome o = meet(i == 0, i ? uint32_t(slack - 1) : 0);
        if (o != Outcome::done) return o;
      }
    }
  }

  Outcome meet(bool first, uint32_t slack = 0) {
    const Outcome o = group_.meet(patience_, why_, slack);
    if (o != Outcome::done || !first || met_) return o;
    met_ = true;
    return group_.agreed(why_) ? o : Outcome::mismatch;
  }

  void fill(const Chunk &c) {
    char *area = group_.staging(group_.rank(), c.turn);
    if (by_destination()) {
      for (uint32_t r = c.begin; r < c.end; r++)
        Stream(call_.in + r, 1).read(c.at, c.n, area + (r - c.begin) * each_ * item_);
    } else if (by_slices_) {  // the own slice is read where it is
      const uint64_t low = slice(c.n, group_.rank()), high = slice(c.n, group_.rank() + 1);
      in_.read(c.at, low, area);
      in_.read(c.at + high, c.n - high, area + high * item_);
    } else {
      in_.read(c.at, c.n, area);
    }
  }

  void consume(const Chunk &c) {
    switch (call_.kind) {
      case PLAIT_ALL_REDUCE:
        if (by_slices_)
          reduce_slice(c);
        else
          reduce_to(out_, c, 0);
        break;
      case PLAIT_BROADCAST:
        if (!is_root() || apart()) out_.write(c.at, c.n, group_.staging(call_.root, c.turn));
        break;
      case PLAIT_REDUCE:
        if (is_root()) reduce_to(out_, c, 0);
        break;
      case PLAIT_GATHER:
        if (is_root()) gather(c, 0);
        break;
      case PLAIT_ALL_GATHER:
      case split_kind: gather(c, 0); break;
      case PLAIT_SCATTER:
      case PLAIT_REDUCE_SCATTER:
      case PLAIT_ALL_TO_ALL:
        if (group_.rank() >= c.begin && group_.rank() < c.end)
          take(c, (group_.rank() - c.begin) * each_);
        break;
      default: break;
    }
  }

  // this rank's part of the chunk, which begins at element `first` of the staging areas
  void take(const Chunk &c, uint64_t first) {
    if (call_.kind == PLAIT_REDUCE_SCATTER)
      reduce_to(out_, c, first);
    else if (call_.kind == PLAIT_SCATTER)
      out_.write(c.at, c.n, group_.staging(call_.root, c.turn) + first * item_);
    else
      gather(c, first);
  }

  // whether the root of a broadcast has an output that is not its input
  bool apart() const {
    for (uint32_t i = 0; i < call_.n_out; i++)
      if (call_.out[i]->dl.data != call_.in[i]->dl.data) return true;
    return false;
  }

  void gather(const Chunk &c, uint64_t first) {
    for (uint32_t r = 0; r < call_.n_out; r++)
      Stream(call_.out + r, 1).write(c.at, c.n, group_.staging(r, c.turn) + first * item_);
  }

  // the chunk in the staging areas, from element `first` on, reduced into elements of the output
  void reduce_to(const Stream &out, const Chunk &c, uint64_t first) const {
    alignas(64) char reduced[piece];
    const char *from[most_ranks];
    for (uint64_t x = 0; x < c.n;) {
      const uint64_t m = std::min(c.n - x, piece / item_);
      for (uint32_t r = 0; r < group_.size(); r++)
        from[r] = group_.staging(r, c.turn) + (first + x) * item_;
      reduce(call_.dtype, call_.reduction, from, group_.size(), reduced, m);
      out.write(c.at + x, m, reduced);
      x += m;
    }
  }

  // A large all-reduce: each rank reduces a slice of each chunk for all.

  // where the slice of a rank begins
  uint64_t slice(uint64_t n, uint32_t r) const {
    return r == group_.size() ? n : n * r / group_.size() / 64 * 64;
  }

  void reduce_slice(const Chunk &c) const {
    alignas(64) char own[piece];
    const char *from[most_ranks];
    char *result = group_.result(c.turn);
    const uint64_t end = slice(c.n, group_.rank() + 1);
    for (uint64_t x = slice(c.n, group_.rank()); x < end;) {
      const uint64_t m = std::min(end - x, piece / item_);
      for (uint32_t r = 0; r < group_.size(); r++) from[r] = group_.staging(r, c.turn) + x * item_;
      from[group_.rank()] = in_.place(c.at + x, m);
      if (!from[group_.rank()]) {
        in_.read(c.at + x, m, own);
        from[group_.rank()] = own;
      }
      reduce(call_.dtype, call_.reduction, from, group_.size(), result + x * item_, m);
      out_.write(c.at + x, m, result + x * item_);
      x += m;
    }
  }

  void finish(const Chunk &c) const {
    const uint64_t low = slice(c.n, group_.rank()), high = slice(c.n, group_.rank() + 1);
    const char *result = group_.result(c.turn);
    out_.write(c.at, low, result);
    out_.write(c.at + high, c.n - high, result + high * item_);
  }

  // Through the staging areas, or in place where every rank's tensor lies in shared memory.
  Outcome reduce_by_slices() {
    Offer &mine = group_.offer(group_.rank());
    mine.place = can_offer() ? place_of(call_.in[0]) : Place{};
    if (!mine.place.known) fill(chunk(0));
    Outcome o = meet(true);
    if (o != Outcome::done) return o;
    uint32_t offered = 0;
    for (uint32_t r = 0; r < group_.size(); r++) offered += group_.offer(r).place.known;
    if (!offered) return run_chunks(true);
    if (offered == group_.size()) {
      bool in_place = false;
      o = reduce_in_place(in_place);
      if (o != Outcome::done || in_place) return o;
    }
    if (mine.place.known) fill(chunk(0));
    o = meet(false);
    return o == Outcome::done ? run_chunks(true) : o;
  }

  bool can_offer() const {
    return !group_.cannot_borrow && call_.n_in == 1 && is_contiguous(call_.in[0]) &&
           is_contiguous(call_.out[0]) && call_.in[0]->dl.data == call_.out[0]->dl.data;
  }

  // Each rank reduces its slice of all tensors and writes it to all of them. `done` stays false if
  // a rank cannot use the others' memory.
  Outcome reduce_in_place(bool &done) {
    struct GivesBack {
      Borrowed &borrowed;
      ~GivesBack() { borrowed.give_back(); }
    } const gives_back{group_.borrowed};
    char *all[most_ranks];
    bool taken = true;
    for (uint32_t r = 0; r < group_.size(); r++) {
      all[r] = static_cast<char *>(call_.in[0]->dl.data);
      if (r != group_.rank())
        all[r] = group_.borrowed.take(group_.offer(r).place, call_.elements * item_,
                                      group_.slot(r).pid.load());
      taken &= all[r] != nullptr;
    }
    group_.offer(group_.rank()).taken = taken;
    Outcome o = meet(false);
    if (o != Outcome::done) return o;
    for (uint32_t r = 0; r < group_.size(); r++) taken &= group_.offer(r).taken.load() != 0;
    group_.cannot_borrow = !taken;
    if (!taken) return o;
    done = true;
    alignas(64) char reduced[piece];
    const char *from[most_ranks];
    const uint64_t end = slice(call_.elements, group_.rank() + 1);
    for (uint64_t x = slice(call_.elements, group_.rank()); x < end;) {
      const uint64_t m = std::min(end - x, piece / item_);
      for (uint32_t r = 0; r < group_.size(); r++) from[r] = all[r] + x * item_;
      reduce(call_.dtype, call_.reduction, from, group_.size(), reduced, m);
      for (uint32_t r = 0; r < group_.size(); r++)
        std::memcpy(all[r] + x * item_, reduced, m * item_);
      x += m;
    }
    group_.borrowed.give_back();  // first, so that a member that continues may free its tensor
    return meet(false);
  }

  Group &group_;
  const Collective &call_;
  const Patience &patience_;
  Explanation &why_;
  Stream in_, out_;
  bool by_slices_ = false, met_ = false;
  uint64_t item_ = 1, first_ = 0;
  uint64_t ranks_ = 1, each_ = 1, in_row_ = 1, chunks_ = 1;
};

}  // namespace

Outcome run(Group &group, const Collective &call, const Patience &patience, Explanation &reason) {
  return Run(group, call, patience, reason).run();
}

}  // namespace plait::multiprocessing
