#include "evaluation/sandbox/child/gpu/activity_trace.hpp"

#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

namespace hone {
namespace {

constexpr std::size_t buffer_bytes = 8U << 20U;
constexpr std::size_t buffer_alignment = 8;
constexpr std::array<CUpti_ActivityKind, 3> kinds = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

struct cupti_calls {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
};
cupti_calls cupti;
struct activity {
  std::uint64_t begin_ns;
  std::uint64_t end_ns;
  bool is_fill;
};
std::vector<activity> seen;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(buffer_alignment, buffer_bytes));
  *size = *buffer != nullptr ? buffer_bytes : 0;
  *max_records = 0;
}

void CUPTIAPI take_buffer(CUcontext /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer,
                          std::size_t /*size*/, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cupti.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        seen.push_back({kernel->start, kernel->end, false});
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
        seen.push_back({copy->start, copy->end, false});
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto* fill = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
        seen.push_back({fill->start, fill->end, true});
        break;
      }
      default:
        break;
    }
  }
  std::free(buffer);
}

template <class Function>
bool bind(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  return to != nullptr;
}

}  // namespace

activity_trace::activity_trace() {
  void* library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  works_ = bind(library, "cuptiActivityRegisterCallbacks", cupti.register_callbacks) &&
           bind(library, "cuptiActivityEnable", cupti.enable) &&
           bind(library, "cuptiActivityDisable", cupti.disable) &&
           bind(library, "cuptiActivityFlushAll", cupti.flush) &&
           bind(library, "cuptiActivityGetNextRecord", cupti.next_record) &&
           bind(library, "cuptiGetTimestamp", cupti.timestamp) &&
           cupti.register_callbacks(give_buffer, take_buffer) == CUPTI_SUCCESS;
}

void activity_trace::start() {
  seen.clear();
  for (const CUpti_ActivityKind kind : kinds)
    works_ = works_ && cupti.enable(kind) == CUPTI_SUCCESS;
}

void activity_trace::begin() {
  begin_ns_ = 0;
  if (works_) cupti.timestamp(&begin_ns_);
}

activity_trace::result activity_trace::stop() {
  if (cupti.disable == nullptr) return {};
  for (const CUpti_ActivityKind kind : kinds) cupti.disable(kind);
  if (!works_) return {};
  cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  std::erase_if(seen, [this](const activity& a) { return a.begin_ns < begin_ns_; });
  std::sort(seen.begin(), seen.end(),
            [](const activity& a, const activity& b) { return a.begin_ns < b.begin_ns; });
  // The host used this fill to get ahead of the device.
  if (!seen.empty() && seen.front().is_fill) seen.erase(seen.begin());
  result sum;
  std::uint64_t end = 0;
  for (const auto& [from, to, is_fill] : seen) {
    if (to > std::max(from, end)) sum.busy_ns += static_cast<double>(to - std::max(from, end));
    end = std::max(end, to);
  }
  if (!seen.empty()) sum.span_ns = static_cast<double>(end - seen.front().begin_ns);
  return sum;
}

}  // namespace hone
