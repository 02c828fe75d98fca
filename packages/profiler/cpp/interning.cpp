#include "interning.hpp"

#include "journal.hpp"

namespace plait::profiler {

// never destroyed: other threads may outlive main
Table &signatures = *new Table('s'), &contexts = *new Table('c'), &modules = *new Table('m'),
      &stacks = *new Table('k');

void Table::note(uint32_t number) const { journal(letter_, number, texts_[number]); }

}  // namespace plait::profiler
