// The collectives, in chunks through the staging areas. An area of one parity is written again only
// after a meeting of all members, so no member reads it then.
#include "collectives.hpp"

#include <plait/collectives/reduce.hpp>
#include <plait/collectives/stream.hpp>

#include <algorithm>

namespace plait::multiprocessing {
namespace {

constexpr uint64_t small = 32 << 10;  // bytes below which every rank reduces everything itself

class Run {
 public:
  Run(Group &group, const Collective &c, const Patience &patience)
      : group_(group), call_(c), patience_(patience), in_(c.in, c.n_in), out_(c.out, c.n_out) {}

  Outcome run(std::string &why) {
    dtype_ = call_.dtype;
    item_ = uint64_t(itemsize(dtype_));
    group_.announce(call_of(call_));
    const Outcome o = by_destination() ? run_by_destination(why) : run_through(why);
    group_.operations++;
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

  Outcome meet(bool first, std::string &why) {
    const Outcome o = group_.meet(patience_, why);
    return o == Outcome::done && first && !group_.agreed(why) ? Outcome::mismatch : o;
  }

  // all elements, from first to last
  Outcome run_through(std::string &why) {
    const uint64_t total = call_.elements, per_chunk = group_.chunk() / item_;
    uint64_t at = 0;
    Outcome o = Outcome::done;
    do {
      const uint64_t n = std::min(per_chunk, total - at);
      parity_ = group_.chunks++ & 1;
      if (sends()) in_.read(at, n, group_.staging(group_.rank(), parity_));
      o = meet(at == 0, why);
      if (o == Outcome::done) o = consume(at, n, why);
      at += n;
    } while (o == Outcome::done && at < total);
    return o;
  }

  Outcome consume(uint64_t at, uint64_t n, std::string &why) {
    switch (call_.kind) {
      case PLAIT_ALL_REDUCE: return all_reduce(at, n, why);
      case PLAIT_BROADCAST:
        if (!is_root() || apart()) out_.write(at, n, group_.staging(call_.root, parity_));
        break;
      case PLAIT_REDUCE:
        if (is_root()) reduce_to(out_, at, 0, n);
        break;
      case PLAIT_GATHER:
        if (is_root()) gather(at, n);
        break;
      case PLAIT_ALL_GATHER:
      case split_kind: gather(at, n); break;
      default: break;
    }
    return Outcome::done;
  }

  // whether the root of a broadcast has an output that is not its input
  bool apart() const {
    for (uint32_t i = 0; i < call_.n_out; i++)
      if (call_.out[i]->dl.data != call_.in[i]->dl.data) return true;
    return false;
  }

  // elements [first, first + n) of the staging areas, reduced
  void reduce_part(uint64_t first, uint64_t n, char *to) const {
    const char *from[most_ranks];
    for (uint32_t r = 0; r < group_.size(); r++)
      from[r] = group_.staging(r, parity_) + first * item_;
    reduce(dtype_, call_.reduction, from, group_.size(), to, n);
  }

  // the same, written to elements [at, at + n) of the output
  void reduce_to(const Stream &out, uint64_t at, uint64_t first, uint64_t n) const {
    alignas(64) char part[small];
    for (uint64_t x = 0; x < n;) {
      const uint64_t m = std::min(n - x, small / item_);
      reduce_part(first + x, m, part);
      out.write(at + x, m, part);
      x += m;
    }
  }

  Outcome all_reduce(uint64_t at, uint64_t n, std::string &why) {
    if (n * item_ <= small) {
      reduce_to(out_, at, 0, n);
      return Outcome::done;
    }
    char *result = group_.result(parity_);
    const uint64_t low = n * group_.rank() / group_.size();
    const uint64_t high = n * (group_.rank() + 1) / group_.size();
    reduce_part(low, high - low, result + low * item_);
    const Outcome o = group_.meet(patience_, why);
    if (o == Outcome::done) out_.write(at, n, result);
    return o;
  }

  void gather(uint64_t at, uint64_t n) {
    for (uint32_t r = 0; r < call_.n_out; r++)
      Stream(call_.out + r, 1).write(at, n, group_.staging(r, parity_));
  }

  // A chunk has a part for each of some ranks, so that all of them work on it at once.
  Outcome run_by_destination(std::string &why) {
    const uint64_t per_chunk = group_.chunk() / item_, each = call_.elements;
    const auto ranks = uint32_t(std::min(uint64_t(group_.size()), per_chunk));
    const uint64_t most = per_chunk / ranks;
    bool first = true;
    for (uint32_t begin = 0; begin < group_.size(); begin += ranks) {
      const uint32_t end = std::min(begin + ranks, group_.size());
      uint64_t at = 0;
      do {
        const uint64_t n = std::min(most, each - at);
        parity_ = group_.chunks++ & 1;
        if (sends())
          for (uint32_t r = begin; r < end; r++)
            Stream(call_.in + r, 1)
                .read(at, n, group_.staging(group_.rank(), parity_) + (r - begin) * most * item_);
        const Outcome o = meet(std::exchange(first, false), why);
        if (o != Outcome::done) return o;
        if (group_.rank() >= begin && group_.rank() < end)
          take(at, n, (group_.rank() - begin) * most);
        at += n;
      } while (at < each);
    }
    return Outcome::done;
  }

  // this rank's part of the chunk, which begins at element `first` of the staging areas
  void take(uint64_t at, uint64_t n, uint64_t first) {
    if (call_.kind == PLAIT_REDUCE_SCATTER) {
      reduce_to(out_, at, first, n);
    } else if (call_.kind == PLAIT_SCATTER) {
      out_.write(at, n, group_.staging(call_.root, parity_) + first * item_);
    } else {
      for (uint32_t r = 0; r < group_.size(); r++)
        Stream(call_.out + r, 1).write(at, n, group_.staging(r, parity_) + first * item_);
    }
  }

  Group &group_;
  const Collective &call_;
  const Patience &patience_;
  Stream in_, out_;
  DLDataType dtype_{};
  uint64_t item_ = 1, parity_ = 0;
};

}  // namespace

Outcome run(Group &group, const Collective &call, const Patience &patience, std::string &why) {
  return Run(group, call, patience).run(why);
}

}  // namespace plait::multiprocessing
