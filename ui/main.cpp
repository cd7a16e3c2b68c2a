#include <unistd.h>

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>

#include "network/address.hpp"
#include "ui/server/page_tunnel.hpp"
#include "ui/server/ui_server.hpp"

constexpr int refused = 2;  // the exit code of all commands for errors of their user

// Prints the link and serves until a signal of `ends`.
template <class Server>
int show(const Server& server, const sigset_t& ends) {
  std::cout << server.link() << std::endl;
  int received = 0;
  sigwait(&ends, &received);
  return EXIT_SUCCESS;
}

// hone-ui: the program behind `hone ui`. It needs no LibTorch, so that it starts at once.
int main(int count, char** words) {
  CLI::App app("Show a run in a browser: curves, tasks, variants, their code and their lineage");
  app.name("hone ui");
  std::string run;
  std::string connect;
  std::string identity;
  std::string listen = "127.0.0.1:0";
  app.add_option("run,--dir", run, "the run's directory, live or at rest");
  app.add_option(
      "--connect", connect,
      "HOST:PORT of a live run's head, instead of its directory: the pages come from it");
  app.add_option("--identity", identity, "with --connect: the folder of a node's identity");
  app.add_option("--listen", listen,
                 "HOST:PORT on this machine alone (port 0: any free one), or unix:PATH")
      ->capture_default_str();
  try {
    app.parse(count, words);
    if (run.empty() == connect.empty())
      throw CLI::ValidationError("expected either a run's directory or --connect HOST:PORT");
    if (connect.empty() && !identity.empty())
      throw CLI::ValidationError("--identity is for --connect");
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
    constexpr std::string_view unix_prefix = "unix:";
    hone::network_address address{"127.0.0.1", 0};
    std::filesystem::path socket;
    if (listen.starts_with(unix_prefix)) {
      socket = listen.substr(unix_prefix.size());
    } else {
      address = hone::parse_address(listen, true);
    }
    if (!connect.empty())
      return show(hone::page_tunnel({hone::parse_address(connect), identity, address, socket}),
                  ends);
    return show(hone::ui_server({run, address, socket, ""}), ends);
  } catch (const std::exception& e) {
    std::cerr << "hone ui: " << e.what() << "\n";
    return refused;
  }
}
