#pragma once

#include <algorithm>
#include <cstdint>

#include "launch/configuration.hpp"
#include "launch/learning_keys.hpp"
#include "launch/policy_keys.hpp"
#include "storage/exemplar_choice.hpp"

namespace hone {

// Names every configuration key once, with the sentence that explains it, the field that it sets
// and the range of its values. Reading, printing and the reference visit this list. A visitor has
//   enter(section, meaning)                            returns false to skip the section
//   leave()
//   value(key, meaning, field, least, most)            for numbers the range is inclusive
//   milliseconds(key, meaning, field, least, most)     for a key in seconds, a field in ms
//   choice(key, meaning, field, parse, expected)       for an enumeration

template <class Visitor>
void visit_run_keys(Visitor& v, configuration& c) {
  v.value("seed", "Seed of everything random in the run except what the judge draws.", c.seed);
  v.value("directory", "Folder of the run, relative to the current folder.", c.directory);
  v.value("trace", "Write trace.json, a timeline of all actors for chrome://tracing.", c.trace);
  if (!v.enter("run", "Further files of the run. Code: launch/run/.")) return;
  v.value(
      "tensorboard",
      "Write the numbers of metrics.jsonl for TensorBoard as well, into the folder tensorboard/.",
      c.run.tensorboard);
  v.leave();
}

template <class Visitor>
void visit_node_keys(Visitor& v, configuration& c) {
  if (!v.enter("node",
               "The first node: its devices and compilers. Code: actors/node.cpp, "
               "evaluation/devices.cpp."))
    return;
  v.value("port", "TCP port on 127.0.0.1 for `hone status` and `hone node`; 0 takes a free one.",
          c.node.port, 0, 65535);
  v.value("listen",
          "HOST:PORT to listen on instead of that; without node.identity a loopback address.",
          c.node.listen);
  v.value(
      "identity",
      "Folder of the head's identity (`hone identity`): nodes then join with certificates, over "
      "TLS. Code: network/.",
      c.node.identity);
  v.value(
      "metrics",
      "HOST:PORT at which Prometheus reads /metrics, in plain text and without a password; port "
      "0 takes a free one; empty: off. Nodes that join have an option for theirs. Code: "
      "launch/metrics/.",
      c.node.metrics);
  v.milliseconds("heartbeat_s", "Seconds between signs of life of two nodes.", c.node.heartbeat_ms,
                 0.05, 60);
  v.milliseconds(
      "silence_s",
      "Seconds without a sign of life after which a node counts as lost; longer than any "
      "message takes on the slowest link.",
      c.node.silence_ms, 0.2, 3600);
  v.value("devices",
          "Devices that judge: cpu (a core per mention), cuda (all GPUs), cuda:NUMBER or "
          "simulated:NAME. None: those of nodes that join.",
          c.node.devices);
  v.value("compilers", "Number of compilers; 0 leaves compiling to nodes that join.",
          c.node.options.compilers, 0, 256);
  v.value("mix_simulated",
          "Let simulated and real devices judge in one run, to test a system: simulated scores are "
          "made up.",
          c.node.options.mixes_simulation);
  v.value("share_cores", "Let devices share processor cores, which makes their scores meaningless.",
          c.node.share_cores);
  v.value("baselines",
          "Have GPUs time each reference once as a CUDA graph and in PyTorch's other settings as "
          "well. If they do not, a task with few variants takes less time.",
          c.node.baselines);
  v.leave();
}

template <class Visitor>
void visit_task_keys(Visitor& v, configuration& c) {
  if (v.enter("tasks", "The tasks to make faster. Code: launch/run/run_inputs.cpp.")) {
    v.value("folder", "Folder of task files.", c.tasks.folder);
    v.value("names", "Names of the tasks, without .toml; empty for all of the folder.",
            c.tasks.names);
    v.value("held_out",
            "Names of further tasks, or of some of the folder's, that are only evaluated, at the "
            "end of the run: they are never in the corpus, in draws or in training.",
            c.tasks.held_out);
    v.value("held_out_count",
            "Number of further tasks that are held out, spread evenly over the others.",
            c.tasks.held_out_count, 0);
    v.leave();
  }
  if (v.enter("corpus",
              "What people or the teacher wrote, for the sft stage to learn from. Code: "
              "launch/run/run_inputs.cpp.")) {
    v.value("folder", "Folder of the corpus; empty for none.", c.corpus.folder);
    v.value("per_task", "Most documents per task, spread evenly over its files; 0 for all.",
            c.corpus.per_task, 0);
    v.value("taught",
            "Documents that the teacher writes for each task of which the folder has none; 0 for "
            "none. Code: tasks/teaching/.",
            c.corpus.taught, 0, 1000);
    v.value("taught_first",
            "Number of the first of these documents and of those of held-out tasks: 0 is the "
            "teacher's best guess, 1 the reference with settings; from 3 on they are drawn, like "
            "those that a stream's prompts show.",
            c.corpus.taught_first, 0, 1000);
    v.value("held_out",
            "Documents of each held-out task that are judged and timed to be shown as exemplars; "
            "nothing is trained on them. The teacher writes them where the corpus has none.",
            c.corpus.held_out, 0, 1000);
    v.value("timed",
            "Measure how fast its documents are. Without it they are only verified, which takes a "
            "fraction of the time, and no prompt shows them as exemplars. A run that is resumed "
            "keeps to what it began with.",
            c.corpus.timed);
    v.leave();
  }
  if (v.enter("prompt", "How prompts are written. Code: policy/text/prompt.cpp.")) {
    v.value("template", "File of the prompt template.", c.prompt.prompt_template);
    v.value("format",
            "How the policy reads a prompt: plain, as a text that it continues; chat, as the "
            "message of a user in the format of the policy's chat template; or auto, chat if the "
            "folder has a template.",
            c.prompt.format);
    v.leave();
  }
}

template <class Visitor>
void visit_stream_keys(Visitor& v, configuration& c) {
  if (!v.enter("stream",
               "Synthesised tasks for the sft stage. Code: policy/training/pair_stream.hpp."))
    return;
  v.value(
      "workers",
      "Processes, a core each, that draw tasks and have the teacher solve them while the policy "
      "learns from them instead of the corpus; 0 for no stream. Code: tasks/teaching/stream.py.",
      c.stream.workers, 0, 1024);
  v.value("variants", "Most documents of a task.", c.stream.variants, 1, 64);
  v.value("tier_1_share",
          "Share of the easier tasks among the first: five statements at most, on matrices and "
          "rows.",
          c.stream.tier_1_share, 0, 1);
  v.value("tier_1_last_share", "The same share after `mix_lessons` tasks.",
          c.stream.tier_1_last_share, 0, 1);
  v.value("mix_lessons", "Tasks over which the share changes linearly from the first to the last.",
          c.stream.mix_lessons, 1);
  v.value("contrast_share",
          "Share of the tasks whose prompt shows two variants with estimated speed-ups, and whose "
          "document compares them and is faster. Code: tasks/teaching/contrast.py.",
          c.stream.contrast_share, 0, 1);
  v.value("judge_one_in",
          "Of so many tasks, one has its documents judged. The run ends if more than 1 % of these "
          "are not ok.",
          c.stream.judge_one_in, 1);
  v.value("max_judged", "Most tasks whose documents are judged.", c.stream.max_judged, 0, 100000);
  v.leave();
}

template <class Visitor>
void visit_pool_keys(Visitor& v, configuration& c) {
  if (!v.enter(
          "pool",
          "Choice of exemplars, and limits of the pool. Code: storage/, actors/draw_schedule.cpp."))
    return;
  exemplar_options& exemplars = c.pool.storage.exemplars;
  v.choice("exemplars", "How exemplars are chosen: buckets, islands, random or none.",
           exemplars.method, exemplar_method_named, "buckets, islands, random or none");
  v.value("exemplar_count", "Most exemplars per prompt.", exemplars.count, 0, 16);
  v.value("shuffle_scores",
          "Give exemplars each other's scores, at random: what scores say is then lost, to measure "
          "what it is worth.",
          exemplars.shuffles_scores);
  v.value("exemplar_temperature",
          "Temperature of the softmax over the logarithms of the buckets' mean scores.",
          exemplars.temperature, 1e-6);
  v.value("islands", "Number of populations of the method `islands`.", exemplars.islands, 2, 1024);
  v.value("island_reset_after",
          "Accepted variants per task and device type between two resets of the weaker islands.",
          exemplars.reset_after, 1);
  v.value("max_groups",
          "Limit on outstanding draws, waiting groups and ready groups together "
          "(actors/draw_schedule.cpp).",
          c.pool.draws.max_groups, 1);
  v.value(
      "max_lag",
      "Most training steps by which a group's oldest token may be behind the policy; when a batch "
      "is taken, older groups are dropped (storage/pool_training.cpp).",
      c.pool.storage.max_lag, 0);
  v.value("max_lag_of",
          "The same for single device types: TEXT=STEPS for the types whose names begin with TEXT.",
          c.max_lag_of);
  v.value(
      "keep_tokens",
      "Training steps for which tokens and log-probabilities of groups that a step has trained "
      "on are kept; 0: indefinitely. Without them, a branch from an older version cannot train on "
      "these groups again.",
      c.pool.storage.retention.tokens, 0);
  v.value("keep_texts",
          "The same for prompts and documents. Programs, scores and lineage always stay.",
          c.pool.storage.retention.texts, 0);
  v.value("screening",
          "Whether variants that are written to be trained on are measured briefly. The best of a "
          "group that is faster than the best known variant, exemplars and comparisons are "
          "measured in full.",
          c.pool.storage.screens);
  v.milliseconds("job_deadline_s",
                 "Seconds after which a job without a result is sent again "
                 "(storage/evaluation_ledger.cpp).",
                 c.pool.storage.job_deadline_ms, 0.1, 1e6);
  v.value("keep_checkpoints", "Newest checkpoints that are kept, besides the last of each stage.",
          c.learner.keep_checkpoints, 1);
  v.value("acknowledgments",
          "File in the run's folder that lists what was acknowledged, to test durability; empty "
          "for none.",
          c.pool.acknowledgments);
  v.leave();
}

template <class Visitor>
void visit_serve_keys(Visitor& v, configuration& c) {
  if (!v.enter("serve", "Judging for clients over HTTP: `hone serve`. Code: launch/serve/."))
    return;
  v.value("listen", "HOST:PORT for clients; port 0 takes a free one.", c.serve.listen);
  v.value("tokens",
          "File of the clients and the hashes of their tokens (hone serve --add-client). Without "
          "it, only this machine may ask.",
          c.serve.tokens);
  v.value("certificate", "PEM file of the server's certificate with its chain; empty: without TLS.",
          c.serve.certificate);
  v.value("key", "PEM file of its private key.", c.serve.key);
  v.value("max_programs", "Most programs that are accepted and not judged yet.",
          c.serve.limits.max_programs, 1);
  v.value("client_programs", "The same of one client.", c.serve.limits.client_programs, 1);
  v.value("client_rate", "Most programs of one client per minute; 0 for any number.",
          c.serve.limits.client_rate, 0);
  v.value("max_tasks", "Most tasks that clients hand in.", c.serve.max_tasks, 0, 1000000);
  v.value("importers",
          "Processes that import modules and translate programs in Python, a core each while they "
          "work.",
          c.serve.importers, 1, 64);
  v.value(
      "keep_hours",
      "Hours for which a client can ask for a judgement; 0: indefinitely. Programs and evaluations "
      "stay in the pool.",
      c.serve.keep_hours, 0);
  v.leave();
}

template <class Visitor>
void visit_keys(Visitor& v, configuration& c) {
  visit_run_keys(v, c);
  visit_node_keys(v, c);
  visit_task_keys(v, c);
  visit_stream_keys(v, c);
  visit_policy_keys(v, c);
  visit_generation_keys(v, c);
  visit_pool_keys(v, c);
  visit_optimizer_keys(v, c);
  visit_imitation_keys(v, c.learner.plan);
  visit_contrastive_keys(v, c);
  visit_validation_keys(v, c.learner.plan.validation);
  visit_reward_keys(v, c.learner.plan.contrastive.reward);
  visit_serve_keys(v, c);
}

// Visits the keys of a section [endpoint.NAME].
template <class Visitor>
void visit_endpoint_keys(Visitor& v, endpoint_options& e) {
  v.value("url", "Where the server is, as in http://127.0.0.1:8000/v1.", e.url);
  v.value("model", "Name of the model there.", e.model);
  v.value("api",
          "chat, or completions for a model that continues plain text (OpenAI's interfaces).",
          e.api);
  v.value("key", "Name of the environment variable that holds the key; empty for none.", e.key);
  v.value("extra", "A JSON object that is added to every request; null removes one of its keys.",
          e.extra);
  v.value("concurrency", "Requests at the same time.", e.concurrency, 1, 256);
  v.value("requests_per_minute", "Most requests a minute; 0 for no limit.", e.requests_per_minute,
          0);
  v.value("timeout_s", "Seconds that one request may take.", e.timeout_s, 0.1);
  v.value(
      "retries",
      "Failures in a row after which the endpoint is given up, or half an hour of failures if it "
      "asks for pauses. After each it pauses, for as long as the server asks, or for "
      "first_pause_s and twice as long each time.",
      e.retries, 0);
  v.value("first_pause_s", "Seconds of the pause after the first failure; at most a minute later.",
          e.first_pause_s, 0.001);
  v.value(
      "token_budget",
      "Tokens of prompts and answers after which the endpoint is asked no more; 0 for no limit.",
      e.token_budget, 0);
  v.value("prompt_price", "Price of a million tokens of prompts, for the costs in the report.",
          e.prompt_price, 0);
  v.value("answer_price", "The same of answers.", e.answer_price, 0);
}

// Visits the keys of a section [simulated.NAME].
template <class Visitor>
void visit_simulated_keys(Visitor& v, simulated_device_options& s) {
  v.value("verify_us", "Duration of a verification in microseconds.", s.verify_us, 0);
  v.value("measure_us", "Duration of a measurement in microseconds.", s.measure_us, 0);
  v.value("ok_share", "Share of the variants that are ok.", s.ok_share, 0, 1);
  v.value("median_speedup", "Median of the true speed-ups.", s.median_speedup, 1e-6);
  v.value("spread", "Standard deviation of the logarithm of the true speed-ups.", s.spread, 0);
  v.value("noise", "Standard deviation of the logarithm of a measurement.", s.noise, 0);
}

}  // namespace hone
