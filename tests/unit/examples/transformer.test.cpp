// SPDX-License-Identifier: Apache-2.0
#include "train_gpt/transformer.hpp"

#include <spillway/core/bf16.hpp>
#include <spillway/core/counter_rng.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"
#include "thread_team.hpp"

namespace {

using spillway::bf16;
using train_gpt::activations;
using train_gpt::arena;
using train_gpt::parameter_tensors;
using train_gpt::serial_team;
using train_gpt::transformer;
using train_gpt::transformer_config;

struct freed {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// A model with its parameters, gradients, tokens and a workspace of exactly the size asked for.
template <class T>
struct fixture {
  fixture(transformer_config const& c, std::size_t batch_size) : config(c), batch(batch_size), model(c, batch_size) {
    spillway::counter_rng random{.seed = 7};
    auto const tensors = parameter_tensors(config);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      std::vector<float> initial(tensors[i].elements());
      train_gpt::initialise(config, 5, i, initial);
      parameters.emplace_back();
      for (float const value : initial) parameters.back().push_back(as_parameter(value));
      gradients.emplace_back(initial.size());
    }
    tokens.resize(batch * (config.context + 1));
    for (auto& token : tokens) token = static_cast<std::uint8_t>(random() % config.vocabulary);
    auto const size = model.workspace_bytes().count;
    workspace.reset(static_cast<std::byte*>(std::aligned_alloc(64, size)));
    std::memset(workspace.get(), 0xA5, size);
  }

  // Larger weights, and norms and biases away from 1 and 0, so that no gradient is small or zero by chance.
  void roughen() {
    spillway::counter_rng random{.seed = 11};
    for (auto& tensor : parameters) {
      for (T& value : tensor) {
        double const noise = static_cast<double>(random()) / 4294967296.0 - 0.5;
        value = as_parameter(static_cast<float>(static_cast<double>(static_cast<float>(value)) + 0.8 * noise));
      }
    }
  }

  static T as_parameter(float value) {
    if constexpr (std::is_same_v<T, bf16>) {
      return spillway::narrow(value);
    } else {
      return static_cast<T>(value);
    }
  }

  [[nodiscard]] std::vector<T const*> parameter_pointers() const {
    std::vector<T const*> pointers;
    for (auto const& tensor : parameters) pointers.push_back(tensor.data());
    return pointers;
  }
  std::span<std::byte> memory() { return {workspace.get(), model.workspace_bytes().count}; }

  template <class Team>
  double step(float loss_scale, Team& team) {
    std::vector<T*> gradient_pointers;
    for (auto& tensor : gradients) gradient_pointers.push_back(tensor.data());
    return model.step(parameter_pointers(), gradient_pointers, tokens, loss_scale, memory(), team);
  }
  double step(float loss_scale = 1) {
    serial_team team;
    return step(loss_scale, team);
  }
  double evaluate() {
    serial_team team;
    return model.evaluate(parameter_pointers(), tokens, memory(), team);
  }
  // The loss of every token, one sequence after the other.
  std::vector<train_gpt::arithmetic_t<T>> token_losses() {
    using real = train_gpt::arithmetic_t<T>;
    serial_team team;
    arena pieces(workspace.get());
    activations<real> x(config, batch, pieces);
    auto const pointers = parameter_pointers();
    (void)train_gpt::forward<T>(config, batch, pointers, tokens, x, team);
    return std::vector<real>(x.losses, x.losses + x.tokens);
  }

  transformer_config config;
  std::size_t batch;
  transformer<T> model;
  std::vector<std::vector<T>> parameters;
  std::vector<std::vector<T>> gradients;
  std::vector<std::uint8_t> tokens;
  std::unique_ptr<std::byte, freed> workspace;
};

constexpr transformer_config tiny{.vocabulary = 11, .context = 9, .width = 8, .heads = 2, .layers = 2};
// More rows and columns than one piece of any loop, and sizes that fill no tile.
constexpr transformer_config uneven{.vocabulary = 256, .context = 40, .width = 75, .heads = 5, .layers = 2};

}  // namespace

