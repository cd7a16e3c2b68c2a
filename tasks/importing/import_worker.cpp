#include "tasks/importing/import_worker.hpp"

#include <fcntl.h>
#include <linux/filter.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "process/framing.hpp"

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

imported_module from_answer(const nlohmann::json& answer) {
  imported_module result;
  result.error = answer.value("error", "");
  if (!result.error.empty()) return result;
  answer.at("text").get_to(result.text);
  answer.at("operators").get_to(result.operators);
  answer.at("notes").get_to(result.notes);
  answer.at("checked").get_to(result.checked);
  return result;
}

}  // namespace

void import_worker::start() {
  auto [ours, theirs] = socket_pair();
  connection_ = line_connection(std::move(ours), "the importing process", max_answer_bytes);
  child_options options;
  options.arguments = {settings_.python.string(), "-I", "-B", settings_.program.string()};
  options.environment = {"PATH=/usr/bin:/bin",       "LANG=C.UTF-8",
                         "HOME=" + settings_.folder, "TMPDIR=" + settings_.folder,
                         "OMP_NUM_THREADS=1",        "MKL_NUM_THREADS=1"};
  options.descriptors = {{theirs.get(), 0}, {theirs.get(), 1}};
  options.folder = settings_.folder;
  const unique_fd errors(open((settings_.folder + "/errors").c_str(),
                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  options.descriptors.emplace_back(errors.get(), 2);
  options.file_bytes = 1U << 20U;
  process_ = child_process(options);
  send({{"filter", hexadecimal(reader_filter())}});
}

void import_worker::send(const nlohmann::json& message) { connection_.send(message.dump() + "\n"); }

imported_module import_worker::import(const std::filesystem::path& file,
                                      const std::string& task_name) {
  const bool is_fresh = !process_.running();
  if (is_fresh) start();
  const auto deadline = steady::now() + std::chrono::seconds(5 * settings_.seconds) + grace +
                        (is_fresh ? start_limit : std::chrono::seconds(0));
  try {
    send({{"path", std::filesystem::absolute(file).string()},
          {"name", task_name},
          {"seconds", settings_.seconds},
          {"bytes", settings_.bytes},
          {"varies_constants", settings_.varies_constants},
          {"is_relaxed", settings_.is_relaxed},
          {"dtype", settings_.dtype}});
    const auto line = connection_.read_line(deadline);
    if (!line) return fail("the importing process does not answer");
    const auto answer = nlohmann::json::parse(*line);
    imported_module result = from_answer(answer);
    auto data = connection_.read_bytes(answer.value("data_bytes", std::size_t{0}), deadline);
    if (!data) return fail("the importing process does not answer");
    result.data = *std::move(data);
    return result;
  } catch (const connection_lost& e) {
    return fail(e.what() + last_words(settings_.folder + "/errors"));
  } catch (const std::length_error&) {
    return fail("it answers with more than a task may be");
  } catch (const nlohmann::json::exception& e) {
    return fail(std::string("the importing process answers nonsense: ") + e.what());
  }
}

imported_module import_worker::fail(const std::string& why) {
  process_.kill();
  imported_module failed;
  failed.error = why;
  return failed;
}

}  // namespace hone
