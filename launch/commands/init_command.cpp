#include <iostream>

#include "evaluation/devices.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/import_module.hpp"
#include "launch/files.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

struct init_arguments {
  std::string directory;
  std::string module;
};

// Returns a TOML string. Its escapes are those of JSON.
std::string quoted(const fs::path& path) { return nlohmann::json(path.string()).dump(); }

// Returns a configuration with absolute paths, so that a copy of it works from anywhere.
std::string configuration_text(const fs::path& folder, const std::string& task, bool has_gpu) {
  const fs::path configs = fs::absolute(configs_folder()).lexically_normal();
  return "# A run that learns to write faster variants of " + task +
         ". `hone config` explains every key, and\n"
         "# `hone run FILE --dry-run` checks this file.\n"
         "directory = " +
         quoted(folder / "run") + "\n\n[node]\ndevices = [" + (has_gpu ? "\"cuda\"" : "\"cpu\"") +
         "]  # \"cpu\" or \"cuda\": what judges\n\n[tasks]\nfolder = " + quoted(folder / "tasks") +
         "\n\n[corpus]\nfolder = " + quoted(folder / "corpus") +
         "  # what the policy learns from first\n\n[prompt]\ntemplate = " +
         quoted(configs / "prompts/compact.txt") +
         "\n\n# A network of a million weights, which learns what the corpus holds and mixes it. "
         "For a\n"
         "# model of your own, name its Hugging Face folder and leave random_weights "
         "out.\n[policy]\n"
         "folder = " +
         quoted(configs / "policies/tiny") +
         "\nrandom_weights = true\n\n[generation]\ngroup_size = 16\nslots = 64\n"
         "# Longer documents are not learned to their end. The policy's context holds a prompt "
         "and an answer:\n# 768 tokens here, 4096 in configs/policies/small.\n"
         "max_new_tokens = 384\n\n[sft]\nupdates = 400\n\n# Learning rates of a million weights; "
         "larger policies need lower ones.\n[self_supervised]\nsteps = 2\ngroups = 4\nrate = "
         "3e-4\n\n"
         "[contrastive]\nsteps = 10\nminutes = 5\ngroups = 4\nrate = 1e-3\n\n[comparison]\n"
         "samples = 16\n";
}

// Returns a variant document: the reference as it is. A policy learns it, so it is short.
std::string example_document(const task& t) {
  return "## Performance Analysis\nThis is the reference itself, so it is 1.00 times as fast.\n"
         "## Algorithm Design\nThe operators stay as they are.\n"
         "## Code Implementation\n```python\n" +
         t.reference + (t.reference.ends_with('\n') ? "" : "\n") + "```\n";
}

std::string guide(const task& t) {
  return "# Variants of " + t.name + "\n\nEach file in corpus/" + t.name +
         " is a variant: a document with three sections. The policy learns from\nall of them, and "
         "from the explanations as well as from the code.\n\n"
         "- Performance Analysis: what the variant gains or loses, in a sentence or two.\n"
         "- Algorithm Design: how it works.\n"
         "- Code Implementation: a block marked python with the host program, which calls\n"
         "  launch(\"kernel\", [blocks], [threads], x, y, n) for kernels of a block marked cuda "
         "before it.\n"
         "  A block marked toml has settings, such as fast_math = true.\n\n"
         "One file can stand for many variants by a sweep (`hone corpus expand --help`). The rules "
         "are in\ndoc/variants.md. `hone task show` prints the task, `hone eval` "
         "the speed-ups.\n";
}

int make_folder(const init_arguments& a) {
  const fs::path folder = fs::absolute(a.directory).lexically_normal();
  if (fs::exists(folder) && !fs::is_empty(folder))
    throw std::runtime_error(a.directory + ": is there already, and not empty");
  const bool was_there = fs::exists(folder);
  fs::create_directories(folder / "tasks");
  const task made = [&] {
    try {
      if (!a.module.empty()) return import_module(a.module, folder / "tasks");
    } catch (...) {
      // Nothing is left of a module that is refused, so the next attempt finds no folder.
      fs::remove_all(was_there ? folder / "tasks" : folder);
      throw;
    }
    const fs::path bundled = find_task_file("softmax");
    fs::copy(bundled, folder / "tasks");
    return load_task(folder / "tasks" / bundled.filename());
  }();
  const fs::path documents = folder / "corpus" / made.name;
  fs::create_directories(documents);
  write_text(documents / "the_reference.md", example_document(made));
  write_text(folder / "README.md", guide(made));
  const bool has_gpu = !find_devices().gpus.empty();
  write_text(folder / "run.toml", configuration_text(folder, made.name, has_gpu));
  const std::string shown = a.directory;
  const std::string device = has_gpu ? " --device cuda" : "";
  std::cout << shown << ": task " << made.name << ", one example document, and run.toml\n\n"
            << "look at the task:    hone task show " << shown << "/tasks/" << made.name
            << ".toml\nwrite variants, and judge them:\n"
            << "                     hone eval" << device << " " << shown << "/tasks/" << made.name
            << ".toml " << shown << "/corpus/" << made.name << "/*.md\n"
            << "check the run:       hone run " << shown << "/run.toml --dry-run\n"
            << "learn from them:     hone run " << shown << "/run.toml\n";
  return 0;
}

}  // namespace

void add_init_command(CLI::App& app, command_action& action) {
  auto arguments = std::make_shared<init_arguments>();
  CLI::App* command = app.add_subcommand(
      "init", "Make a folder with a task, an example document and a configuration to start from");
  command->add_option("directory", arguments->directory, "the folder to make")->required();
  command->add_option("module", arguments->module,
                      "a Python file with a PyTorch module, as for `hone task import`; without it, "
                      "the task is softmax");
  command->callback(
      [arguments, &action] { action = [arguments] { return make_folder(*arguments); }; });
}

}  // namespace hone
