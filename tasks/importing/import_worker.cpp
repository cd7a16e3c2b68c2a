#include "tasks/importing/import_worker.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "process/framing.hpp"
#include "process/read_fence.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

constexpr auto start_limit =
    std::chrono::seconds(120);  // loading torch and its exporter on a busy machine
constexpr auto grace = std::chrono::seconds(30);  // the process ends late modules itself
constexpr std::size_t max_answer_bytes = 256U << 20U;

std::string hexadecimal(const std::vector<sock_filter>& program) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto* bytes = reinterpret_cast<const unsigned char*>(program.data());
  std::string text;
  for (std::size_t i = 0; i < program.size() * sizeof(sock_filter); ++i) {
    text += digits[bytes[i] >> 4U];
    text += digits[bytes[i] & 15U];
  }
  return text;
}

// The last line of a log, where there is one.
std::string last_words(const std::string& file) {
  std::ifstream log(file);
  std::string last;
  for (std::string line; std::getline(log, line);) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "" : ": " + last.substr(0, 300);
}

}  // namespace

void import_worker::start() {
  auto [ours, theirs] = socket_pair();
  connection_ = line_connection(std::move(ours), "the importing process", max_answer_bytes);
  child_options options;
  options.arguments = {settings_.python.string(), "-I", "-B", settings_.program.string()};
  options.environment = {"PATH=/usr/bin:/bin",
                         "LANG=C.UTF-8",
                         "USER=hone",
                         "HOME=" + settings_.folder,
                         "TMPDIR=" + settings_.folder,
                         "OMP_NUM_THREADS=1",
                         "MKL_NUM_THREADS=1"};
  options.descriptors = {{theirs.get(), 0}, {theirs.get(), 1}};
  options.folder = settings_.folder;
  const unique_fd errors(open((settings_.folder + "/errors").c_str(),
                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  options.descriptors.emplace_back(errors.get(), 2);
  options.file_bytes = 1U << 20U;
  std::vector<std::filesystem::path> readable = files_of_python(settings_.python);
  readable.push_back(settings_.program.parent_path());
  readable.emplace_back(settings_.folder);
  readable.insert(readable.end(), settings_.readable.begin(), settings_.readable.end());
  const unique_fd fence = make_read_fence(readable);
  options.read_fence = fence.get();
  process_ = child_process(options);
  send({{"filter", hexadecimal(reader_filter())}});
  if (!connection_.read_line(steady::now() + start_limit))
    throw connection_lost("the importing process does not start");
  // The process cannot read this of itself.
  std::ifstream facts("/proc/" + std::to_string(process_.pid()) + "/statm");
  std::uint64_t pages = 0;
  facts >> pages;
  loaded_bytes_ = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void import_worker::send(const nlohmann::json& message) { connection_.send(message.dump() + "\n"); }

struct import_worker::answer {
  std::string error;
  nlohmann::json fields;
  std::string data;
};

import_worker::answer import_worker::ask(const std::filesystem::path& file,
                                         nlohmann::json request) {
  try {
    if (!process_.running()) start();
    const auto deadline = steady::now() + std::chrono::seconds(5 * settings_.seconds) + grace;
    request["path"] = std::filesystem::absolute(file).string();
    request["seconds"] = settings_.seconds;
    request["bytes"] = loaded_bytes_ + settings_.bytes;
    send(request);
    const auto line = connection_.read_line(deadline);
    if (!line) return fail("the importing process does not answer");
    answer got;
    got.fields = nlohmann::json::parse(*line);
    got.error = got.fields.value("error", "");
    auto data = connection_.read_bytes(got.fields.value("data_bytes", std::size_t{0}), deadline);
    if (!data) return fail("the importing process does not answer");
    got.data = *std::move(data);
    return got;
  } catch (const connection_lost& e) {
    return fail(e.what() + last_words(settings_.folder + "/errors"));
  } catch (const std::length_error&) {
    return fail("it answers with more than a task may be");
  } catch (const nlohmann::json::exception& e) {
    return fail(std::string("the importing process answers nonsense: ") + e.what());
  }
}

imported_module import_worker::import(const std::filesystem::path& file,
                                      const std::string& task_name) {
  answer got = ask(file, {{"name", task_name},
                          {"varies_constants", settings_.varies_constants},
                          {"is_relaxed", settings_.is_relaxed},
                          {"fixes_sizes", settings_.fixes_sizes},
                          {"dtype", settings_.dtype}});
  imported_module result;
  result.error = got.error;
  if (!result.error.empty()) return result;
  try {
    got.fields.at("text").get_to(result.text);
    got.fields.at("operators").get_to(result.operators);
    got.fields.at("notes").get_to(result.notes);
    got.fields.at("checked").get_to(result.checked);
    result.data = std::move(got.data);
  } catch (const nlohmann::json::exception& e) {
    result.error = fail(std::string("the importing process answers nonsense: ") + e.what()).error;
  }
  return result;
}

import_worker::translated_program import_worker::translate(
    const std::filesystem::path& file, const std::string& module,
    const std::vector<std::string>& parameters, const std::string& name) {
  const answer got = ask(file, {{"name", name}, {"module", module}, {"parameters", parameters}});
  translated_program result;
  result.error = got.error;
  result.is_unreadable = got.fields.is_object() && got.fields.value("is_unreadable", false);
  if (!result.error.empty()) return result;
  try {
    got.fields.at("text").get_to(result.document);
    got.fields.at("notes").get_to(result.notes);
  } catch (const nlohmann::json::exception& e) {
    result.error = fail(std::string("the importing process answers nonsense: ") + e.what()).error;
  }
  return result;
}

import_worker::answer import_worker::fail(const std::string& why) {
  process_.kill();
  return {why, {}, {}};
}

}  // namespace hone
