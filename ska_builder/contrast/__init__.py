"""Contrast data: pairs of continuations that do and do not conform to a rule."""
