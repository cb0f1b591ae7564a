"""Published ELMo weights (AllenNLP, bilm-tf, ELMoForManyLangs) to our models and back."""
