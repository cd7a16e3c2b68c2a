#include "launch/task_copies.hpp"

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "launch/files.hpp"

namespace hone {
namespace {

constexpr std::string_view prefix = "tasks/";
constexpr std::chrono::minutes copy_patience{1};

// A data file's own name may have folders in it.
std::string name_of_copy(std::size_t index) { return std::to_string(index); }

offered_folder offer(const task& t) {
  std::vector<offered_file> files;
  for (std::size_t i = 0; i < t.data_files.size(); ++i) {
    const data_file& one = t.data_files[i];
    files.push_back({name_of_copy(i), one.bytes().size(),
                     [one](std::uint64_t offset, char* to, std::size_t size) {
                       one.bytes().copy(to, size, offset);
                     }});
  }
  return make_offered_folder(std::move(files));
}

}  // namespace

file_server::find_folder offer_task_data(std::shared_ptr<const task_table> tasks) {
  using offered_tasks = std::map<task_id, std::shared_ptr<const offered_folder>>;
  return [tasks = std::move(tasks), known = std::make_shared<offered_tasks>()](
             const std::string& name) -> std::shared_ptr<const offered_folder> {
    if (!name.starts_with(prefix)) return nullptr;
    const auto id = parse_hex_id(std::string_view(name).substr(prefix.size()));
    const auto t = id ? tasks->find(task_id((*id)[0], (*id)[1])) : nullptr;
    if (t == nullptr) return nullptr;
    auto& folder = (*known)[t->id];
    if (folder == nullptr) folder = std::make_shared<offered_folder>(offer(*t));
    return folder;
  };
}

std::shared_ptr<const task_table> copy_tasks(const std::vector<task_record>& known,
                                             const task_table* earlier,
                                             const copy_sources::make_connection& connect,
                                             const std::function<std::filesystem::path()>& cache) {
  auto table = std::make_shared<task_table>();
  for (const task_record& one : known) {
    if (const auto same = earlier != nullptr ? earlier->find(task_id(one->getId())) : nullptr) {
      table->add(*same);
      continue;
    }
    std::vector<data_file> files;
    if (const auto named = one->getDataFiles(); named.size() > 0) {
      const std::string folder = std::string(prefix) + to_string(task_id(one->getId()));
      const auto copy = copy_folder({connect}, folder, cache(), copy_patience);
      for (std::size_t i = 0; i < named.size(); ++i)
        files.emplace_back(std::string(view(named[static_cast<unsigned>(i)].getName())),
                           read_text((copy / name_of_copy(i)).string()));
      std::filesystem::remove_all(copy);  // they are in memory now
    }
    table->add(with_data(*one, std::move(files)));
  }
  return table;
}

}  // namespace hone