TEST_CASE("transformer: every element's gradient equals its central finite difference") {
  fixture<double> f(tiny, 2);
  f.roughen();
  constexpr double scale = 8;
  constexpr double h = 1e-5;
  (void)f.step(static_cast<float>(scale));
  auto const tensors = parameter_tensors(f.config);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    double worst = 0;
    double largest = 0;
    for (std::size_t i = 0; i < f.parameters[t].size(); ++i) {
      double& value = f.parameters[t][i];
      double const at = value;
      value = at + h;
      double const above = f.evaluate();
      value = at - h;
      double const below = f.evaluate();
      value = at;
      double const gradient = f.gradients[t][i] / scale;
      worst = std::fmax(worst, std::fabs((above - below) / (2 * h) - gradient));
      largest = std::fmax(largest, std::fabs(gradient));
    }
    INFO(tensors[t].name);
    CHECK(largest > 1e-3);
    CHECK(worst < 1e-6 * largest + 1e-9);
  }
}

TEST_CASE("transformer: each tensor's gradient predicts the loss along a direction, in sizes that fill no tile") {
  fixture<double> f(uneven, 3);
  f.roughen();
  (void)f.step();
  auto const tensors = parameter_tensors(f.config);
  spillway::counter_rng random{.seed = 13};
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    auto const at = f.parameters[t];
    double predicted = 0;
    std::vector<double> direction(at.size());
    for (std::size_t i = 0; i < at.size(); ++i) {
      direction[i] = (random() & 1U) != 0 ? 1.0 : -1.0;
      predicted += direction[i] * f.gradients[t][i];
    }
    constexpr double h = 1e-6;
    for (std::size_t i = 0; i < at.size(); ++i) f.parameters[t][i] = at[i] + h * direction[i];
    double const above = f.evaluate();
    for (std::size_t i = 0; i < at.size(); ++i) f.parameters[t][i] = at[i] - h * direction[i];
    double const below = f.evaluate();
    f.parameters[t] = at;
    INFO(tensors[t].name);
    CHECK_THAT((above - below) / (2 * h), Catch::Matchers::WithinAbs(predicted, 1e-4 * std::fabs(predicted) + 1e-7));
  }
}

TEST_CASE("transformer: gradients in fp32 are those in double up to rounding") {
  fixture<double> wide(uneven, 3);
  fixture<float> narrow(uneven, 3);
  wide.roughen();
  narrow.roughen();
  CHECK_THAT(narrow.step(), Catch::Matchers::WithinAbs(wide.step(), 1e-4));
  auto const tensors = parameter_tensors(uneven);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    double difference = 0;
    double size = 0;
    for (std::size_t i = 0; i < wide.gradients[t].size(); ++i) {
      double const d = static_cast<double>(narrow.gradients[t][i]) - wide.gradients[t][i];
      difference += d * d;
      size += wide.gradients[t][i] * wide.gradients[t][i];
    }
    INFO(tensors[t].name);
    CHECK(std::sqrt(difference) < 1e-4 * std::sqrt(size));
  }
}

TEST_CASE("transformer: bf16 gradients are the fp32 gradients of the widened parameters, narrowed") {
  fixture<bf16> stored(uneven, 2);
  fixture<float> widened(uneven, 2);
  for (std::size_t t = 0; t < stored.parameters.size(); ++t) {
    for (std::size_t i = 0; i < stored.parameters[t].size(); ++i) {
      widened.parameters[t][i] = static_cast<float>(stored.parameters[t][i]);
    }
  }
  CHECK_THAT(stored.step(64), Catch::Matchers::WithinAbs(widened.step(64), 1e-5));
  std::size_t different = 0;
  for (std::size_t t = 0; t < stored.gradients.size(); ++t) {
    auto const& wanted = widened.gradients[t];
    float largest = 0;
    for (float const value : wanted) largest = std::fmax(largest, std::fabs(value));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      // Half a step of bf16, and what fp32 may differ by where the compiler fuses other operations for other types.
      float const allowed = std::fabs(wanted[i]) / 256 + 1e-5F * largest;
      if (!(std::fabs(static_cast<float>(stored.gradients[t][i]) - wanted[i]) <= allowed)) ++different;
    }
  }
  CHECK(different == 0);
}

TEST_CASE("transformer: the loss scale multiplies the gradients and not the loss") {
  fixture<float> plain(tiny, 2);
  fixture<float> scaled(tiny, 2);
  CHECK(plain.step(1) == scaled.step(1024));
  for (std::size_t t = 0; t < plain.gradients.size(); ++t) {
    for (std::size_t i = 0; i < plain.gradients[t].size(); ++i) {
      CHECK(std::fabs(plain.gradients[t][i] * 1024 - scaled.gradients[t][i]) <=
            1e-6F * std::fabs(scaled.gradients[t][i]) + 1e-30F);
    }
  }
}

