#include "evaluation/sandbox/programs.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <system_error>

#include "messages/record.hpp"

namespace hone {
void describe_programs(schema::Open::Builder open, const std::vector<host_source>& programs) {
  auto list = open.initPrograms(static_cast<unsigned>(programs.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setSource(programs[i].python);
    list[i].setInputs(static_cast<std::uint32_t>(programs[i].inputs));
    list[i].setParameters(static_cast<std::uint32_t>(programs[i].parameters));
  }
}

opened_programs read_opened(schema::Opened::Reader opened) {
  opened_programs programs;
  programs.has_prepare = opened.getHasPrepare();
  for (const auto name : opened.getLaunches()) programs.launches.emplace_back(view(name));
  return programs;
}

std::string failure_text(schema::Failed::Reader failed) {
  return std::string(view(failed.getMessage()).substr(0, max_failure_text));
}

unique_fd memory_file(std::string_view bytes) {
  unique_fd file(memfd_create("hone-artifact", MFD_CLOEXEC));
  if (!file ||
      write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    throw std::system_error(errno, std::generic_category(), "cannot hold an artifact in memory");
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

}  // namespace hone
