// Blocks of the arenas that this process made: size classes, free lists, and cutting new blocks.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "table.hpp"

namespace plait::multiprocessing {
namespace {

constexpr uint64_t first_arena = uint64_t(64) << 20, largest_arena = uint64_t(64) << 30;
// smallest amount of memory that is committed at once
constexpr uint64_t step = uint64_t(1) << 20;
// smallest block whose pages are returned to the system
constexpr uint64_t large = uint64_t(1) << 20;
constexpr uint64_t most_free = uint64_t(256) << 20;    // limit of bytes in free blocks

uint64_t round_up(uint64_t x, uint64_t to) { return (x + to - 1) / to * to; }

// Bytes of a block with its header: multiples of 64 up to 512, then eight sizes an octave.
uint64_t block_bytes(uint64_t nbytes) {
  const uint64_t total = std::max(nbytes, uint64_t(1)) + block_header;
  if (total <= 512) return round_up(total, 64);
  const int octave = 63 - __builtin_clzll(total - 1);
  return round_up(total, uint64_t(1) << (octave - 3));
}

}  // namespace

BlockAddress Blocks::take(uint64_t nbytes, std::vector<Arena *> &arenas, Failure &f) {
  if (nbytes > (uint64_t(1) << 46)) {
    f.set(PLAIT_MEMORY_ERROR, "shared memory: %llu bytes are more than an arena can have",
          static_cast<unsigned long long>(nbytes));
    return {nullptr, 0, false};
  }
  const uint64_t total = block_bytes(nbytes);
  Sizes &sizes = sizes_[total];
  sweep(sizes, 16);
  if (sizes.free.empty() && total >= large) sweep(sizes, sizes.held.size());
  BlockAddress address{nullptr, 0, false};
  if (!sizes.free.empty()) {
    address = sizes.free.back();
    const uint64_t begin = address.offset - block_header;
    if (address.punched && !commit(address.arena, begin, begin + total, f))
      return {nullptr, 0, false};
    sizes.free.pop_back();
    if (!address.punched) free_bytes_ -= total;
  } else {
    address = cut(total, arenas, f);
    if (!address.arena && f.code == PLAIT_MEMORY_ERROR && free_bytes_) {
      trim();
      f.code = PLAIT_OK;
      address = cut(total, arenas, f);
    }
    if (!address.arena) return address;
  }
  BlockHeader *h = address.arena->header(address.offset);
  const uint64_t generation = Counts::generation(h->counts.load(std::memory_order_relaxed)) + 1;
  h->room = total - block_header;
  h->listed = 0;
  h->counts.store(generation << 40 | Counts::one_holder, std::memory_order_release);
  return address;
}

BlockAddress Blocks::cut(uint64_t total, std::vector<Arena *> &arenas, Failure &f) {
  Arena *a = arena_for(total, arenas, f);
  if (!a || !extend(a, a->used + total, f)) return {nullptr, 0, false};
  const uint64_t offset = a->used + block_header;
  a->used += total;
  return {a, offset, false};
}

Arena *Blocks::arena_for(uint64_t total, std::vector<Arena *> &arenas, Failure &f) {
  if (newest_ && newest_->size - newest_->used >= total) return newest_;
  const uint64_t least = round_up(header_bytes + total, step);
  uint64_t size = newest_ ? std::min(2 * newest_->size, largest_arena) : first_arena;
  size = std::max(size, least);
  if (!room_for_one_more(arenas, f)) return nullptr;
  Arena *a = make_arena(size, f);
  if (!a && size > least) {  // limits of addresses or of file sizes
    Failure again;
    a = make_arena(least, again);
    if (a) f.code = PLAIT_OK;
  }
  if (!a) return nullptr;
  arenas.push_back(a);
  return newest_ = a;
}

bool Blocks::extend(Arena *a, uint64_t to, Failure &f) {
  if (to <= a->committed) return true;
  const uint64_t page = 4096;
  uint64_t end = std::min(std::max(round_up(to, page), a->committed + step), a->size);
  if (!commit(a, a->committed, end, f)) {
    end = std::min(round_up(to, page), a->size);
    f.code = PLAIT_OK;
    if (!commit(a, a->committed, end, f)) return false;
  }
  a->committed = end;
  return true;
}

// Moves blocks that other processes have released to the free ones; checks at most `at_most`.
void Blocks::sweep(Sizes &sizes, size_t at_most) {
  for (size_t n = std::min(at_most, sizes.held.size()); n > 0; n--) {
    const BlockAddress p = sizes.held.front();
    if (Counts::is_free(p.arena->header(p.offset)->counts.load(std::memory_order_acquire)))
      put(sizes, p);
    else
      sizes.held.push_back(p);
    sizes.held.pop_front();  // done last, as there may be no memory for the other list
  }
}

void Blocks::put(Sizes &sizes, const BlockAddress &result) {
  sizes.free.push_back(result);
  BlockAddress &p = sizes.free.back();
  const uint64_t total = p.arena->header(p.offset)->room + block_header;
  if (total >= large && free_bytes_ + total > most_free) {
    punch(p.arena, p.offset, p.offset - block_header + total);
    p.punched = true;
  } else {
    free_bytes_ += total;
  }
}

// Called when a storage is dropped, which cannot report a failure: if there is no memory for the
// list's entry, the block stays unused.
void Blocks::give(Arena *a, uint64_t offset) try {
  BlockHeader *h = a->header(offset);
  if (h->listed) return;  // it is in `held` already, since before it came back to this process
  Sizes &sizes = sizes_[h->room + block_header];
  const BlockAddress p{a, offset, false};
  if (Counts::is_free(h->counts.load(std::memory_order_acquire)))
    put(sizes, p);
  else
    sizes.held.push_back(p);
  h->listed = 1;
} catch (const std::bad_alloc &) {
}

void Blocks::trim() {
  for (auto &[total, sizes] : sizes_) {
    sweep(sizes, sizes.held.size());
    for (BlockAddress &p : sizes.free) {
      if (p.punched || total < large) continue;
      punch(p.arena, p.offset, p.offset - block_header + total);
      p.punched = true;
      free_bytes_ -= total;
    }
  }
}

void Blocks::forget() {
  sizes_.clear();
  newest_ = nullptr;
  free_bytes_ = 0;
}

}  // namespace plait::multiprocessing