TEST_CASE("transformer: an untrained model's loss is near that of a uniform guess") {
  fixture<bf16> f({.vocabulary = 256, .context = 32, .width = 64, .heads = 4, .layers = 3}, 4);
  CHECK_THAT(f.evaluate(), Catch::Matchers::WithinAbs(std::log(256.0), 0.05));
}

TEST_CASE("transformer: following the gradient lowers the loss") {
  fixture<float> f(tiny, 2);
  double const first = f.step();
  for (int i = 0; i < 100; ++i) {
    for (std::size_t t = 0; t < f.parameters.size(); ++t) {
      for (std::size_t j = 0; j < f.parameters[t].size(); ++j) f.parameters[t][j] -= 0.3F * f.gradients[t][j];
    }
    (void)f.step();
  }
  CHECK(f.evaluate() < 0.5 * first);
}

TEST_CASE("transformer: teams of any size give the same bits") {
  fixture<bf16> alone(uneven, 3);
  double const loss = alone.step(16);
  for (unsigned const threads : {1U, 2U, 3U}) {
    fixture<bf16> together(uneven, 3);
    thread_team team(threads);
    CHECK(together.step(16, team) == loss);
    CHECK(together.gradients == alone.gradients);
  }
}

TEST_CASE("transformer: a step leaves nothing behind that the next one sees") {
  fixture<bf16> fresh(uneven, 2);
  fixture<bf16> used(uneven, 2);
  auto const tokens = used.tokens;
  for (auto& token : used.tokens) token = static_cast<std::uint8_t>(token ^ 0x55U);
  (void)used.step();
  used.tokens = tokens;
  CHECK(used.step() == fresh.step());
  CHECK(used.gradients == fresh.gradients);
}

TEST_CASE("transformer: a later token changes no earlier loss, and no other sequence") {
  fixture<bf16> f(uneven, 2);
  f.roughen();
  auto const before = f.token_losses();
  std::size_t const context = f.config.context;
  std::size_t const changed = 17;  // of the first sequence: predicted by row 16, read by row 17
  f.tokens[changed] = static_cast<std::uint8_t>(f.tokens[changed] ^ 0x80U);
  auto const after = f.token_losses();
  for (std::size_t row = 0; row < 2 * context; ++row) {
    INFO(row);
    bool const may_change = row + 1 >= changed && row < context;
    CHECK((before[row] != after[row]) == may_change);
  }
}

TEST_CASE("transformer: a sequence has the same losses wherever it is in a batch") {
  fixture<float> batch(uneven, 3);
  auto const together = batch.token_losses();
  for (std::size_t i = 0; i < 3; ++i) {
    fixture<float> alone(uneven, 1);
    auto const first = batch.tokens.begin() + static_cast<std::ptrdiff_t>(i * (uneven.context + 1));
    alone.tokens.assign(first, first + static_cast<std::ptrdiff_t>(uneven.context + 1));
    auto const losses = alone.token_losses();
    for (std::size_t row = 0; row < uneven.context; ++row) {
      CHECK_THAT(losses[row],
                 Catch::Matchers::WithinAbs(static_cast<double>(together[i * uneven.context + row]), 1e-5));
    }
  }
}

TEST_CASE("transformer: exactly the workspace that it asks for is used") {
  fixture<bf16> f(tiny, 2);
  auto const size = f.model.workspace_bytes().count;
  f.workspace.reset(static_cast<std::byte*>(std::aligned_alloc(64, size + 64)));
  std::memset(f.workspace.get(), 0xA5, size + 64);
  (void)f.step();
  for (std::size_t i = 0; i < 64; ++i) CHECK(f.workspace.get()[size + i] == std::byte{0xA5});
  bool last_used = false;
  for (std::size_t i = size - 64; i < size; ++i) last_used = last_used || f.workspace.get()[i] != std::byte{0xA5};
  CHECK(last_used);
}

TEST_CASE("transformer: a parameter that is not a number makes the loss and the gradients so") {
  for (float const bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    fixture<float> f(tiny, 2);
    f.parameters[train_gpt::index_of(1, train_gpt::mlp_in_weight)][3] = bad;
    CHECK(std::isnan(f.step()));
    bool seen = false;
    for (float const g : f.gradients[train_gpt::token_embedding]) seen = seen || std::isnan(g);
    CHECK(seen);
  }
}

