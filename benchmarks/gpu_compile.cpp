#include "benchmarks/gpu_modes.hpp"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "evaluation/variant_compiler.hpp"
#include "tasks/task_file.hpp"
#include "tasks/variant_document.hpp"

namespace hone::benchmark {

int compile(int count, char** files) {
  const task t = load_task(files[0]);
  variant_compiler compiler;
  record_builder<schema::DeviceType> type;
  type->setName("sm_90a");
  type->setKind(schema::DeviceType::Kind::CUDA);
  type->setTarget("sm_90a");
  const auto hopper = type.finish();
  int refused = 0;
  for (int i = 1; i < count; ++i) {
    std::ifstream in(files[i]);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    if (text.starts_with("task: ")) text.erase(0, text.find('\n') + 1);
    const auto variant = make_variant(t.id, text);
    std::string problem = variant->getProblem().cStr();
    if (problem.empty()) {
      const auto compiled = compiler.compile(*make_compile_job(*variant, "sm_90a"), t, *hopper);
      if (!compiled)
        problem = std::string(name_of(compiled.error().outcome)) + ": " + compiled.error().message;
    }
    refused += problem.empty() ? 0 : 1;
    std::printf("%s: %s\n", files[i], problem.empty() ? "compiles" : problem.c_str());
  }
  return refused > 0 ? 1 : 0;
}

}  // namespace hone::benchmark
