// SPDX-License-Identifier: Apache-2.0
/// The model on the accelerator: parameters, gradients and activations in device memory, forward and backward as device tasks.
#pragma once

#include <spillway/device/device_concept.hpp>
#include <spillway/execution/thread_pool.hpp>
#include <spillway/layout/parameter_layout.hpp>
#include <spillway/pipeline/memory_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "transformer.hpp"

namespace train_gpt {

/// The tensors as the library sees them: matrices in group 0, the rest, which has no weight decay, in group 1.
[[nodiscard]] inline spillway::parameter_layout layout_of(transformer_config const& config) {
  std::vector<spillway::tensor_spec> tensors;
  for (tensor_info const& t : parameter_tensors(config)) {
    tensors.push_back({t.name, {t.shape.begin(), t.shape.end()}, spillway::dtype::bfloat16, t.decay ? 0U : 1U});
  }
  return spillway::parameter_layout(std::move(tensors));
}

template <spillway::Device D>
class device_model {
 public:
  device_model(D& device, transformer_config const& config, std::size_t batch,
               std::shared_ptr<spillway::thread_pool> team)
      : device_(&device), model_(config, batch), team_(std::move(team)), layout_(layout_of(config)) {
    for (std::size_t t = 0; t < layout_.size(); ++t) {
      spillway::bytes const size = layout_.elements(t) * spillway::size_of(layout_[t].type);
      parameters_.push_back(device.allocate(size));
      gradients_.push_back(device.allocate(size));
    }
    workspace_ = device.allocate(model_.workspace_bytes());
    compute_ = std::make_unique<typename D::stream>(device.make_stream());
    parameter_addresses_.resize(layout_.size());
    gradient_addresses_.resize(layout_.size());
  }
  device_model(device_model const&) = delete;
  device_model& operator=(device_model const&) = delete;
  ~device_model() {
    compute_.reset();  // no task is left that uses the memory
    for (auto const& block : parameters_) device_->deallocate(block);
    for (auto const& block : gradients_) device_->deallocate(block);
    if (workspace_.data != nullptr) device_->deallocate(workspace_);
  }

  /// What the constructor allocates.
  static void add_to(spillway::memory_plan& plan, transformer_config const& config, std::size_t batch) {
    using spillway::budget;
    spillway::bytes const parameters = layout_of(config).parameter_bytes();
    plan.add(budget::device, "parameters", parameters);
    plan.add(budget::device, "gradients", parameters);
    plan.add(budget::device, "activations", transformer<spillway::bf16>(config, batch).workspace_bytes());
  }

  [[nodiscard]] spillway::parameter_layout const& layout() const { return layout_; }
  [[nodiscard]] std::byte* parameter(std::size_t tensor) const { return parameters_[tensor].data; }
  [[nodiscard]] std::byte const* gradient(std::size_t tensor) const { return gradients_[tensor].data; }

  /// Later work waits for `event`.
  void wait(typename D::event const& event) { device_->wait(*compute_, event); }

  /// Enqueue forward and backward of one micro-batch. `tokens` and `loss` live until the event is done.
  typename D::event forward_backward(std::vector<std::uint8_t> const& tokens, double loss_scale, double& loss) {
    device_->submit(*compute_, [this, &tokens, loss_scale, &loss](auto& context) {
      for (std::size_t t = 0; t < layout_.size(); ++t) {
        parameter_addresses_[t] = reinterpret_cast<spillway::bf16 const*>(context.address(parameters_[t].data));
        gradient_addresses_[t] = reinterpret_cast<spillway::bf16*>(context.address(gradients_[t].data));
      }
      loss = model_.step(parameter_addresses_, gradient_addresses_, tokens, static_cast<float>(loss_scale),
                         {context.address(workspace_.data), workspace_.size.count}, *team_);
    });
    return device_->record(*compute_);
  }

 private:
  D* device_;
  transformer<spillway::bf16> model_;
  std::shared_ptr<spillway::thread_pool> team_;
  spillway::parameter_layout layout_;
  std::vector<spillway::device_block> parameters_{};
  std::vector<spillway::device_block> gradients_{};
  spillway::device_block workspace_{};
  std::unique_ptr<typename D::stream> compute_{};
  std::vector<spillway::bf16 const*> parameter_addresses_{};
  std::vector<spillway::bf16*> gradient_addresses_{};
};

}  // namespace train_gpt
