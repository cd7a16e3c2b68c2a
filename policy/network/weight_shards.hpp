#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "policy/network/decoder_weights.hpp"

namespace hone {

// Divides the weights of the replicas of a policy, each on a separate device, among them: every
// tensor has one owner, which alone keeps the tensor's optimizer state and updates it (ZeRO, stage
// 1: Rajbhandari et al., arXiv 1910.02054). With several replicas, an owner's tensors lie in one
// buffer on each device, so that they travel as one. Sums are made in the replicas' order, hence
// are the same each time. The work is queued on the devices' current streams.
class weight_shards {
 public:
  // Replaces the tensors of all replicas by differentiable copies. The replicas hold the same names
  // and shapes in one dtype; they must outlive this, and their tensors must not be replaced.
  explicit weight_shards(std::vector<decoder_weights*> replicas);
  ~weight_shards();
  weight_shards(const weight_shards&) = delete;
  weight_shards& operator=(const weight_shards&) = delete;

  // Returns the number of replicas, all of which are owners if there are tensors enough.
  std::size_t size() const;
  // Returns the owner of a tensor, and the tensor as the owner has it.
  std::size_t owner_of(const std::string& name) const;
  at::Tensor& owned(const std::string& name) const;

  // Adds the gradients of all other replicas to those of each tensor's owner.
  void collect_gradients();
  // Forgets all gradients.
  void clear_gradients();
  // Copies each tensor from its owner to the other replicas.
  void spread_weights();

 private:
  struct buffers;
  void lay_out();

  std::vector<decoder_weights*> replicas_;
  std::map<std::string, std::size_t> owners_;
  // By replica and owner; none for a single replica.
  std::vector<std::vector<buffers>> buffers_;
};

}  // namespace hone
