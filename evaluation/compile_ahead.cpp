#include "evaluation/compile_ahead.hpp"

#include <utility>

#include "messages/ids.hpp"
#include "tasks/variant_document.hpp"

namespace hone {

record<schema::CompileJob> make_compile_job(const schema::Variant::Reader& variant,
                                            std::string_view device_type) {
  record_builder<schema::CompileJob> job;
  auto header = job->initHeader();
  random_id<measurement_id>().store(header.initMeasurementId());
  header.setVariantId(variant.getId());
  header.setTaskId(variant.getTaskId());
  header.setDeviceType(std::string(device_type));
  header.setAttempt(1);
  job->setSettings(variant.getSettings());
  job->setCuda(variant.getCuda());
  job->setPython(variant.getPython());
  return job.finish();
}

compiled_document compile_document(const std::string& document, const task& t,
                                   const schema::DeviceType::Reader& type,
                                   variant_compiler& compiler) {
  auto variant = make_variant(t.id, document);
  auto job = make_compile_job(*variant, view(type.getName()));
  auto artifact = variant->getProblem().size() > 0
                      ? failed(Outcome::UNPARSABLE, std::string(view(variant->getProblem())))
                      : compiler.compile(*job, t, type);
  return {std::move(variant), std::move(job), std::move(artifact)};
}

compile_ahead::compile_ahead(const schema::DeviceType::Reader& type,
                             const variant_compiler::limits& limits)
    : type_(copy_record<schema::DeviceType>(type)), compiler_(limits) {
  if (type.getKind() != schema::DeviceType::Kind::CPU) thread_ = std::thread([this] { work(); });
}

compile_ahead::~compile_ahead() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    waiting_.clear();
  }
  has_changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::future<compiled_document> compile_ahead::submit(const std::string& document, const task& t) {
  auto compile = [this, document, of = &t] {
    return compile_document(document, *of, *type_, compiler_);
  };
  if (!thread_.joinable()) return std::async(std::launch::deferred, std::move(compile));
  std::packaged_task<compiled_document()> job(std::move(compile));
  auto result = job.get_future();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  has_changed_.notify_one();
  return result;
}

// Runs on the object's own thread. The compilers' processes are started there, and end with it.
void compile_ahead::work() {
  while (true) {
    std::unique_lock lock(mutex_);
    has_changed_.wait(lock, [this] { return is_ending_ || !waiting_.empty(); });
    if (is_ending_) return;
    auto job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job();
  }
}

}  // namespace hone
