#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "messages/caf_records.hpp"
#include "network/files/file_server.hpp"
#include "network/files/folder_copy.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// The tasks of a run on their way to a joined node. Their texts come in a message, and the bytes of
// their data files, which may be gigabytes, as copies of files.

// Offers the data files of each task, as the folder "tasks/ID".
file_server::find_folder offer_task_data(std::shared_ptr<const task_table> tasks);

// Makes the tasks of `known`, or takes them from `earlier`, which may be null. Copies their
// data files by way of `cache()`, which is called if there are any. Throws network_error or
// format_error.
std::shared_ptr<const task_table> copy_tasks(const std::vector<task_record>& known,
                                             const task_table* earlier,
                                             const copy_sources::make_connection& connect,
                                             const std::function<std::filesystem::path()>& cache);

}  // namespace hone
