#pragma once

#include <algorithm>
#include <cstdint>

#include "launch/configuration.hpp"
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
          "HOST:PORT to listen on in place of that; without node.identity a loopback address.",
          c.node.listen);
  v.value(
      "identity",
      "Folder of the head's identity (`hone identity`): nodes then join with certificates, over "
      "TLS. Code: network/.",
      c.node.identity);
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
          "Share of the easier tasks: five statements at most, on matrices and rows.",
          c.stream.tier_1_share, 0, 1);
  v.value("judge_one_in",
          "Of so many tasks, one has its documents judged. The run ends if more than 1 % of these "
          "are not ok.",
          c.stream.judge_one_in, 1);
  v.value("most_judged", "Most tasks whose documents are judged.", c.stream.most_judged, 0, 100000);
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
  v.value("keep_tokens",
          "Training steps for which tokens and log-probabilities of groups that a step has trained "
          "on are kept; 0 for ever. Without them, a branch from an older version cannot train on "
          "these groups again.",
          c.pool.storage.retention.tokens, 0);
  v.value("keep_texts",
          "The same for prompts and documents. Programs, scores and lineage always stay.",
          c.pool.storage.retention.texts, 0);
  v.milliseconds("job_deadline_s",
                 "Seconds after which a job without a result is sent again "
                 "(storage/evaluation_ledger.cpp).",
                 c.pool.storage.job_deadline_ms, 0.1, 1e6);
  v.value("keep_checkpoints", "Newest checkpoints that are kept, besides the last of each stage.",
          c.learner.keep_checkpoints, 1);
  v.value("acknowledgements",
          "File in the run's folder that lists what was acknowledged, to test durability; empty "
          "for none.",
          c.pool.acknowledgements);
  v.leave();
}

template <class Visitor>
void visit_optimizer_keys(Visitor& v, configuration& c) {
  if (!v.enter("optimiser", "AdamW. Code: policy/training/optimizer.cpp.")) return;
  v.value("beta1", "Decay of the first moment.", c.optimizer.beta1, 0, 1);
  v.value("beta2", "Decay of the second moment.", c.optimizer.beta2, 0, 1);
  v.value("weight_decay", "Weight decay of matrices.", c.optimizer.weight_decay, 0);
  v.value("max_gradient_norm", "Norm to which gradients are clipped; 0: not at all.",
          c.optimizer.max_gradient_norm, 0);
  v.leave();
}

template <class Visitor>
void visit_imitation_keys(Visitor& v, curriculum_options& plan) {
  if (v.enter("sft",
              "First stage: supervised fine-tuning on the corpus. Code: "
              "policy/training/curriculum.cpp.")) {
    sft_stage_options& s = plan.sft;
    v.value("updates", "Updates of the stage; 0 skips it.", s.updates, 0);
    v.value("minutes",
            "Minutes of training after which the stage ends before `updates`, interruptions left "
            "out; the learning rate decays with them. 0 for no limit.",
            s.minutes, 0);
    v.value("updates_per_step", "Updates between two versions.", s.updates_per_step, 1);
    v.value("batch", "Documents per update.", s.batch, 1);
    v.value("rate", "Highest learning rate.", s.rate.peak, 0);
    v.value("warm_up", "Updates of linear warm-up.", s.rate.warm_up, 0);
    v.value("final_share", "Last learning rate of the cosine decay, relative to the highest.",
            s.rate.final_share, 0, 1);
    v.value("exemplar_share", "Share of the prompts that show exemplars.", s.exemplar_share, 0, 1);
    v.value("prompt_weight", "Weight of prompt tokens in the loss, relative to the document's.",
            s.prompt_weight, 0);
    v.value("begin_with", "Share of the corpus that must be judged before the first update.",
            s.begin_with, 0, 1);
    v.leave();
  }
  if (v.enter("self_supervised",
              "Second stage: likelihood of the policy's own ok variants. Code: "
              "policy/training/curriculum.cpp.")) {
    self_supervised_stage_options& s = plan.self_supervised;
    v.value("steps", "Training steps; 0 skips the stage.", s.steps, 0);
    v.value("groups", "Groups per step.", s.groups, 1);
    v.value("batch", "Completions per update.", s.batch, 1);
    v.value("rate", "Learning rate; 0 is refused, because no rate suits policies of all sizes.",
            s.rate, 0);
    v.value("passes", "Passes over the ok completions of a step.", s.passes, 1);
    v.leave();
  }
}

