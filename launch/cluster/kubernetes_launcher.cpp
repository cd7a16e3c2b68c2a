#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "launch/cluster/detached_process.hpp"
#include "launch/cluster/launchers.hpp"
#include "launch/cluster/pool_folder.hpp"
#include "launch/cluster/programs.hpp"
#include "launch/cluster/ssh_scripts.hpp"

namespace hone {
namespace {

using json = nlohmann::ordered_json;

constexpr std::chrono::seconds command_limit{60};
constexpr std::chrono::seconds pods_pause{1};
constexpr std::chrono::seconds removal_limit{60};  // beyond the grace
constexpr const char* identity_folder = "/etc/hone/identity";
constexpr const char* pool_label = "hone-pool";
constexpr const char* run_annotation = "hone-run";

// Returns a word of a container's command in which Kubernetes replaces no $(NAME).
std::string literal(const std::string& word) {
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '$' && i + 1 < word.size() && word[i + 1] == '(') text += '$';
    text += word[i];
  }
  return text;
}

// Returns the value at a path of keys, or null if a key is missing.
const json& value_at(const json& from, std::initializer_list<const char*> path) {
  static const json nothing;
  const json* at = &from;
  for (const char* key : path) {
    const auto found = at->is_object() ? at->find(key) : at->end();
    if (found == at->end()) return nothing;
    at = &*found;
  }
  return *at;
}

std::string text_at(const json& from, std::initializer_list<const char*> path) {
  const json& value = value_at(from, path);
  return value.is_string() ? value.get<std::string>() : "";
}

// No record per node is kept: Kubernetes knows the pods.
class kubernetes_launcher : public launcher {
 public:
  kubernetes_launcher(const node_pool& pool, const launch_context& context)
      : pool_(pool), context_(context), folder_(context.run, pool.name) {}

  void scale(std::int64_t count) override {
    folder_.set_count(count);
    const bool exists = is_there("statefulset", pool_.name);
    if (!context_.identity.empty()) (void)is_there("secret", secret_name());
    if (count == 0) {
      run(delete_arguments(), "");
    } else if (exists) {
      // The identity may have been made anew; pods see the new one where it is mounted.
      if (!context_.identity.empty())
        run({"apply", "-f", "-"}, secret(read_own_identity()).dump(2));
      run(scale_arguments(count), "");
    } else {
      run({"apply", "-f", "-"}, manifests(count, read_own_identity()).dump(2));
    }
    const auto is_scaled = [this, count] {
      const auto pods = list_pods();
      return std::all_of(pods.begin(), pods.end(),
                         [count](const auto& pod) { return pod.first < count; });
    };
    if (!wait_until(is_scaled, context_.grace + removal_limit, pods_pause))
      throw std::runtime_error("the pods of pool " + pool_.name + " do not end");
    if (count == 0) folder_.remove();
  }

  std::vector<launched_node> list() override {
    std::vector<launched_node> nodes;
    const std::int64_t count = folder_.count();
    if (count == 0) return nodes;
    const auto pods = list_pods();
    for (std::int64_t node = 0; node < count; ++node) {
      const auto pod = pods.find(node);
      if (pod != pods.end()) {
        nodes.push_back(describe(node, pod->second));
      } else {
        nodes.push_back({folder_.node_name(node), "no pod", node_phase::waiting,
                         "Kubernetes has not made the pod yet"});
      }
    }
    return nodes;
  }

  std::string plan(std::int64_t count) const override {
    std::map<std::string, std::string> identity;
    if (!context_.identity.empty()) {
      for (const char* name : {"ca.pem", "certificate.pem", "key.pem"})
        identity[name] = "(contents of " + (context_.identity / name).string() + ")";
    }
    return shell_line(with_namespace({"apply", "-f", "-"})) + "\n" +
           manifests(count, identity).dump(2) + "\n";
  }

 private:
  std::vector<std::string> with_namespace(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {"kubectl"};
    if (!pool_.kubernetes.name_space.empty())
      command.insert(command.end(), {"--namespace", pool_.kubernetes.name_space});
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
  }

  std::string run(const std::vector<std::string>& arguments, const std::string& input) const {
    return run_program(with_namespace(arguments), input, command_limit);
  }

  std::vector<std::string> scale_arguments(std::int64_t count) const {
    return {"scale", "statefulset", pool_.name, "--replicas=" + std::to_string(count)};
  }
  std::vector<std::string> delete_arguments() const {
    return {"delete", "statefulset/" + pool_.name, "secret/" + secret_name(), "--ignore-not-found",
            "--wait=false"};
  }

  std::string secret_name() const { return pool_.name + "-identity"; }

  std::map<std::string, std::string> read_own_identity() const {
    if (context_.identity.empty()) return {};
    return read_identity(context_.identity);
  }

  // Returns true if the object exists. Throws if it is not this run's.
  bool is_there(const std::string& kind, const std::string& name) const {
    const std::string text = run({"get", kind, name, "--ignore-not-found", "-o", "json"}, "");
    if (text.find_first_not_of(" \n") == std::string::npos) return false;
    const std::string owner =
        text_at(json::parse(text), {"metadata", "annotations", run_annotation});
    if (owner != context_.run.string())
      throw std::runtime_error("there is a " + kind + " " + name + " that " +
                               (owner.empty() ? "is not Hone's" : "belongs to the run " + owner) +
                               "; choose another name for the pool, or another namespace");
    return true;
  }

