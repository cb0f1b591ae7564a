"""The LSTM's inner loops in C, optional: built by whoever wants them, chosen by the processor."""
