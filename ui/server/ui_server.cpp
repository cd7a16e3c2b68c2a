#include "ui/server/ui_server.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "embedded/ui_script.hpp"
#include "embedded/ui_style.hpp"
#include "messages/ids.hpp"
#include "network/http/bearer_tokens.hpp"
#include "network/http/http_server.hpp"
#include "network/identity.hpp"
#include "results/printing.hpp"
#include "ui/pages/page.hpp"
#include "ui/parts/run_parts.hpp"
#include "ui/server/snapshot.hpp"

namespace hone {
namespace {

using html::element;
using nlohmann::ordered_json;

constexpr std::size_t max_waiting = 64;  // requests
constexpr auto first_snapshot_limit = std::chrono::milliseconds(400);
constexpr const char* policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types hone";

http_response answer(unsigned status, const char* type, std::string body) {
  return {status,
          std::move(body),
          {{"Content-Type", type},
           {"Content-Security-Policy", policy},
           {"X-Content-Type-Options", "nosniff"},
           {"Referrer-Policy", "no-referrer"},
           {"Cross-Origin-Opener-Policy", "same-origin"},
           {"Cross-Origin-Resource-Policy", "same-origin"},
           {"Cache-Control", "no-store"}}};
}

// True if a request calls the server by a loopback name and its port, so that no name of another
// site has led here. A Unix socket has the port 0: any may be forwarded to it.
bool calls_loopback(const std::string& host, std::uint16_t port) {
  try {
    const bool has_port = host.find(':') != std::string::npos || port != 0;
    const network_address called = parse_address(has_port ? host : host + ":80");
    return is_loopback(called) && (port == 0 || called.port == port);
  } catch (const network_error&) {
    return false;
  }
}

std::string field_of(const http_request& request, const std::string& name) {
  const auto found = request.fields.find(name);
  return found == request.fields.end() ? "" : found->second;
}

// Browsers send the cookies of all ports of a host to each of them. Returns the name of the cookie
// for the port that a request calls.
std::string cookie_name(const std::string& host) {
  const std::size_t colon = host.rfind(':');
  return "hone-" + (colon == std::string::npos ? "80" : host.substr(colon + 1));
}

std::string cookie_of(const http_request& request, const std::string& name) {
  const std::string all = field_of(request, "cookie");
  const std::string begin = name + "=";
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find(';', at), all.size());
    const std::string one = all.substr(at, end - at);
    if (one.starts_with(begin)) return one.substr(begin.size());
    at = all.find_first_not_of("; ", end);
  }
  return "";
}

bool has_control_characters(const http_request& request) {
  const auto has_any = [](const std::string& text) {
    return std::any_of(text.begin(), text.end(),
                       [](unsigned char c) { return c < ' ' || c == 127; });
  };
  return has_any(request.path) ||
         std::any_of(request.query.begin(), request.query.end(),
                     [&](const auto& one) { return has_any(one.first) || has_any(one.second); });
}

page_request to_page_request(const http_request& request) {
  page_request made;
  made.query = request.query;
  made.query.erase("token");
  std::vector<std::string> parts;
  std::size_t at = 1;
  while (at <= request.path.size()) {
    const std::size_t end = std::min(request.path.find('/', at), request.path.size());
    if (end > at) parts.push_back(request.path.substr(at, end - at));
    at = end + 1;
  }
  if (parts.empty()) return made;
  made.name = parts.front();
  made.segments.assign(parts.begin() + 1, parts.end());
  return made;
}

std::string text_of(snapshot_keeper::run_state state) {
  switch (state) {
    case snapshot_keeper::run_state::live:
      return "This run is going on.";
    case snapshot_keeper::run_state::finished:
      return "This run is finished.";
    case snapshot_keeper::run_state::stopped:
      return "This run was stopped or killed before its end.";
  }
  return "";
}

const std::vector<std::pair<std::string, html::url>>& navigation() {
  static const std::vector<std::pair<std::string, html::url>> links = {
      {"Run", html::url("/")},
      {"Tasks", html::url("/tasks")},
      {"Failures", html::url("/failures")},
      {"Cluster", html::url("/cluster")}};
  return links;
}

