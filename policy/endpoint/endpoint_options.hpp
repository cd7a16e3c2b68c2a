#pragma once

#include <cstdint>
#include <string>

namespace hone {

// A server with OpenAI's interface (vLLM, SGLang, llama.cpp, a cloud's) that writes instead of a
// policy.
struct endpoint_options {
  std::string url;           // up to and without /chat/completions, as "http://127.0.0.1:8000/v1"
  std::string model;         // name of the model there
  std::string api = "chat";  // chat, or completions for a model that continues plain text
  std::string key;           // environment variable that holds the key; empty for none
  std::string extra;         // a JSON object that is added to every request; null removes a key
  std::int64_t concurrency = 4;    // requests at the same time
  double requests_per_minute = 0;  // most of them; 0 for no limit
  double timeout_s = 300;          // of one request
  std::int64_t retries = 6;        // failures in a row before it is given up; see endpoint_sampler
  double first_pause_s = 1;        // after a failure; doubles with each further one, up to a minute
  // Tokens of prompts and answers since the start of the process, besides those of requests that
  // are under way as it is spent; 0 for no limit.
  std::int64_t token_budget = 0;
  double prompt_price = 0;  // of a million tokens, in any currency, to report costs
  double answer_price = 0;
};

}  // namespace hone
