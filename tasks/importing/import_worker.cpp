#include "tasks/importing/import_worker.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

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
  connection_ = std::move(ours);
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
  received_.clear();
  send(nlohmann::json{{"filter", hexadecimal(reader_filter())}}.dump());
}

void import_worker::send(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n =
        ::send(connection_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) throw std::runtime_error("the importing process has gone");
    sent += static_cast<std::size_t>(n);
  }
}

void import_worker::receive(steady::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady::now()).count();
  pollfd waiting{connection_.get(), POLLIN, 0};
  if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0)
    throw std::runtime_error("the importing process does not answer");
  char buffer[64U << 10U];
  const ssize_t n = read(connection_.get(), buffer, sizeof buffer);
  if (n <= 0)
    throw std::runtime_error("the importing process ended" +
                             last_words(settings_.folder + "/errors"));
  received_.append(buffer, static_cast<std::size_t>(n));
  if (received_.size() > max_answer_bytes)
    throw std::runtime_error("it answers with more than a task may be");
}

std::string import_worker::read_line(steady::time_point deadline) {
  std::size_t end = 0;
  while ((end = received_.find('\n')) == std::string::npos) receive(deadline);
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

std::string import_worker::read_bytes(std::size_t count, steady::time_point deadline) {
  if (count > max_answer_bytes) throw std::runtime_error("it answers with more than a task may be");
  while (received_.size() < count) receive(deadline);
  std::string bytes = received_.substr(0, count);
  received_.erase(0, count);
  return bytes;
}

imported_module import_worker::import(const std::filesystem::path& file,
                                      const std::string& task_name) {
  const bool is_fresh = !process_.running();
  if (is_fresh) start();
  const auto deadline = steady::now() + std::chrono::seconds(5 * settings_.seconds) + grace +
                        (is_fresh ? start_limit : std::chrono::seconds(0));
  try {
    send(nlohmann::json{{"path", std::filesystem::absolute(file).string()},
                        {"name", task_name},
                        {"seconds", settings_.seconds},
                        {"bytes", settings_.bytes},
                        {"varies_constants", settings_.varies_constants},
                        {"is_relaxed", settings_.is_relaxed},
                        {"dtype", settings_.dtype}}
             .dump());
    const auto answer = nlohmann::json::parse(read_line(deadline));
    imported_module result = from_answer(answer);
    result.data = read_bytes(answer.value("data_bytes", std::size_t{0}), deadline);
    return result;
  } catch (const std::runtime_error& e) {
    process_.kill();
    imported_module failed;
    failed.error = e.what();
    return failed;
  } catch (const nlohmann::json::exception& e) {
    process_.kill();
    imported_module failed;
    failed.error = std::string("the importing process answers nonsense: ") + e.what();
    return failed;
  }
}

}  // namespace hone
