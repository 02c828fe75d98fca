// The collectives, in chunks through the staging areas. An area of one parity is written again only
// after a meeting of all members, so no member reads it then.
#include <algorithm>
#include <cstdio>

#include "group.hpp"
#include "stream.hpp"

using namespace plait;
using namespace plait::multiprocessing;

struct plait_member {
  Group group;
  uint64_t chunks;  // exchanged so far: their parity chooses the area
};

namespace {

constexpr uint64_t small = 32 << 10;  // bytes below which every rank reduces everything itself

class Run {
 public:
  Run(plait_member *m, const plait_collective_call *c)
      : member_(m), group_(m->group), call_(c), in_(c->in, c->n_in), out_(c->out, c->n_out) {}

  plait_outcome run(std::string &why) {
    const plait_tensor *any = call_->n_in ? call_->in[0] : nullptr;
    dtype_ = any ? any->dl.dtype : dtype::uint8;
    item_ = uint64_t(itemsize(dtype_));
    const uint64_t total = in_.elements(), per_chunk = group_.chunk() / item_;
    group_.announce({call_->kind, call_->reduction, call_->root, any ? key(dtype_) : 0, total});
    uint64_t at = 0;
    plait_outcome o = PLAIT_DONE;
    do {
      const uint64_t n = std::min(per_chunk, total - at);
      parity_ = member_->chunks++ & 1;
      if (!only_root_sends() || group_.rank() == call_->root)
        in_.read(at, n, group_.staging(group_.rank(), parity_));
      o = group_.meet(call_->interrupted, why);
      if (o == PLAIT_DONE && at == 0 && !group_.agreed(why)) o = PLAIT_MISMATCH;
      if (o == PLAIT_DONE) o = consume(at, n, why);
      at += n;
    } while (o == PLAIT_DONE && at < total);
    group_.operations++;
    return o;
  }

 private:
  bool only_root_sends() const { return call_->kind == PLAIT_BROADCAST; }

  plait_outcome consume(uint64_t at, uint64_t n, std::string &why) {
    switch (call_->kind) {
      case PLAIT_ALL_REDUCE: return all_reduce(at, n, why);
      case PLAIT_BROADCAST:
        if (group_.rank() != call_->root) out_.write(at, n, group_.staging(call_->root, parity_));
        break;
      case PLAIT_GATHER:
        if (group_.rank() == call_->root) gather(at, n);
        break;
      case PLAIT_ALL_GATHER: gather(at, n); break;
      case PLAIT_REDUCE_SCATTER: reduce_scatter(at, n); break;
      default: break;
    }
    return PLAIT_DONE;
  }

  void reduce_part(uint64_t first, uint64_t n, char *to) const {
    const char *from[1024];
    for (uint32_t r = 0; r < group_.size(); r++)
      from[r] = group_.staging(r, parity_) + first * item_;
    reduce(dtype_, call_->reduction, from, group_.size(), to, n);
  }

  plait_outcome all_reduce(uint64_t at, uint64_t n, std::string &why) {
    char *result = group_.result(parity_);
    if (n * item_ <= small) {
      alignas(64) char own[small];
      reduce_part(0, n, own);
      out_.write(at, n, own);
      return PLAIT_DONE;
    }
    const uint64_t low = n * group_.rank() / group_.size();
    const uint64_t high = n * (group_.rank() + 1) / group_.size();
    reduce_part(low, high - low, result + low * item_);
    const plait_outcome o = group_.meet(call_->interrupted, why);
    if (o == PLAIT_DONE) out_.write(at, n, result);
    return o;
  }

  void gather(uint64_t at, uint64_t n) {
    for (uint32_t r = 0; r < call_->n_out; r++)
      Stream(call_->out + r, 1).write(at, n, group_.staging(r, parity_));
  }

  // there is an input for each rank: this rank reduces its own
  void reduce_scatter(uint64_t at, uint64_t n) {
    const uint64_t each = out_.elements(), begin = each * group_.rank(), end = begin + each;
    const uint64_t low = std::max(at, begin), high = std::min(at + n, end);
    if (low >= high) return;
    for (uint64_t x = low; x < high;) {
      alignas(64) char part[small];
      const uint64_t m = std::min(high - x, small / item_);
      reduce_part(x - at, m, part);
      out_.write(x - begin, m, part);
      x += m;
    }
  }

  plait_member *member_;
  Group &group_;
  const plait_collective_call *call_;
  Stream in_, out_;
  DLDataType dtype_{};
  uint64_t item_ = 1, parity_ = 0;
};

}  // namespace

#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

PLAIT_EXPORT uint64_t plait_group_bytes(uint32_t size, uint64_t chunk) {
  return group_bytes(size, chunk);
}

PLAIT_EXPORT void plait_group_format(plait_storage *s, uint32_t size, uint64_t chunk,
                                     double timeout) {
  format_group(s->data, size, chunk, timeout);
}

PLAIT_EXPORT plait_member *plait_group_join(plait_storage *s, uint32_t rank, char *text,
                                            uint64_t room) {
  if (!is_group(s) || rank >= static_cast<Control *>(s->data)->size) {
    std::snprintf(text, room, "join: a rank of the group is required, got %u", rank);
    return nullptr;
  }
  auto *m = new plait_member{{s, rank}, 0};
  std::string why;
  if (m->group.take(why)) return m;
  std::snprintf(text, room, "%s", why.c_str());
  delete m;
  return nullptr;
}

PLAIT_EXPORT void plait_group_leave(plait_member *m) {
  m->group.leave();
  delete m;
}

PLAIT_EXPORT uint32_t plait_group_size(const plait_member *m) { return m->group.size(); }

PLAIT_EXPORT int plait_group_run(plait_member *m, const plait_collective_call *c) {
  std::string why;
  const plait_outcome o = Run(m, c).run(why);
  if (o != PLAIT_DONE) std::snprintf(c->text, c->room, "%s", why.c_str());
  return o;
}