TEST_CASE("transformer: sizes that make no model are refused") {
  auto const refused = [](transformer_config const& config, std::size_t batch) {
    try {
      transformer<bf16> const model(config, batch);
    } catch (spillway::error const& e) {
      return e.code() == make_error_code(spillway::errc::invalid_option);
    }
    return false;
  };
  CHECK(refused({.width = 100, .heads = 8}, 1));
  CHECK(refused({.heads = 0}, 1));
  CHECK(refused({.width = 0}, 1));
  CHECK(refused({.vocabulary = 257}, 1));
  CHECK(refused({.vocabulary = 0}, 1));
  CHECK(refused({.context = 0}, 1));
  CHECK(refused({.layers = 0}, 1));
  CHECK(refused({}, 0));
  CHECK(refused({.width = std::size_t{1} << 40U}, 1));
  CHECK(refused({.layers = std::size_t{1} << 60U}, 1));
  CHECK_FALSE(refused({}, 1));
}

TEST_CASE("transformer: the tensors have distinct names, PyTorch shapes, and decay on matrices only") {
  auto const tensors = parameter_tensors({.vocabulary = 256, .context = 16, .width = 32, .heads = 4, .layers = 2});
  REQUIRE(tensors.size() == 2 + 2 * train_gpt::tensors_per_block + 2);
  std::set<std::string> names;
  for (auto const& tensor : tensors) {
    names.insert(tensor.name);
    CHECK(tensor.decay == (tensor.shape.size() == 2));
  }
  CHECK(names.size() == tensors.size());
  CHECK(tensors[0].name == "wte.weight");
  auto const& qkv = tensors[train_gpt::index_of(1, train_gpt::qkv_weight)];
  CHECK(qkv.name == "h.1.attn.qkv.weight");
  CHECK(qkv.shape == std::vector<std::size_t>{96, 32});
  CHECK(tensors[train_gpt::index_of(0, train_gpt::mlp_out_bias)].name == "h.0.mlp.proj.bias");
  CHECK(tensors.back().name == "ln_f.bias");
}

TEST_CASE("transformer: initial weights are normal, smaller on the way to the residual stream, biases 0, norms 1") {
  transformer_config const config{.vocabulary = 256, .context = 64, .width = 128, .heads = 4, .layers = 8};
  auto const tensors = parameter_tensors(config);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    std::vector<float> values(tensors[t].elements(), -5.0F);
    train_gpt::initialise(config, 1, t, values);
    INFO(tensors[t].name);
    if (!tensors[t].decay) {
      bool const norm = tensors[t].name.find("ln_") != std::string::npos && tensors[t].name.ends_with("weight");
      CHECK(values == std::vector<float>(values.size(), norm ? 1.0F : 0.0F));
      continue;
    }
    double sum = 0;
    double squares = 0;
    for (float const value : values) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    auto const n = static_cast<double>(values.size());
    double const wanted = tensors[t].name.ends_with("proj.weight") ? 0.02 / 4 : 0.02;
    CHECK(std::fabs(sum / n) < 5 * wanted / std::sqrt(n));
    CHECK_THAT(std::sqrt(squares / n), Catch::Matchers::WithinRel(wanted, 0.03));
  }
}

TEST_CASE("transformer: initial weights depend on seed, tensor and element, and have the same bits everywhere") {
  transformer_config const config{};
  std::vector<float> a(4), b(4), c(4);
  train_gpt::initialise(config, 42, 0, a);
  train_gpt::initialise(config, 43, 0, b);
  train_gpt::initialise(config, 42, 1, c);
  CHECK(a != b);
  CHECK(a != c);
  CHECK(a[0] != a[1]);
  CHECK(a == std::vector<float>{-0x1.a461a6p-8F, -0x1.39842ep-6F, 0x1.f0893cp-8F, -0x1.4ac772p-6F});
}

TEST_CASE("transformer: the vectorised exponential is within two units in the last place, and limited") {
  for (float x = -87; x < 87; x += 0.0137F) {
    double const wanted = std::exp(static_cast<double>(x));
    CHECK(std::fabs(static_cast<double>(train_gpt::exponential(x)) - wanted) < wanted * 2.4e-7);
  }
  CHECK(train_gpt::exponential(0.0F) == 1.0F);
  CHECK(train_gpt::exponential(-1000.0F) < 1e-37F);
  CHECK(train_gpt::exponential(1000.0F) > 1e37F);
  CHECK(std::isnan(train_gpt::exponential(std::numeric_limits<float>::quiet_NaN())));
}
