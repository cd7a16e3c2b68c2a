#include <toml++/toml.h>

#include <sstream>

#include "launch/configuration_keys.hpp"

namespace hone {
namespace {

// Writes one Markdown table per section: key, default, range, meaning.
class reference_printer {
 public:
  bool enter(const std::string& section, const char* meaning) {
    out_ << "\n## [" << section << "]\n\n" << meaning << "\n";
    begin_table();
    return true;
  }
  void leave() {}
  void begin_table() {
    out_ << "\n| key | default | range | meaning |\n| --- | --- | --- | --- |\n";
  }
  void value(const char* key, const char* meaning, bool field) {
    row(key, field ? "true" : "false", "", meaning);
  }
  void value(const char* key, const char* meaning, const std::string& field) {
    row(key, quote(field), "", meaning);
  }
  void value(const char* key, const char* meaning, const std::vector<std::string>& field) {
    std::string list;
    for (const std::string& one : field) list += (list.empty() ? "" : ", ") + quote(one);
    row(key, "[" + list + "]", "", meaning);
  }
  void value(const char* key, const char* meaning, double field, double least,
             double most = unlimited) {
    row(key, number(field), range(least, most), meaning);
  }
  template <class Integer>
  void value(const char* key, const char* meaning, Integer field, std::int64_t least = 0,
             std::int64_t most = static_cast<std::int64_t>(unlimited)) {
    row(key, std::to_string(field), range(static_cast<double>(least), static_cast<double>(most)),
        meaning);
  }
  void milliseconds(const char* key, const char* meaning, std::uint64_t field, double least,
                    double most) {
    value(key, meaning, static_cast<double>(field) / 1000, least, most);
  }
  template <class Choice, class Parse>
  void choice(const char* key, const char* meaning, Choice field, Parse /*parse*/,
              const char* /*expected*/) {
    row(key, quote(std::string(name_of(field))), "", meaning);
  }
  std::string text() const { return out_.str(); }

 private:
  static constexpr double unlimited = 1e18;

  void row(const char* key, const std::string& value, const std::string& range,
           const char* meaning) {
    out_ << "| `" << key << "` | `" << value << "` | " << range << " | " << meaning << " |\n";
  }
  static std::string quote(const std::string& text) {
    std::ostringstream out;
    out << toml::value<std::string>(text);
    return out.str();
  }
  static std::string number(double value) {
    std::ostringstream out;
    out << value;
    return out.str();
  }
  static std::string range(double least, double most) {
    return most < unlimited ? number(least) + " to " + number(most) : "from " + number(least);
  }

  std::ostringstream out_;
};

}  // namespace

std::string configuration_reference() {
  configuration defaults;
  reference_printer printer;
  printer.begin_table();
  visit_keys(printer, defaults);
  printer.enter("simulated.NAME", "A simulated device, `simulated:NAME` in node.devices.");
  simulated_device_options simulated;
  visit_simulated_keys(printer, simulated);
  printer.enter("endpoint.NAME",
                "A server that writes, with policy.kind = `endpoint`; several may be there. Code: "
                "policy/endpoint/.");
  endpoint_options endpoint;
  visit_endpoint_keys(printer, endpoint);
  return "# Configuration\n\n"
         "A run is described by one TOML file; `hone run FILE --set section.key=value` overrides\n"
         "single keys. Paths are relative to the file, and in `--set` to the current folder.\n"
         "`hone run FILE --dry-run` checks a file and prints the result with all defaults. This\n"
         "page is generated: `hone config --markdown`.\n" +
         printer.text();
}

}  // namespace hone