  std::map<std::int64_t, json> list_pods() const {
    const json list =
        json::parse(run({"get", "pods", "-l", pool_label + ("=" + pool_.name), "-o", "json"}, ""));
    std::map<std::int64_t, json> pods;
    for (const json& pod : list.at("items")) {
      const std::string name = text_at(pod, {"metadata", "name"});
      const std::string number = name.substr(std::min(name.size(), pool_.name.size() + 1));
      if (!number.empty() && number.size() < 10 &&
          number.find_first_not_of("0123456789") == std::string::npos)
        pods[std::stoll(number)] = pod;
    }
    return pods;
  }

  launched_node describe(std::int64_t node, const json& pod) const {
    launched_node one;
    one.name = folder_.node_name(node);
    const std::string machine = text_at(pod, {"spec", "nodeName"});
    one.where = machine.empty() ? "pod" : "pod on " + machine;
    const std::string phase = text_at(pod, {"status", "phase"});
    const json& containers = value_at(pod, {"status", "containerStatuses"});
    const json container = containers.empty() ? json() : containers.front();
    const json& waiting = value_at(container, {"state", "waiting"});
    const bool has_ended_before = value_at(container, {"lastState", "terminated"}).is_object();
    const bool is_over = value_at(container, {"state", "terminated"}).is_object();
    if (is_over || phase == "Failed" || phase == "Succeeded" ||
        (waiting.is_object() && has_ended_before)) {
      one.phase = node_phase::ended;
      one.detail = text_at(waiting, {"reason"}) + "\n" + last_log(one.name, !is_over);
    } else if (phase == "Running" && !waiting.is_object()) {
      one.phase = node_phase::running;
      const json& restarts = value_at(container, {"restartCount"});
      if (restarts.is_number() && restarts.get<int>() > 0)
        one.detail = "started again " + std::to_string(restarts.get<int>()) + " times";
    } else {
      one.detail = text_at(waiting, {"reason"}) + " " + text_at(waiting, {"message"});
      for (const json& condition : value_at(pod, {"status", "conditions"})) {
        if (text_at(condition, {"status"}) == "False" && waiting.is_null())
          one.detail = text_at(condition, {"reason"}) + " " + text_at(condition, {"message"});
      }
    }
    return one;
  }

  std::string last_log(const std::string& pod, bool previous) const {
    std::vector<std::string> arguments = {"logs", pod, "--tail=10"};
    if (previous) arguments.emplace_back("--previous");
    try {
      return run(arguments, "");
    } catch (const std::runtime_error& e) {
      return e.what();
    }
  }

  json container(bool has_identity) const {
    const std::string own_name = "$(POD_NAME)";
    json command = json::array();
    for (const std::string& word :
         node_command(pool_, context_, own_name, has_identity ? identity_folder : ""))
      command.push_back(word == own_name ? word : literal(word));
    json made = {
        {"name", "node"},
        {"image", pool_.kubernetes.image},
        {"command", command},
        {"env", json::array({{{"name", "POD_NAME"},
                              {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.name"}}}}}}})}};
    if (pool_.kubernetes.gpus > 0)
      made["resources"] = {{"limits", {{"nvidia.com/gpu", pool_.kubernetes.gpus}}}};
    if (has_identity)
      made["volumeMounts"] =
          json::array({{{"name", "identity"}, {"mountPath", identity_folder}, {"readOnly", true}}});
    return made;
  }

  json labels() const { return {{"app", "hone"}, {pool_label, pool_.name}}; }

  json metadata(const std::string& name) const {
    return {{"name", name},
            {"labels", labels()},
            {"annotations", {{run_annotation, context_.run.string()}}}};
  }

  json secret(const std::map<std::string, std::string>& identity) const {
    return {{"apiVersion", "v1"},
            {"kind", "Secret"},
            {"metadata", metadata(secret_name())},
            {"stringData", identity}};
  }

  json stateful_set(std::int64_t count, bool has_identity) const {
    json pod = {{"terminationGracePeriodSeconds", (context_.grace.count() + 999) / 1000}};
    if (!pool_.kubernetes.service_account.empty())
      pod["serviceAccountName"] = pool_.kubernetes.service_account;
    if (!pool_.kubernetes.selector.empty()) pod["nodeSelector"] = pool_.kubernetes.selector;
    pod["containers"] = json::array({container(has_identity)});
    if (has_identity)
      pod["volumes"] =
          json::array({{{"name", "identity"},
                        {"secret", {{"secretName", secret_name()}, {"defaultMode", 0400}}}}});
    return {{"apiVersion", "apps/v1"},
            {"kind", "StatefulSet"},
            {"metadata", metadata(pool_.name)},
            {"spec",
             {{"serviceName", pool_.name},
              {"replicas", count},
              {"podManagementPolicy", "Parallel"},
              {"selector", {{"matchLabels", labels()}}},
              {"template", {{"metadata", {{"labels", labels()}}}, {"spec", pod}}}}}};
  }

  json manifests(std::int64_t count, const std::map<std::string, std::string>& identity) const {
    json items = json::array();
    if (!identity.empty()) items.push_back(secret(identity));
    items.push_back(stateful_set(count, !identity.empty()));
    return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}};
  }

  node_pool pool_;
  launch_context context_;
  pool_folder folder_;
};

}  // namespace

std::unique_ptr<launcher> make_kubernetes_launcher(const node_pool& pool,
                                                   const launch_context& context) {
  return std::make_unique<kubernetes_launcher>(pool, context);
}

}  // namespace hone
