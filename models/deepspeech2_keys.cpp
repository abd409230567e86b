// The keys of a Deep Speech 2 config.json: flat, or nested as deepspeech.pytorch has them (`model` and `data.spect` in
// its Hydra configuration, `audio_conf` in older checkpoints). Keys of other implementations are refused where they
// would change what is computed.
#include "models/deepspeech2.h"

namespace kbench {
namespace {

constexpr UnderstoodKeys deepspeech2_understood[] = {
    {"model_type", "the family"},
    {"name", "its name"},
    {"rnn_type hidden_size hidden_layers", "the recurrent layers"},
    {"conv_channels", "of both convolutions"},
    {"labels", "how many, or a list of them"},
    {"sample_rate window_size", "the spectrogram has sample_rate * window_size / 2 + 1 rows"},
    {"model.rnn_type", "as Hydra nests it", "rnn_type"},
    {"model.hidden_size", "as Hydra nests it", "hidden_size"},
    {"model.hidden_layers", "as Hydra nests it", "hidden_layers"},
    {"model.conv_channels", "beside the others", "conv_channels"},
    {"model.labels data.labels", "beside the others", "labels"},
    {"data.spect.sample_rate spect.sample_rate audio_conf.sample_rate", "as Hydra or a checkpoint nests it",
     "sample_rate"},
    {"data.spect.window_size spect.window_size audio_conf.window_size", "as Hydra or a checkpoint nests it",
     "window_size"},
};

constexpr RefusedKeys deepspeech2_refused[] = {
    {"bidirectional", "[true]", "kbench's recurrent layers go both ways, and it has no lookahead convolution"},
    {"lookahead_context context lookahead row_conv use_lookahead", "[0, false]",
     "kbench's recurrent layers go both ways, and it has no lookahead convolution", "", "bidirectional"},
    {"unidirectional rnn_unidirectional streaming", "[false]",
     "kbench's recurrent layers go both ways, and it has no lookahead convolution"},
    {"model", "[\"bidirectional\", \"deepspeech2\", \"deepspeech\"]",
     "kbench reads its keys only where it is an object"},
    {"rnn_direction direction", "[\"bidirectional\", \"bidirect\"]", "kbench's recurrent layers go both ways"},
    {"window_stride", "[0.01]", "kbench counts frames of 10 ms"},
    {"num_conv_layers n_conv_layers", "[2]", "kbench's Deep Speech 2 has two convolutions"},
    {"conv conv_layers filters kernel_size kernel_sizes stride strides", "[]",
     "the convolutions are those of the paper, 41 by 11 and 21 by 11"},
    {"rnn_layer_size rnn_hidden_size rnn_size rnn_cell_dim rnn_dim n_hidden hidden_dim rnn_units", "[]",
     "kbench calls it hidden_size", "hidden_size"},
    {"num_rnn_layers num_layers n_layers nb_layers rnn_layers n_rnn_layers num_hidden_layers", "[]",
     "kbench calls it hidden_layers", "hidden_layers"},
    {"rnn_cell cell cell_type rnn use_gru", "[]", "kbench calls it rnn_type", "rnn_type"},
    {"share_rnn_weights share_weights", "[false]", "every direction of kbench's has weights of its own"},
    {"batch_norm use_batch_norm", "[true]", "a batch norm stands before every recurrent layer but the first"},
    {"layer_norm use_layer_norm residual", "[false]", "kbench's Deep Speech 2 has batch norms alone"},
    {"projection_size proj_size", "[0]", "kbench's recurrent layers have no projection"},
    {"num_fc_layers n_fc_layers", "[1]", "one product follows the recurrent layers"},
    {"fc_layers fc_layers_size_list", "[[]]", "one product follows the recurrent layers"},
    {"n_class num_classes n_classes output_dim dict_dim vocab_size num_labels", "[]", "kbench calls it labels",
     "labels"},
    {"input_dim input_size feat_dim n_feature n_features num_features n_mels n_fft n_freq frequencies", "[]",
     "the spectrogram has sample_rate * window_size / 2 + 1 rows: give those"},
    {"activation", "[\"hardtanh\"]", "hardtanh follows each convolution"},
    {"quantization_config quantization adapters peft_config lora", "[{}, [], false]",
     "kbench computes with weights as they are"},
    {"auto_map", "[{}]", "the model is code of its own, which kbench does not run"},
};

constexpr HarmlessKeys deepspeech2_harmless[] = {
    {"transformers_version torch_dtype dtype architectures _name_or_path version seed description",
     "how it was saved; --precision chooses the precision"},
    {"window normalize normalization augmentation speed_volume_perturb spec_augment noise_dir noise_prob noise_min noise_max",
     "what makes a spectrogram, which kbench is given"},
    {"labels_path train_path val_path test_path train_manifest val_manifest batch_size num_workers prepare_data_per_node data_dir",
     "where data come from; --batch chooses the batch"},
    {"dropout rnn_dropout", "an evaluation has no dropout, and `kbench train` says that it has none"},
    {"optim optimizer trainer checkpoint checkpointing hydra apex load_auto_checkpoint epochs lr learning_rate learning_anneal weight_decay momentum eps betas max_norm precision gpus",
     "how it was trained"},
};

}  // namespace

const FamilyKeys& deepspeech2_keys() {
    static constexpr FamilyKeys keys{"a Deep Speech 2", deepspeech2_understood, deepspeech2_refused,
                                     deepspeech2_harmless};
    return keys;
}

}  // namespace kbench
