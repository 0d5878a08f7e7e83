"""Warpline's kernels against torch, cuBLAS, cuDNN and Triton, in one process.

``python3 -m warpline.bench memory`` measures a suite; ``--list`` shows what
there is and needs no GPU. Which problems there are is declared by the Rust
registry, what they are compared with in :mod:`warpline.bench.peers`.

Nothing here imports torch until something is measured.
"""


class Refusal(Exception):
    """What was asked cannot be done here; the message is a sentence for the user."""
