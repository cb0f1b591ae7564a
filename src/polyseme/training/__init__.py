"""The only training loop: batches in, a better module out. Knows no language.

`loop.train` takes a `train_module.TrainModule`, its `settings.TrainingConfig` and a folder; the
same call again goes on where the last one stopped, bit for bit. Nothing is imported here, so that a
command can show its settings without loading torch.
"""
