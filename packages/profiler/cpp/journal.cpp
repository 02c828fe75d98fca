#include "journal.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <plait/fork.hpp>

#include <cstdio>
#include <cstring>
#include <mutex>

namespace plait::profiler {
namespace {

char folder[4000];
int rows_file = -1, texts_file = -1;
uint64_t rows_size;
ProcessLock mutex;

int open_file(const char *ending) {
  char path[sizeof folder + 40];
  std::snprintf(path, sizeof path, "%s/%d.%s", folder, int(getpid()), ending);
  return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}
void close_files() {
  if (rows_file >= 0) close(rows_file);
  if (texts_file >= 0) close(texts_file);
  rows_file = texts_file = -1;
  rows_size = 0;
}

}  // namespace

void set_journal_folder(const char *path) {
  const std::lock_guard<ProcessLock> lock(mutex);
  std::snprintf(folder, sizeof folder, "%s", std::strlen(path) < sizeof folder ? path : "");
}

void begin_journal() {
  close_files();  // of a parent that has a journal itself
  if (!folder[0]) return;
  texts_file = open_file("texts");
  rows_file = open_file("rows");  // whoever finds it finds the other one, too
  if (rows_file < 0 || texts_file < 0) close_files();
}

bool in_journal() { return rows_file >= 0; }
bool is_journal_wanted() { return access(folder, F_OK) == 0; }

void journal(char letter, uint32_t number, const std::string &text) {
  if (texts_file < 0) return;
  const std::string line = letter + std::to_string(number) + " " + text + "\n";
  if (write(texts_file, line.data(), line.size()) < 0) return;  // the row has no name then
}

Row *journal_rows(size_t count) {
  const std::lock_guard<ProcessLock> lock(mutex);
  const uint64_t bytes = count * sizeof(Row);
  if (posix_fallocate(rows_file, off_t(rows_size), off_t(bytes))) return nullptr;
  void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rows_file, off_t(rows_size));
  if (at == MAP_FAILED) return nullptr;
  rows_size += bytes;
  return static_cast<Row *>(at);
}

void give_back_rows(Row *rows, size_t count) { munmap(rows, count * sizeof(Row)); }

}  // namespace plait::profiler