std::string document(const std::string& run, const page& made, const std::string& state,
                     const std::string& stamp) {
  element list("ul", {}, {});
  for (const auto& [name, target] : navigation()) {
    html::attributes properties = {html::href(target)};
    if (name == made.title) properties.push_back({"aria-current", "page"});
    list.add({"li", {}, {element("a", std::move(properties), {html::text(name)})}});
  }
  element search(
      "form", {{"role", "search"}, html::action(html::url("/find"))},
      {element("label", {{"for", "find"}}, {html::text("Find a task or a variant ")}),
       element("input", {{"id", "find"}, {"name", "q"}, {"type", "search"}, {"maxlength", "200"}}),
       element("button", {{"type", "submit"}}, {html::text("Find")})});
  element header("header", {},
                 {element("nav", {{"aria-label", "Pages"}}, {std::move(list)}), std::move(search)});
  element content("main", {{"id", "content"}, {"tabindex", "-1"}},
                  {element("h1", {}, {html::text(made.title)}), made.body});
  element footer(
      "footer", {},
      {element("p", {{"class", "note"}, {"id", "live"}, {"aria-live", "polite"}, {"title", stamp}},
               {html::text(state)})});
  html::page_head head{"Hone: " + run + ": " + made.title, html::url("/style.css"), "",
                       html::url("/script.js")};
  return html::page(head, {std::move(header), std::move(content), std::move(footer)});
}

}  // namespace

struct ui_server::state {
  options chosen;
  std::string run_name;
  snapshot_keeper keeper;
  std::mutex lock;
  std::condition_variable has_work;
  std::deque<std::function<void()>> waiting;
  bool stops = false;
  std::optional<http_server> server;
  std::thread worker;

