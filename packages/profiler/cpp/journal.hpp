// What a child process records goes into files, from which its parent joins it. So it is there at
// any time, also when the child is killed.
#ifndef PLAIT_PROFILER_JOURNAL_HPP
#define PLAIT_PROFILER_JOURNAL_HPP
#include <cstddef>
#include <cstdint>
#include <string>

#include "row.hpp"

namespace plait::profiler {

// Sets the folder into which children of later forks write, "" for none.
void set_journal_folder(const char *path);
// In a child: begins its journal, if there is a folder.
void begin_journal();
// Whether this process has one; whether its reader still waits for it.
bool in_journal();
bool is_journal_wanted();
// Adds a line to the texts: a table's letter, a number and what it means.
void journal(char letter, uint32_t number, const std::string &text);
// Room for `count` zeroed rows at the end of the rows; nullptr if there is none.
Row *journal_rows(size_t count);
void give_back_rows(Row *, size_t count);

}  // namespace plait::profiler
#endif  // PLAIT_PROFILER_JOURNAL_HPP
