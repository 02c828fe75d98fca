#include "blocks.hpp"

#include "pages.hpp"
#include "poison.hpp"

namespace plait::core {
namespace {

constexpr uint64_t kRecordBytes = 64 << 10;  // mapped at a time
constexpr int kTries = 32, kTriesAbove = 8;  // looked at in a list
constexpr uint64_t kNear = 8;  // a block fits well if at most an eighth is left over

uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

uint32_t class_of(uint64_t bytes) {
  return large_class(bytes > kSmallLimit ? bytes : kSmallLimit + 1);
}

// The high part of a block becomes the block `high`.
void split(Block *block, uint64_t low_bytes, Block *high) {
  *high = *block;
  high->data = block->data + low_bytes;
  high->size = block->size - low_bytes;
  high->below = block;
  if (high->above) high->above->below = high;
  block->above = high;
  block->size = low_bytes;
}

}  // namespace

Block *BlockRecords::take() {
  if (!free_) {
    Block *fresh = static_cast<Block *>(map_pages(kRecordBytes));
    if (!fresh) return nullptr;
    for (uint64_t i = 0; i < kRecordBytes / sizeof(Block); i++) give(fresh + i);
  }
  Block *block = free_;
  free_ = block->next;
  return block;
}

void BlockRecords::give(Block *block) {
  block->next = free_;
  free_ = block;
}

void BlockRecords::give_all(Block *list) {
  while (list) {
    Block *next = list->next;
    give(list);
    list = next;
  }
}

void BlockPool::list(Block *block) {
  const uint32_t c = class_of(block->size);
  block->previous = nullptr;
  block->next = lists_.first[c];
  if (block->next) block->next->previous = block;
  lists_.first[c] = block;
  lists_.classes[c / 64] |= uint64_t(1) << c % 64;
  cached_ += block->size;
}

void BlockPool::unlist(Block *block) {
  const uint32_t c = class_of(block->size);
  if (block->next) block->next->previous = block->previous;
  (block->previous ? block->previous->next : lists_.first[c]) = block->next;
  if (!lists_.first[c]) lists_.classes[c / 64] &= ~(uint64_t(1) << c % 64);
  cached_ -= block->size;
}

// The clocks of threads differ by little, so the place is found at once.
void BlockPool::enqueue(Block *block) {
  Block *older = newest_;
  while (older && older->freed > block->freed) older = older->older;
  block->older = older;
  block->newer = older ? older->newer : oldest_;
  (block->newer ? block->newer->older : newest_) = block;
  (older ? older->newer : oldest_) = block;
}

void BlockPool::dequeue(Block *block) {
  (block->older ? block->older->newer : oldest_) = block->newer;
  (block->newer ? block->newer->older : newest_) = block->older;
}

// A free block takes the free block above it in; its age is that of the older one.
void BlockPool::merge(Block *low, BlockRecords &records) {
  Block *high = low->above;
  unlist(low);
  unlist(high);
  if (high->freed < low->freed) {
    dequeue(low);
    low->freed = high->freed;
    low->older = high->older;
    low->newer = high->newer;
    (low->older ? low->older->newer : oldest_) = low;
    (low->newer ? low->newer->older : newest_) = low;
  } else {
    dequeue(high);
  }
  low->size += high->size;
  low->above = high->above;
  if (low->above) low->above->below = low;
  records.give(high);
  list(low);
}

void BlockPool::merge_all(BlockRecords &records) {
  for (Block *block = oldest_, *newer; block; block = newer) {
    while (block->below && block->below->free) block = block->below;
    while (block->above && block->above->free) merge(block, records);
    newer = block->newer;
  }
  merged_ = true;
}

Block *BlockPool::smallest(uint32_t cls, uint64_t bytes, int tries) const {
  Block *best = nullptr;
  for (Block *b = lists_.first[cls]; b && tries; b = b->next, tries--) {
    if (b->size == bytes) return b;
    if (b->size > bytes && (!best || b->size < best->size)) best = b;
  }
  return best;
}

Block *BlockPool::find(uint64_t bytes) const {
  const uint32_t exact = class_of(bytes);
  if (Block *block = smallest(exact, bytes, kTries)) return block;
  const uint32_t above = exact + 1;  // every block there is large enough
  for (uint32_t word = above / 64; word < kWords; word++) {
    const uint64_t bits =
        lists_.classes[word] & (word == above / 64 ? ~uint64_t(0) << above % 64 : ~uint64_t(0));
    if (bits) return smallest(word * 64 + uint32_t(__builtin_ctzll(bits)), bytes, kTriesAbove);
  }
  return nullptr;
}

Block *BlockPool::take(uint64_t bytes, BlockRecords &records) {
  bytes = round_up(bytes, grain_);
  Block *block = find(bytes);
  // A large block that is much larger stays whole, if smaller ones can be put together.
  const bool near = block && (!huge() || block->size - bytes <= bytes / kNear);
  if (!near && !merged_) {
    merge_all(records);
    block = find(bytes);
  }
  if (!block) return nullptr;
  unlist(block);
  Block *high = block->size > bytes ? records.take() : nullptr;
  if (high) {  // the lower part stays free, where new pages come to lie below it
    split(block, block->size - bytes, high);
    list(block);
    block = high;
  } else {
    dequeue(block);
  }
  block->free = false;
  return block;
}

Block *BlockPool::grow(uint64_t bytes, int64_t now, BlockRecords &records) {
  Block *block = records.take(), *top = lowest_;
  if (!block) return nullptr;
  const uint64_t here = top && top->free ? top->size : 0;
  bytes = round_up(bytes, grain_);
  uint64_t size = round_up(bytes > here ? bytes - here : bytes, growth_);
  void *data = top ? map_pages_at(top->data - size, size, huge()) : nullptr;
  if (!data) {
    top = nullptr;
    size = round_up(bytes, growth_);
    data = map_range(size, huge());
  }
  if (!data) {
    records.give(block);
    return nullptr;
  }
  *block = {static_cast<char *>(data),
            size,
            now,
            nullptr,
            top,
            nullptr,
            nullptr,
            nullptr,
            nullptr,
            true,
            huge()};
  if (top) top->below = block;
  lowest_ = block;
  list(block);
  enqueue(block);
  if (top && top->free) merge(block, records);
  return take(bytes, records);
}

void BlockPool::give(Block *block, int64_t now) {
  block->free = true;
  block->freed = now;
  merged_ = false;
  list(block);
  enqueue(block);
}

// [from, to) of a free block leaves the pool. NULL: there is no memory for records.
Block *BlockPool::cut(Block *block, char *from, char *to, BlockRecords &records) {
  Block *middle = from > block->data ? records.take() : block;
  Block *high = to < block->data + block->size ? records.take() : nullptr;
  if (!middle || (!high && to < block->data + block->size)) {
    if (middle && middle != block) records.give(middle);
    return nullptr;
  }
  unlist(block);
  if (high) {
    split(block, uint64_t(to - block->data), high);
    list(high);
    high->older = block;  // its place is behind the lower part's
    (high->newer ? high->newer->older : newest_) = high;
    block->newer = high;
  }
  if (middle == block) {
    dequeue(block);
  } else {
    split(block, uint64_t(from - block->data), middle);
    list(block);
  }
  if (middle->below) middle->below->above = nullptr;
  if (middle->above) middle->above->below = nullptr;
  if (lowest_ == middle) lowest_ = middle->above;
  return middle;
}

Block *BlockPool::release(int64_t before, uint64_t keep, BlockRecords &records, Block *list) {
  for (Block *block = oldest_, *newer; block && cached_ > keep; block = newer) {
    if (block->freed > before) break;
    while (block->below && block->below->free && block->below->freed <= before)
      block = block->below;
    while (block->above && block->above->free && block->above->freed <= before)
      merge(block, records);
    newer = block->newer;
    const uint64_t begin = reinterpret_cast<uintptr_t>(block->data), end = begin + block->size;
    const uint64_t from = round_up(begin, page_), most = round_up(cached_ - keep, page_);
    uint64_t to = end / page_ * page_;
    if (to <= from) continue;
    if (to - from > most) to = from + most;
    Block *out = cut(block, block->data + (from - begin), block->data + (to - begin), records);
    if (!out) continue;
    out->next = list;
    list = out;
  }
  return list;
}

int64_t BlockPool::oldest_after(int64_t time) const {
  for (const Block *block = oldest_; block; block = block->newer)
    if (block->freed > time) return block->freed;
  return 0;
}

uint64_t BlockPool::largest() const {
  for (uint32_t c = kLargeClasses; c-- > 0;) {
    uint64_t size = 0;
    for (const Block *b = lists_.first[c]; b; b = b->next)
      if (b->size > size) size = b->size;
    if (size) return size;
  }
  return 0;
}

void unmap_all(const Block *list) {
  for (; list; list = list->next) {
    PLAIT_UNPOISON(list->data, list->size);
    unmap_pages(list->data, list->size);
  }
}

}  // namespace plait::core
