"""Benchmarks of the decision machine: what watching costs, what a decision costs, and peers.

python -m benchmarks --help
"""
