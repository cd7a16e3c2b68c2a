#pragma once

#include "launch/configuration.hpp"

namespace hone {

// The keys of the policy and of how it writes, for configuration_keys.hpp, which says what a
// visitor is.

template <class Visitor>
void visit_policy_keys(Visitor& v, configuration& c) {
  if (v.enter("policy", "The language model. Code: launch/run/run_actors.cpp, policy/.")) {
    v.value("kind",
            "`model`; `endpoint` for models behind servers ([endpoint.NAME]), which do not learn; "
            "`teacher` for a program that writes by rules; or `scripted` for a script instead of "
            "the model, to test a system.",
            c.policy.kind);
    v.value("folder", "Hugging Face folder with config.json and tokenizer.json.", c.policy.folder);
    v.value("random_weights", "Start from random weights, not from the folder's safetensors.",
            c.policy.random_weights);
    v.value("device", "Where the policy runs: cpu, cuda or cuda:NUMBER.", c.policy.device);
    v.choice("dtype",
             "What the policy is computed in: auto (the type of its weights on GPUs, float32 on "
             "CPUs), float32, bfloat16 or float16. On a CPU the last two are about ten times "
             "slower than float32.",
             c.policy.dtype, compute_dtype_named, "auto, float32, bfloat16 or float16");
    v.value("data_parallel",
            "GPUs that train together with policy.device, such as [\"cuda:1\"]: each computes a "
            "part of "
            "every update and keeps a part of the optimizer's state. They may not judge. Code: "
            "policy/network/weight_shards.hpp.",
            c.policy.data_parallel);
    v.value("threads", "Threads of LibTorch on the CPU.", c.policy.threads, 1, 1024);
    v.value("micro_batch_tokens",
            "Tokens that training reads at a time; gradients add up over the parts of an update.",
            c.policy.micro_batch_tokens, 1);
    v.value("recompute",
            "Keep only the input of each layer for the gradients, and compute the rest once more: "
            "less memory, about a third more time.",
            c.policy.recompute);
    v.value("adapter_rank",
            "Rank of low-rank adapters (LoRA), which are trained instead of the policy's weights; "
            "0 trains all weights. Code: policy/network/adapters.hpp.",
            c.policy.adapters.rank, 0, 1024);
    v.value("adapter_alpha", "What adapters add is multiplied by this over their rank.",
            c.policy.adapters.alpha, 0, 1e6);
    v.value("adapter_modules", "Projections of each layer that have adapters.",
            c.policy.adapters.modules);
    v.leave();
  }
}

template <class Visitor>
void visit_generation_keys(Visitor& v, configuration& c) {
  if (!v.enter(
          "generation",
          "How the policy writes. Code: actors/generator.cpp, policy/sampling/generation.cpp."))
    return;
  v.value("group_size", "Completions per group.", c.pool.draws.samples, 1, 1024);
  v.value("turns",
          "Most writings of a variant in a row: from the second on, a prompt shows a failed or "
          "slow attempt of the policy with the judge's message or profile, and asks for a better "
          "one. The prompt template says how ({{#attempt}}).",
          c.pool.storage.turns, 1, 64);
  v.value("devices",
          "Where generators run, such as [\"cuda:1\", \"cuda:2\"]; if empty, on policy.device.",
          c.generation.devices);
  v.value("replicas",
          "Generators on each of these devices, each with a copy of the policy; 0: only nodes that "
          "join with generators write.",
          c.generation.replicas, 0, 16);
  v.value("slots", "Sequences that a generator writes at the same time.",
          c.generation.options.slots, 1, 4096);
  v.value(
      "memory_share",
      "Share of a GPU's memory that keys and values of each generator may take, for policies in "
      "bfloat16 or float16. Samples wait while it is full.",
      c.generation.options.memory_share, 0.001, 0.95);
  v.value("max_new_tokens", "Most tokens of a completion.", c.generation.options.max_new_tokens, 1,
          1000000);
  v.value("temperature", "Sampling temperature; 0 for greedy decoding.",
          c.generation.options.sampling.temperature, 0, 100);
  v.value("top_p", "Nucleus sampling: share of the probability that tokens are drawn from.",
          c.generation.options.sampling.top_p, 0, 1);
  v.value("top_k", "Number of most likely tokens that tokens are drawn from; 0 for all.",
          c.generation.options.sampling.top_k, 0);
  v.value("min_p",
          "Least probability of a token that is drawn, relative to the most likely one; 0 for "
          "none.",
          c.generation.options.sampling.min_p, 0, 1);
  v.value("stop_at_program",
          "End a completion with its program (the fence behind its python block), for policies "
          "that go on writing.",
          c.generation.stop_at_program);
  v.leave();
}

}  // namespace hone
