// The keys of a perceptron's config.json, and what each means.
#include "models/mlp.h"

namespace kbench {
namespace {

constexpr UnderstoodKeys mlp_understood[] = {
    {"model_type", "the family"},
    {"name", "its name"},
    {"sizes", "columns of the input, of what lies between layers, and of the output"},
};

constexpr RefusedKeys mlp_refused[] = {
    {"activation activation_function hidden_act nonlinearity", "[\"gelu_new\", \"gelu_pytorch_tanh\", \"gelu_tanh\"]",
     "kbench's perceptron has GELU in its tanh form between layers"},
    {"output_activation final_activation", "[\"none\", \"linear\", \"identity\"]",
     "nothing follows the last layer of kbench's"},
    {"bias use_bias", "[true]", "every layer of kbench's has a bias"},
    {"layer_norm batch_norm norm normalization residual skip skip_connections", "[false, \"none\"]",
     "kbench's perceptron is dense layers, their biases and GELU"},
    {"hidden_size hidden_sizes hidden_dim hidden_dims layers layer_sizes num_layers n_layers num_hidden_layers input_size input_dim in_features output_size output_dim out_features num_classes intermediate_size",
     "[]", "the widths stand in sizes, such as [784, 512, 10]"},
    {"quantization_config quantization adapters peft_config lora", "[{}, [], false]",
     "kbench computes with weights as they are"},
    {"auto_map", "[{}]", "the model is code of its own, which kbench does not run"},
};

constexpr HarmlessKeys mlp_harmless[] = {
    {"transformers_version torch_dtype dtype architectures _name_or_path version seed description",
     "how it was saved; --precision chooses the precision"},
    {"dropout dropout_prob batch_size lr learning_rate epochs optimizer weight_decay", "how it was trained"},
};

}  // namespace

const FamilyKeys& mlp_keys() {
    static constexpr FamilyKeys keys{"a perceptron", mlp_understood, mlp_refused, mlp_harmless};
    return keys;
}

}  // namespace kbench
