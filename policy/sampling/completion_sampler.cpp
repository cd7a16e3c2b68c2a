#include "policy/sampling/completion_sampler.hpp"

#include <deque>
#include <map>
#include <random>

#include "messages/names.hpp"
#include "policy/policy_device.hpp"
#include "policy/text/program_end.hpp"

namespace hone {
namespace {

class model_sampler final : public completion_sampler {
 public:
  model_sampler(decoder_config config, std::shared_ptr<const text_codec> codec, std::string device,
                const generation_options& options)
      : config_(std::move(config)),
        codec_(std::move(codec)),
        device_(std::move(device)),
        slots_(options.slots),
        engine_(config_, options) {
    prepare_policy_device(device_);
  }

  void load(const std::filesystem::path& checkpoint, std::uint64_t version) override {
    engine_.set_weights(decoder_weights::load(checkpoint, config_).to(device_, config_.dtype),
                        version);
  }
  void take(const decoder_weights& weights, std::uint64_t version) override {
    engine_.set_weights(weights.to(device_, config_.dtype), version);
  }
  void submit(const prompt& asked) override {
    engine_.submit({asked.ticket, codec_->encode_prompt(asked.text), asked.samples, asked.room,
                    asked.is_greedy});
  }

  std::vector<finished_prompt> step() override {
    std::vector<finished_prompt> done;
    for (finished_request& request : engine_.step()) {
      finished_prompt f{request.ticket, {}};
      for (completion& c : request.completions) {
        std::string text = codec_->decode(without_end(c.tokens));
        f.completions.push_back({std::move(text), std::move(c)});
      }
      done.push_back(std::move(f));
    }
    return done;
  }

  std::uint64_t version() const override { return engine_.version(); }
  std::size_t unfinished_samples() const override { return engine_.active() + engine_.waiting(); }
  std::size_t free_slots() const override {
    const std::size_t busy = unfinished_samples();
    return busy < static_cast<std::size_t>(slots_) ? static_cast<std::size_t>(slots_) - busy : 0;
  }
  std::uint64_t tokens_generated() const override { return engine_.tokens_generated(); }

 private:
  // Returns the tokens without the one that ends a completion, whose text is none of the answer's.
  std::vector<token_id> without_end(std::vector<token_id> tokens) const {
    const std::vector<token_id>& ends = codec_->end_tokens();
    if (!tokens.empty() && std::find(ends.begin(), ends.end(), tokens.back()) != ends.end())
      tokens.pop_back();
    return tokens;
  }

  decoder_config config_;
  std::shared_ptr<const text_codec> codec_;
  std::string device_;
  std::int64_t slots_;
  generation_engine engine_;
};

class teacher_sampler final : public completion_sampler {
 public:
  explicit teacher_sampler(teacher::settings settings) : teacher_(std::move(settings)) {}

  void load(const std::filesystem::path& /*checkpoint*/, std::uint64_t version) override {
    version_ = version;
  }
  void take(const decoder_weights& /*weights*/, std::uint64_t version) override {
    version_ = version;
  }
  void submit(const prompt& asked) override { waiting_.push_back(asked); }

  // Completes one prompt.
  std::vector<finished_prompt> step() override {
    if (waiting_.empty()) return {};
    const prompt asked = std::move(waiting_.front());
    waiting_.pop_front();
    const std::string_view kind = device_kind_of(asked.device_type);
    std::uint64_t& written = written_[{asked.about->id, std::string(kind)}];
    const teacher::lesson lesson = teacher_.write(*asked.about, kind, written, asked.samples);
    written += asked.samples;
    finished_prompt done{asked.ticket, {}};
    for (std::uint32_t i = 0; i < asked.samples; ++i)
      done.completions.push_back({lesson.documents[i % lesson.documents.size()], {}});
    return {std::move(done)};
  }

  std::uint64_t version() const override { return version_; }
  std::size_t unfinished_samples() const override { return waiting_.size(); }
  std::size_t free_slots() const override { return waiting_.size() < 4 ? 64 : 0; }
  std::uint64_t tokens_generated() const override { return 0; }

 private:
  teacher teacher_;
  std::uint64_t version_ = 0;
  std::deque<prompt> waiting_;
  std::map<std::pair<task_id, std::string>, std::uint64_t> written_;  // by task and kind of device
};

class scripted_sampler final : public completion_sampler {
 public:
  explicit scripted_sampler(std::uint64_t seed) : random_(seed) {}

  void load(const std::filesystem::path& /*checkpoint*/, std::uint64_t version) override {
    version_ = version;
  }
  void take(const decoder_weights& /*weights*/, std::uint64_t version) override {
    version_ = version;
  }
  void submit(const prompt& asked) override { waiting_.emplace_back(asked.ticket, asked.samples); }

  std::vector<finished_prompt> step() override {
    std::vector<finished_prompt> done;
    for (const auto& [ticket, samples] : waiting_) {
      finished_prompt f{ticket, {}};
      for (std::uint32_t i = 0; i < samples; ++i) f.completions.push_back(make_document());
      done.push_back(std::move(f));
    }
    waiting_.clear();
    return done;
  }

  std::uint64_t version() const override { return version_; }
  std::size_t unfinished_samples() const override { return waiting_.size(); }
  std::size_t free_slots() const override { return waiting_.size() < 4 ? 64 : 0; }
  std::uint64_t tokens_generated() const override { return tokens_; }

 private:
  sample make_document() {
    std::string text =
        "## Performance Analysis\nThe second variant reads memory in order.\n## Code "
        "Implementation\n```cuda\nextern \"C\" __global__ void k(const float* a, float* c, int n) "
        "{\n";
    for (int line = 0; line < 12; ++line)
      text += "  if (i < n) c[i + " + std::to_string(random_() % 1000000) + "] = a[i] * " +
              std::to_string(random_() % 1000) + ".0f;\n";
    text +=
        "}\n```\n```python\ndef forward(A: Tensor) -> Tensor:\n    C = torch.empty_like(A)\n    "
        "launch(\"k\", [A.numel() // 256], [256], A, C, A.numel())\n    return C\n```\n";
    completion how;
    how.tokens.assign(64, static_cast<token_id>(random_() % 1000));
    how.log_probabilities.assign(64, -1.0F);
    how.versions = {{version_, 64}};
    tokens_ += 64;
    return {std::move(text), std::move(how)};
  }

  std::mt19937_64 random_;
  std::uint64_t version_ = 0;
  std::uint64_t tokens_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> waiting_;
};

}  // namespace

std::unique_ptr<completion_sampler> make_model_sampler(const std::filesystem::path& policy,
                                                       const std::string& device,
                                                       compute_dtype dtype,
                                                       generation_options options,
                                                       const answer_format& format) {
  const auto codec = std::make_shared<const text_codec>(text_codec::load(policy, format.chat));
  options.end_tokens = codec->end_tokens();
  if (format.stops_at_program)
    options.is_complete = [codec](const std::vector<token_id>& tokens) {
      // Only a token with a backquote can end a fence.
      return codec->decode({tokens.back()}).find('`') != std::string::npos &&
             ends_with_program(codec->decode(tokens));
    };
  return std::make_unique<model_sampler>(load_config_for(device, policy, dtype), codec, device,
                                         options);
}

std::unique_ptr<completion_sampler> make_teacher_sampler(teacher::settings settings) {
  return std::make_unique<teacher_sampler>(std::move(settings));
}

std::unique_ptr<completion_sampler> make_scripted_sampler(std::uint64_t seed) {
  return std::make_unique<scripted_sampler>(seed);
}

}  // namespace hone
