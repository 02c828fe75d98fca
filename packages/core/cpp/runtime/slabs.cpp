#include "slabs.hpp"

#include "blocks.hpp"
#include "poison.hpp"

namespace plait::core {

void SlabClass::link(Slab *slab) {
  slab->previous = nullptr;
  slab->next = with_space_;
  if (with_space_) with_space_->previous = slab;
  with_space_ = slab;
}

void SlabClass::unlink(Slab *slab) {
  if (slab->next) slab->next->previous = slab->previous;
  (slab->previous ? slab->previous->next : with_space_) = slab->next;
}

void SlabClass::add(Block *block, uint32_t cls) {
  PLAIT_UNPOISON(block->data, kSlabBytes);
  Slab *slab = reinterpret_cast<Slab *>(block->data);
  slab->block = block;
  slab->free = nullptr;
  slab->live = slab->cut = 0;
  slab->capacity = uint32_t((kSlabBytes - sizeof(Slab)) / small_size(cls));
  slab->cls = cls;
  link(slab);
}

void *SlabClass::take(Slab **out) {
  Slab *slab = with_space_;
  if (!slab) return nullptr;
  void *p = slab->free;
  if (p) {
    slab->free = next_free(p);
  } else {  // never used before: the caller is the first to touch its pages
    p = reinterpret_cast<char *>(slab + 1) + slab->cut++ * small_size(slab->cls);
  }
  if (++slab->live == slab->capacity) unlink(slab);
  live++;
  taken++;
  *out = slab;
  return p;
}

bool SlabClass::give(Slab *slab, void *p) {
  set_next_free(p, slab->free);
  slab->free = p;
  live--;
  if (slab->live-- == slab->capacity) link(slab);
  if (slab->live || (with_space_ == slab && !slab->next))
    return false;  // the last slab with free blocks is kept
  unlink(slab);
  return true;
}

Slab *SlabClass::find_empty() const {
  Slab *slab = with_space_;
  while (slab && slab->live) slab = slab->next;
  return slab;
}

Slab *SlabClass::remove_empty() {
  Slab *slab = find_empty();
  if (slab) unlink(slab);
  return slab;
}

Slab *SlabClass::remove_idle(bool *others) {
  if (taken == seen_) return remove_empty();
  seen_ = taken;
  if (find_empty()) *others = true;
  return nullptr;
}

}  // namespace plait::core