  explicit state(options given)
      : chosen(std::move(given)),
        run_name(std::filesystem::weakly_canonical(chosen.run).filename().string()),
        keeper(chosen.run) {
    if (chosen.socket.empty() && !is_loopback(chosen.listen))
      throw network_error(to_string(chosen.listen) +
                          " is not an address of this machine alone: pages are served on loopback "
                          "addresses; to read them elsewhere, forward the port with ssh -L");
    if (chosen.token.empty()) chosen.token = make_token();
    worker = std::thread([this] { work(); });
    try {
      http_server::options limits;
      limits.listen = chosen.listen;
      limits.socket = chosen.socket;
      limits.max_body = 0;
      limits.max_connections = 256;
      limits.idle_limit = std::chrono::seconds(30);
      server.emplace(std::move(limits), [this](http_request request, http_server::reply reply) {
        take(std::move(request), std::move(reply));
      });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~state() {
    server.reset();
    stop();
  }

  void stop() {
    {
      const std::lock_guard hold(lock);
      stops = true;
    }
    has_work.notify_all();
    worker.join();
  }

  void work() {
    while (true) {
      std::function<void()> next;
      {
        std::unique_lock hold(lock);
        has_work.wait(hold, [this] { return stops || !waiting.empty(); });
        if (stops) return;
        next = std::move(waiting.front());
        waiting.pop_front();
      }
      next();
    }
  }

  // Checks a request on the server's threads, and queues it.
  void take(http_request request, http_server::reply reply) {
    if (auto refused = refuse(request)) return reply(std::move(*refused));
    if (request.path == "/style.css")
      return reply(answer(200, "text/css; charset=utf-8", std::string(embedded::ui_style)));
    if (request.path == "/script.js")
      return reply(answer(200, "text/javascript; charset=utf-8", std::string(embedded::ui_script)));
    const std::lock_guard hold(lock);
    if (waiting.size() >= max_waiting) {
      http_response busy = answer(503, "text/plain; charset=utf-8", "too many requests wait\n");
      busy.headers.emplace_back("Retry-After", "1");
      return reply(std::move(busy));
    }
    waiting.emplace_back([this, request = std::move(request), reply = std::move(reply)] {
      reply(respond(request));
    });
    has_work.notify_one();
  }

  std::optional<http_response> refuse(const http_request& request) const {
    const auto text = [](unsigned status, std::string said) {
      return answer(status, "text/plain; charset=utf-8", std::move(said) + "\n");
    };
    if (request.method != "GET" && request.method != "HEAD") {
      http_response refused = text(405, "pages are read only");
      refused.headers.emplace_back("Allow", "GET, HEAD");
      return refused;
    }
    const std::uint16_t port = chosen.socket.empty() ? server->address().port : 0;
    if (has_control_characters(request)) return text(400, "the address has control characters");
    if (!calls_loopback(request.host, port))
      return text(421, "this server is called by a loopback name and its port");
    const std::string origin = field_of(request, "origin");
    const std::string site = field_of(request, "sec-fetch-site");
    if ((!origin.empty() && origin != "http://" + request.host) ||
        (!site.empty() && site != "same-origin" && site != "none"))
      return text(403, "requests of other sites are refused");
    const auto given = request.query.find("token");
    if (given != request.query.end() && is_same_secret(given->second, chosen.token)) {
      // The token does not stay in the address bar and in the history.
      http_response moved = text(303, "the link is right");
      moved.headers.emplace_back("Location", "/");
      moved.headers.emplace_back("Set-Cookie", cookie_name(request.host) + "=" + chosen.token +
                                                   "; HttpOnly; SameSite=Strict; Path=/");
      return moved;
    }
    if (!is_same_secret(cookie_of(request, cookie_name(request.host)), chosen.token) &&
        !is_same_secret(request.token, chosen.token))
      return text(401, "open the link that `hone ui` has printed: it has the token");
    return std::nullopt;
  }

  http_response respond(const http_request& request) {
    const page_request wanted = to_page_request(request);
    const bool is_api = wanted.name == "api";
    const auto problem = [&](unsigned status, const std::string& said) {
      if (is_api)
        return answer(status, "application/json",
                      one_line(ordered_json{{"error", {{"message", said}}}}) + "\n");
      return answer(
          status, "text/html; charset=utf-8",
          document(run_name, {"Not shown", parts::paragraph(said)}, text_of(keeper.state()), ""));
    };
    try {
      const auto now = keeper.wait(first_snapshot_limit);
      if (!now)
        return problem(503, keeper.problem().empty()
                                ? "The pool is being read. This page shows it once it has been."
                                : "The pool cannot be read: " + keeper.problem());
      if (is_api)
        return answer(200, "application/json",
                      one_line(api_answer(*now, wanted, text_of(keeper.state()))) + "\n");
      std::string target;
      if (wanted.name == "compare")
        target =
            html::url("/diff").segment(wanted.value("before")).segment(wanted.value("after")).str();
      const page made = wanted.name == "compare" ? page{}
                        : wanted.name == "find"  ? find_page(*now, wanted.value("q"), target)
                                                 : make_page(*now, wanted);
      if (!target.empty()) {
        http_response moved = answer(303, "text/plain; charset=utf-8", "found\n");
        moved.headers.emplace_back("Location", target);
        return moved;
      }
      return answer(200, "text/html; charset=utf-8",
                    document(run_name, made, text_of(keeper.state()), now->stamp));
    } catch (const not_found& e) {
      return problem(404, e.what());
    } catch (const std::exception& e) {
      return problem(500, e.what());
    }
  }

  page make_page(const snapshot& now, const page_request& wanted) const {
    using maker = page (*)(const snapshot&, const page_request&);
    static const std::map<std::string, maker> pages = {
        {"tasks", tasks_page}, {"task", task_page}, {"variant", variant_page},
        {"group", group_page}, {"diff", diff_page}, {"failures", failures_page}};
    if (wanted.name.empty()) return run_page(now, wanted, text_of(keeper.state()));
    if (wanted.name == "cluster") return cluster_page(keeper.directory(), wanted);
    const auto found = pages.find(wanted.name);
    if (found == pages.end()) throw not_found("there is no page /" + wanted.name);
    return found->second(now, wanted);
  }
};

ui_server::ui_server(options chosen) : state_(std::make_unique<state>(std::move(chosen))) {}
ui_server::~ui_server() = default;

std::string ui_server::link() const {
  const std::string host =
      state_->chosen.socket.empty() ? to_string(state_->server->address()) : "localhost";
  return "http://" + host + "/?token=" + state_->chosen.token;
}

}  // namespace hone
