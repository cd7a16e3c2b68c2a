#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "launch/commands.hpp"

namespace {

int run(int argc, char** argv) {
  CLI::App app("Hone: a language model learns to write faster CUDA kernels.", "hone");
  app.require_subcommand(1);
  hone::command_action action;
  hone::add_run_command(app, action);
  hone::add_eval_command(app, action);
  hone::add_task_commands(app, action);
  hone::add_corpus_commands(app, action);
  hone::add_pool_commands(app, action);
  hone::add_node_commands(app, action);
  hone::add_devices_command(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;  // help is no error
  }
  try {
    return action();
  } catch (const std::exception& e) {
    std::cerr << "hone: " << e.what() << "\n";
    return 2;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int code = run(argc, argv);
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);  // threads of an actor system may still run: see start_actor_system()
}
