//! The linear layers of public models, for the suites `layers`, `layers-fp8` and `layers-gated`.

/// Layers of one model, each as [N, K].
type Layers = &'static [[u32; 2]];

/// Models and their layers. Layers that occur in an earlier model are left out.
const MODELS: [(&str, Layers); 13] = [
    (
        "Llama 3 8B",
        &[[6144, 4096], [4096, 4096], [28672, 4096], [4096, 14336]],
    ),
    (
        "Llama 3 70B",
        &[[10240, 8192], [8192, 8192], [57344, 8192], [8192, 28672]],
    ),
    (
        "Qwen2.5 7B",
        &[[4608, 3584], [3584, 3584], [18944, 3584], [3584, 18944]],
    ),
    (
        "Qwen2.5 32B",
        &[[7168, 5120], [5120, 5120], [27648, 5120], [5120, 27648]],
    ),
    ("Mistral 7B", &[[32768, 4096], [1024, 4096]]),
    (
        "Gemma 2 9B",
        &[[8192, 3584], [3584, 4096], [14336, 3584], [3584, 14336]],
    ),
    (
        "DeepSeek-V3",
        &[
            [1536, 7168],
            [24576, 1536],
            [576, 7168],
            [32768, 512],
            [7168, 16384],
            [18432, 7168],
            [7168, 18432],
            [2048, 7168],
            [7168, 2048],
        ],
    ),
    (
        "GPT-2",
        &[
            [2304, 768],
            [768, 768],
            [3072, 768],
            [768, 3072],
            [50257, 768],
        ],
    ),
    ("BERT large", &[[1024, 1024], [4096, 1024]]),
    ("ViT-B/16", &[[1000, 768]]),
    (
        "ViT-H/14",
        &[[3840, 1280], [1280, 1280], [5120, 1280], [1280, 5120]],
    ),
    (
        "SigLIP so400m",
        &[[3456, 1152], [1152, 1152], [4304, 1152], [1152, 4304]],
    ),
    (
        "DETR",
        &[[256, 256], [512, 256], [2048, 256], [256, 2048], [92, 256]],
    ),
];

/// The gated layers of the models: extents of gate and of up.
const GATED: [(&str, Layers); 6] = [
    ("Llama 3 8B", &[[14336, 4096]]),
    ("Llama 3 70B", &[[28672, 8192]]),
    ("Qwen2.5", &[[18944, 3584], [27648, 5120], [4864, 896]]),
    ("Gemma 2", &[[14336, 3584], [9216, 2304]]),
    ("DeepSeek-V3", &[[18432, 7168], [2048, 7168]]),
    ("ModernBERT", &[[1152, 768], [2624, 1024]]),
];

/// Rows of A: tokens of decoding, prefill, batches of images.
const ROWS: [u32; 16] = [
    1, 3, 16, 33, 64, 96, 128, 197, 256, 577, 1000, 1576, 2048, 4104, 6304, 8192,
];

/// Every layer with `count` different numbers of rows, which change from layer to layer.
fn with_rows(models: &[(&str, Layers)], count: usize) -> Vec<[u32; 3]> {
    let layers = models.iter().flat_map(|(_, layers)| layers.iter());
    let rows = |i: usize| (0..count).map(move |j| ROWS[(i + 5 * j) % ROWS.len()]);
    let all = layers.enumerate();
    all.flat_map(|(i, &[n, k])| rows(i).map(move |m| [m, n, k]))
        .collect()
}

/// Returns the extents of linear layers.
pub(super) fn linear() -> Vec<[u32; 3]> {
    with_rows(&MODELS, 6)
}

/// Returns the extents of the linear layers that also run in fp8.
pub(super) fn fp8() -> Vec<[u32; 3]> {
    let mut all = with_rows(&MODELS, 4);
    all.retain(|[_, n, k]| n.is_multiple_of(16) && k.is_multiple_of(16));
    all
}

/// Returns the extents of gated layers.
pub(crate) fn gated() -> Vec<[u32; 3]> {
    with_rows(&GATED, 8)
}

/// Returns extents with an odd N or K.
pub(super) fn odd() -> Vec<[u32; 3]> {
    const LAYERS: [(&str, Layers); 1] = [(
        "odd",
        &[
            [50257, 768],
            [1001, 2048],
            [768, 147],
            [96, 84],
            [4096, 4095],
            [4095, 4096],
            [2049, 2049],
            [11008, 4093],
        ],
    )];
    with_rows(&LAYERS, 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_problem_occurs_twice() {
        for all in [linear(), fp8(), gated(), odd()] {
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        }
        assert!(linear().len() > 250);
    }
}
