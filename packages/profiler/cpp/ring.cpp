#include "ring.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "journal.hpp"

namespace plait::profiler {

Ring::~Ring() {
  for (const Block &block : blocks_) free_block(block);
}

void Ring::free_block(const Block &block) {
  if (block.in_journal)
    give_back_rows(block.rows, block_size);
  else
    std::free(block.rows);
}

bool Ring::add_block(uint64_t capacity) {
  Block block{nullptr, 0, in_journal()};
  if (block.in_journal && !is_journal_wanted()) return false;
  if (blocks_.size() * block_size >= std::max<uint64_t>(capacity, 2 * block_size)) {
    block = blocks_.front();
    for (size_t i = 0; i < block_size; i++) dropped_[block.rows[i].kind]++;
    blocks_.pop_front();
    block.used = 0;
  } else {
    block.rows = block.in_journal ? journal_rows(block_size)
                                  : static_cast<Row *>(std::malloc(block_size * sizeof(Row)));
  }
  if (block.rows) blocks_.push_back(block);
  return block.rows;
}

void Ring::push(const Row &row, uint64_t capacity) noexcept {
  const std::lock_guard<ProcessLock> lock(mutex_);
  try {
    if ((blocks_.empty() || blocks_.back().used == block_size) && !add_block(capacity)) {
      dropped_[row.kind]++;
      return;
    }
    Block &last = blocks_.back();
    Row &to = last.rows[last.used];
    if (last.in_journal) {  // its kind shows another process that it is complete
      Row first = row;
      first.kind = 0;
      to = first;
      __atomic_store_n(&to.kind, row.kind, __ATOMIC_RELEASE);
    } else {
      to = row;
    }
    last.used++;
  } catch (const std::bad_alloc &) {  // not even the count
  }
}

void Ring::clear() {
  const std::lock_guard<ProcessLock> lock(mutex_);
  for (const Block &block : blocks_) free_block(block);
  blocks_.clear();
  dropped_.clear();
}

uint64_t Ring::size() const {
  const std::lock_guard<ProcessLock> lock(mutex_);
  uint64_t n = 0;
  for (const Block &block : blocks_) n += block.used;
  return n;
}

Row *Ring::copy(Row *to, const Row *limit, uint64_t begin, uint64_t end) const {
  const std::lock_guard<ProcessLock> lock(mutex_);
  for (const Block &block : blocks_)
    for (const Row *r = block.rows; r < block.rows + block.used && to < limit; r++)
      // the duration of a mark is a number of bytes
      if (r->start >= begin && r->start + (r->kind == MARK ? 0 : r->duration) <= end) *to++ = *r;
  return to;
}

void Ring::add_dropped(std::map<uint16_t, uint64_t> &all) const {
  const std::lock_guard<ProcessLock> lock(mutex_);
  for (const auto &[kind, n] : dropped_) all[kind] += n;
}

}  // namespace plait::profiler
