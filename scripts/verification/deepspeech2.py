"""The sizes of deepspeech.pytorch's Deep Speech 2, as kbench's config.json gives them."""

CONFIG = {
    "model_type": "deepspeech2",
    "rnn_type": "lstm",
    "hidden_size": 1024,
    "hidden_layers": 5,
    "conv_channels": 32,
    "labels": 29,
    "sample_rate": 16000,
    "window_size": 0.02,
}
