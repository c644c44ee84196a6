"""Engines that run a model with a pack: transformers here, others beside it."""
