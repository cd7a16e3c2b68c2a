#pragma once

#include "launch/configuration.hpp"

namespace hone {

// The keys of the stages of learning, for configuration_keys.hpp, which says what a visitor is.

template <class Visitor>
void visit_optimizer_keys(Visitor& v, configuration& c) {
  if (!v.enter("optimizer", "AdamW. Code: policy/training/optimizer.cpp.")) return;
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
           "subtract their mean) or smooth (clip standardized rewards before groups are formed). "
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
void visit_contrastive_keys(Visitor& v, configuration& c) {
  curriculum_options& plan = c.learner.plan;
  if (v.enter("contrastive",
              "Third stage: GRPO on measured speed-ups. Code: policy/training/trainer.cpp.")) {
    contrastive_stage_options& s = plan.contrastive;
    v.value("steps", "Training steps; 0 skips the stage.", s.steps, 0);
    v.value("minutes", "Minutes after which the stage ends, interruptions left out; 0: no limit.",
            s.minutes, 0);
    v.value("groups", "Groups per step.", s.groups, 1);
    v.value("max_groups",
            "Most groups of a step: those whose rewards do not differ are replaced by others.",
            s.max_groups, 0);
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
  if (v.enter("comparison",
              "Last stage: compares policies by what they write. Code: results/comparison.cpp.")) {
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
    v.value("untrained",
            "Whether a policy that does not begin with random weights also writes as it was before "
            "the run.",
            s.untrained);
    v.value("screening",
            "Whether samples are measured briefly. Their outcomes are as certain as others, and "
            "their speed-ups are not.",
            c.pool.storage.screens_comparisons);
    v.value(
        "held_out_samples",
        "Samples per held-out task and policy; as many without exemplars if corpus.held_out and "
        "bare_samples are not 0.",
        s.held_out_samples, 0, 1024);
    v.value("curve",
            "Versions within each stage, evenly spaced, that write for held-out tasks as well as "
            "those at the stages' ends.",
            s.curve, 0, 1000);
    v.leave();
  }
}

template <class Visitor>
void visit_validation_keys(Visitor& v, validation_options& o) {
  if (!v.enter("validation",
               "Answers to held-out tasks during training. Code: policy/training/validation.cpp."))
    return;
  v.value("every_s",
          "Seconds from the start of one validation to the next, which begins when a step ends; 0: "
          "none.",
          o.every_s, 0);
  v.value("tasks", "Most held-out tasks of a validation, spread evenly; 0 for all.", o.tasks, 0);
  v.leave();
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

}  // namespace hone
