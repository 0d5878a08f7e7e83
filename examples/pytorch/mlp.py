"""A gated MLP with two Warpline ops, on torch tensors or NumPy arrays."""

import sys

import numpy as np
import warpline

try:
    import torch
except ImportError:
    torch = None


def mlp(x, gate, up, down):
    """Returns ``down(silu(x @ gate.T) * (x @ up.T))``."""
    return warpline.linear(warpline.swiglu(x, gate, up), down)


def reference(x, gate, up, down):
    """Computes the MLP in float64."""
    x, gate, up, down = (np.asarray(t, dtype=np.float64) for t in (x, gate, up, down))
    gated = x @ gate.T
    hidden = gated / (1 + np.exp(-gated)) * (x @ up.T)
    return hidden @ down.T


def main() -> int:
    """Runs the MLP and prints the error."""
    rng = np.random.default_rng(1)
    has_gpu = torch is not None and torch.cuda.is_available()
    tokens, features, hidden = (4096, 4096, 14336) if has_gpu else (64, 128, 256)
    shapes = [(tokens, features), (hidden, features), (hidden, features), (features, hidden)]
    values = [rng.standard_normal(shape, dtype=np.float32) / shape[1] ** 0.5 for shape in shapes]
    if torch is None:
        tensors = [value.astype(np.float16) for value in values]
        out, kind = mlp(*tensors), "NumPy arrays"
        exact = reference(*tensors)
    else:
        device = "cuda" if has_gpu else "cpu"
        tensors = [torch.tensor(value, device=device).to(torch.bfloat16) for value in values]
        run = torch.compile(mlp) if has_gpu else mlp
        out, kind = run(*tensors).float().cpu().numpy(), f"torch tensors on {device}"
        exact = reference(*(t.float().cpu().numpy() for t in tensors))
    error = np.abs(np.asarray(out, dtype=np.float64) - exact).max() / np.abs(exact).max()
    verdict = "PASS" if error < 2e-2 else "FAIL"
    print(f"{verdict}: {exact.size} elements, {kind}, max error {error:.1e} relative to the largest element")
    return 0 if verdict == "PASS" else 1


if __name__ == "__main__":
    sys.exit(main())
