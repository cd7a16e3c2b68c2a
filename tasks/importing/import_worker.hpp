#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "process/child_process.hpp"
#include "process/line_connection.hpp"

namespace hone {

// The result of importing a module's file.
struct imported_module {
  std::string error;                   // empty: it was imported; else why not, in a sentence
  std::string text;                    // of the task file
  std::string data;                    // of the safetensors file next to it; empty: none is needed
  std::vector<std::string> operators;  // that the reference calls, "aten::relu"
  std::vector<std::string> notes;      // what was left out or is not as in the file
  std::string checked;                 // the sizes at which reference and module were compared
};

// A Python process that imports modules, each in a separate fork with limits
// (tasks/importing/serve.py says how the two talk). Started at the first import, and again when it
// was lost. Belongs to the thread that first imports with it.
class import_worker {
 public:
  struct settings {
    std::filesystem::path python;
    std::filesystem::path program;  // serve.py
    std::string folder;             // where modules run
    // Folders that modules may read besides it and what Python needs, such as their own. Limits
    // nothing on kernels without Landlock.
    std::vector<std::filesystem::path> readable{};
    int seconds = 0;                // of processor time for one file
    std::uint64_t bytes = 0;        // of address space beyond what the process has loaded
    bool varies_constants = false;  // parameters that a file sets to one value are drawn near it
    bool is_relaxed = false;        // tasks have precision = "relaxed", which admits TF32
    bool fixes_sizes = false;       // tasks have the file's sizes and no others
    // Type to which floating-point parameters and inputs are cast: "bfloat16", "float16", or "" for
    // the file's own types.
    std::string dtype;
  };
  explicit import_worker(settings chosen) : settings_(std::move(chosen)) {}

  // The result of translating a file with a ModelNew.
  struct translated_program {
    std::string error;               // empty: it was translated; else why not, in a sentence
    bool is_unreadable = false;      // it is not Python, or has no ModelNew
    std::string document;            // with the text of `forward`, and of `prepare` if it needs one
    std::vector<std::string> notes;  // what the document does otherwise than the file
  };
  // Translates a file with a ModelNew, which consists of PyTorch's operators, into a document for a
  // task. `module`: the source of the task's module. `parameters`: the names of the task's
  // parameters. `name`: what the document calls the file. As import() otherwise.
  translated_program translate(const std::filesystem::path& file, const std::string& module,
                               const std::vector<std::string>& parameters, const std::string& name);

  // Whatever the module does, this comes back soon after its time is up. Throws std::system_error
  // where no process can be started.
  imported_module import(const std::filesystem::path& file, const std::string& task_name);

 private:
  struct answer;
  void start();
  void send(const nlohmann::json& message);
  // Sends a request about a file and returns the answer, with an error if there is none.
  answer ask(const std::filesystem::path& file, nlohmann::json request);
  // Ends the process, which may be in any state, and returns the reason.
  answer fail(const std::string& why);

  settings settings_;
  std::uint64_t loaded_bytes_ = 0;  // address space of the process when it was ready
  child_process process_;
  line_connection connection_;
};

}  // namespace hone
