#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <thread>

#include "evaluation/variant_compiler.hpp"
#include "messages/record.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "tasks/task_file.hpp"

namespace hone {

// A variant document, parsed, with what its compilation has made or the reason why it made nothing.
struct compiled_document {
  record<schema::Variant> variant;
  record<schema::CompileJob> job;
  program_result<record<schema::Artifact>> artifact;
};

// Makes the compile job of a variant's first attempt on a device type, for use without a pool. Ids
// that only the pool needs are left out.
record<schema::CompileJob> make_compile_job(const schema::Variant::Reader& variant,
                                            std::string_view device_type);

// Compiles a document for a device type. Throws std::runtime_error if the machine cannot compile.
compiled_document compile_document(const std::string& document, const task& t,
                                   const schema::DeviceType::Reader& type,
                                   variant_compiler& compiler);

// Compiles documents for one device while it starts or judges earlier ones, in the order of their
// submission, on a separate thread. A CPU device has no such thread, because compilation would
// take time from the measurements: a document is compiled when its result is asked for. All
// functions must be called on one thread.
class compile_ahead {
 public:
  explicit compile_ahead(const schema::DeviceType::Reader& type,
                         const variant_compiler::limits& limits = {});
  // Drops the documents that have not been compiled.
  ~compile_ahead();
  compile_ahead(const compile_ahead&) = delete;
  compile_ahead& operator=(const compile_ahead&) = delete;

  // The future throws what compile_document() throws. It must be asked before this object ends; the
  // task must live until then.
  std::future<compiled_document> submit(const std::string& document, const task& t);

 private:
  void work();

  record<schema::DeviceType> type_;
  variant_compiler compiler_;
  std::mutex mutex_;
  std::condition_variable has_changed_;
  std::deque<std::packaged_task<compiled_document()>> waiting_;
  bool is_ending_ = false;
  std::thread thread_;  // none for a CPU
};

}  // namespace hone