template <class Visitor>
void visit_objective_keys(Visitor& v, grpo_step_options& o) {
  v.value("minibatches", "Updates per step, each over a share of its completions.", o.minibatches,
          1);
  v.value("clip", "Probability ratios are clipped to 1 - clip and 1 + clip_high.", o.objective.clip,
          0);
  v.value(
      "clip_high",
      "Of the upper bound, 0 for the same as clip; a higher one lets unlikely tokens rise (DAPO).",
      o.objective.clip_high, 0);
  v.value("dual_clip",
          "A token of a completion with a negative advantage counts at most this many times.",
          o.objective.dual_clip, 1);
  v.choice("mean",
           "What the objective averages over: sequence (completions count the same), token "
           "(tokens do, DAPO) or limit (sums over generation.max_new_tokens, Dr. GRPO). Code: "
           "policy/training/objectives.cpp.",
           o.mean, loss_mean_named, "sequence, token or limit");
  v.choice("ratio",
           "What probability ratios are relative to: sampler (what it has recorded), or trainer "
           "(the trainer's weights before the step, with importance weights; decoupled PPO, "
           "truncated importance sampling).",
           o.base, ratio_base_named, "sampler or trainer");
  v.value("importance_limit", "Largest importance weight of a token, with ratio = \"trainer\".",
          o.importance_limit, 1);
  v.value("kl", "Weight of the KL divergence from the reference policy.",
          o.objective.kl_coefficient, 0);
  v.value("entropy", "Weight of the bonus for entropy.", o.objective.entropy_coefficient, 0);
  v.choice("outliers",
           "How a reward far above its group is kept in bounds: recentre (clip advantages, then "
           "subtract their mean) or smooth (clip standardised rewards before groups are formed). "
           "Code: policy/training/advantages.cpp.",
           o.advantages.outliers, outlier_rule_named, "recentre or smooth");
  v.value("advantage_limit",
          "Limit of advantages or of smoothed rewards, in standard deviations, or in rewards if "
          "advantages are not scaled.",
          o.advantages.limit, 0);
  v.value("scale_advantages",
          "Divide advantages by the deviation of their group's rewards (not so in Dr. GRPO).",
          o.advantages.scaled);
}

template <class Visitor>
void visit_contrastive_keys(Visitor& v, curriculum_options& plan) {
  if (v.enter("contrastive",
              "Third stage: GRPO on measured speed-ups. Code: policy/training/trainer.cpp.")) {
    contrastive_stage_options& s = plan.contrastive;
    v.value("steps", "Training steps; 0 skips the stage.", s.steps, 0);
    v.value("minutes", "Minutes after which the stage ends, interruptions left out; 0: no limit.",
            s.minutes, 0);
    v.value("groups", "Groups per step.", s.groups, 1);
    v.value("most_groups",
            "Most groups of a step: those whose rewards do not differ are replaced by others.",
            s.most_groups, 0);
    v.value("one_per_task", "Spread the groups of a step evenly over the tasks.", s.one_per_task);
    v.value("rate", "Learning rate; 0 is refused, because no rate suits policies of all sizes.",
            s.rate, 0);
    v.value("warm_up", "Updates of linear warm-up at the stage's start.", s.warm_up, 0);
    v.value(
        "count_truncated",
        "Count completions that the length limit has cut as failures; otherwise they are left out "
        "of their group.",
        s.counts_truncated);
    visit_objective_keys(v, s.grpo);
    v.leave();
  }
  if (v.enter(
          "comparison",
          "Last stage: compares policies by what they write. Code: launch/run/comparison.cpp.")) {
    comparison_stage_options& s = plan.comparison;
    v.value("samples", "Samples per task and policy, with exemplars in the prompt.", s.samples, 0,
            1024);
    v.value("bare_samples", "The same without exemplars.", s.bare_samples, 0, 1024);
    v.value("greedy_samples",
            "Greedy completions with exemplars. Without any sample, there is no comparison.",
            s.greedy_samples, 0, 1024);
    v.value("tasks",
            "Most tasks that the run learns from whose samples are compared, spread evenly; 0 for "
            "all. They are compared if there is a contrastive stage.",
            s.tasks, 0);
    v.value("held_out_samples",
            "Samples per held-out task and policy; with corpus.held_out as many without exemplars.",
            s.held_out_samples, 0, 1024);
    v.value("curve",
            "Versions within each stage, evenly spaced, that write for held-out tasks as well as "
            "those at the stages' ends.",
            s.curve, 0, 1000);
    v.leave();
  }
}

template <class Visitor>
void visit_reward_keys(Visitor& v, reward_options& r) {
  if (!v.enter("reward", "What the contrastive stage pays. Code: policy/training/rewards.cpp."))
    return;
  v.choice("shape",
           "Reward of a program that works, by its speed-up s: speedup (s), log (ln(1 + s)), "
           "capped (at most `cap`), tiers (1; 2 if faster than eager; 3 if faster than every "
           "baseline), or relative (1 + ln(s / best score shown) / 2, at least 0.2).",
           r.shape, reward_shape_named, "speedup, log, capped, tiers or relative");
  v.value("cap", "Highest reward of the shape `capped`.", r.cap, 0);
  v.choice("baseline", "What s is measured against: eager, or best, the fastest baseline.",
           r.baseline, reward_baseline_named, "eager or best");
  v.choice("copies",
           "What a copy of an exemplar that its prompt shows is paid: paid (in full) or "
           "as_neighbours (at most the mean of the group's other programs that work).",
           r.copies, copy_rule_named, "paid or as_neighbours");
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
  visit_contrastive_keys(v, c.learner.plan);
  visit_reward_keys(v, c.learner.plan.contrastive.reward);
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
  v.value("retries",
          "Failures in a row after which the endpoint is given up. After each it pauses, for as "
          "long as the server asks, or for first_pause_s and twice as long each time.",
          e.retries, 0);
  v.value("first_pause_s", "Seconds of the pause after the first failure; at most a minute later.",
          e.first_pause_s, 0.001);
  v.value(
      "token_budget",
      "Tokens of prompts and answers after which the endpoint is asked no more; 0 for no limit.",
      e.token_budget, 0);
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
