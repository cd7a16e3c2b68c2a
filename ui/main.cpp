#include <unistd.h>

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>

#include "network/address.hpp"
#include "ui/server/ui_server.hpp"

constexpr int refused = 2;  // the exit code of all commands for errors of their user

// hone-ui: the program behind `hone ui`. It needs no LibTorch, so that it starts at once.
int main(int count, char** words) {
  CLI::App app("Show a run in a browser: curves, tasks, variants, their code and their lineage");
  app.name("hone ui");
  hone::ui_server::options options;
  std::string listen = "127.0.0.1:0";
  app.add_option("run,--dir", options.run, "the run's directory, live or at rest; required");
  app.add_option("--listen", listen, "HOST:PORT on this machine alone; port 0: any free one")
      ->capture_default_str();
  try {
    app.parse(count, words);
    if (options.run.empty()) throw CLI::RequiredError("the run's directory");
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help is not an error
    std::cerr << "hone ui: " << e.what() << "\nhone ui --help tells more\n";
    return refused;
  }
  // A run on this machine comes first.
  constexpr int behind_others = 10;
  (void)!nice(behind_others);
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before any thread starts
  std::signal(SIGPIPE, SIG_IGN);
  try {
    options.listen = hone::parse_address(listen, true);
    const hone::ui_server server(options);
    std::cout << server.link() << std::endl;
    int received = 0;
    sigwait(&ends, &received);
    return EXIT_SUCCESS;
  } catch (const std::exception& e) {
    std::cerr << "hone ui: " << e.what() << "\n";
    return refused;
  }
}
