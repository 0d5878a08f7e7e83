"""Benchmarks Warpline's kernels against torch, cuBLAS, cuDNN and Triton in one process.

``python3 -m warpline.bench memory`` measures a suite; ``--list`` lists suites and
problems and needs no GPU. The Rust registry declares the problems,
:mod:`warpline.bench.peers` the implementations to compare with.

torch is imported only when something is measured.
"""


class BenchError(Exception):
    """Bad input, or a missing requirement of this machine; the message is for the user."""
