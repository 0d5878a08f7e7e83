//! Cache keys of tuned configs.

use crate::device::Device;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use warpline_kernels::AnyWorkload;

/// The cache key of a tuned config: everything that determines which config is fastest. All problems
/// of a [`Bucket`](warpline_kernels::Bucket) share a key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TuneKey {
    /// The family.
    pub family: String,
    /// Types, layouts and alignment.
    pub class: Value,
    /// The config fields that the caller fixed.
    pub fixed: Value,
    /// The upper ends of the bucket's extents.
    pub extents: Value,
    /// The rule that assigns extents to buckets.
    pub rule: String,
    /// Whether every run must produce the same bits.
    pub deterministic: bool,
    /// The GPU.
    pub device: String,
    /// The CUDA version of the driver.
    pub driver: String,
}

/// The hash of a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct TuneKeyHash(pub(super) [u8; 32]);

/// The maximum length of the readable part of a file name.
const MAX_READABLE: usize = 72;

impl TuneKey {
    /// Returns the key of a workload on a GPU; `None` on the CPU executor or if the workload belongs to
    /// no family.
    pub fn new(work: &dyn AnyWorkload, device: &Device, deterministic: bool) -> Option<Self> {
        let (tuning, info) = (work.tuning()?, device.info());
        let gpu = info.gpu?;
        let bucket = tuning.bucket;
        Some(Self {
            family: work.family().into(),
            class: tuning.class,
            fixed: tuning.fixed,
            extents: bucket.extents,
            rule: bucket.rule.into(),
            deterministic,
            device: format!(
                "{}, {} SMs, compute capability {}",
                info.description, gpu.sms, gpu.compute_capability
            ),
            driver: gpu.driver,
        })
    }

    /// Returns the hash of the key.
    pub(super) fn hash(&self) -> TuneKeyHash {
        // Serialization of strings, numbers and JSON values cannot fail.
        let text = serde_json::to_string(self).unwrap_or_default();
        TuneKeyHash(*blake3::hash(text.as_bytes()).as_bytes())
    }

    /// Returns the file name: a readable part and a hash.
    pub(super) fn file_name(&self) -> String {
        let mut name = self.family.clone();
        let parts = [&self.class, &self.fixed, &self.extents];
        for (field, value) in parts.iter().filter_map(|v| v.as_object()).flatten() {
            match value {
                Value::Bool(true) => name += &format!("-{field}"),
                Value::Bool(false) => name += &format!("-not-{field}"),
                Value::Number(n) => name += &format!("-{field}{n}"),
                Value::String(text) => name += &format!("-{text}"),
                _ => {}
            }
        }
        let sanitize = |c: char| match c {
            c if c.is_ascii_alphanumeric() || c == '-' => c.to_ascii_lowercase(),
            _ => '_',
        };
        let name: String = name.chars().map(sanitize).take(MAX_READABLE).collect();
        let hash = blake3::Hash::from_bytes(self.hash().0).to_hex();
        format!("{name}-{}", &hash[..16])
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a test key.
    pub(in crate::tune) fn key(rows: u64) -> TuneKey {
        TuneKey {
            family: "softmax".into(),
            class: json!({ "dtype": "bf16", "vectors": [], "aligned": true }),
            fixed: json!({}),
            extents: json!({ "cols": 4096, "rows": rows }),
            rule: "by rows".into(),
            deterministic: true,
            device: "Stand-in".into(),
            driver: "12.8".into(),
        }
    }

    #[test]
    fn every_field_changes_the_key() {
        let original = key(8);
        let others = [
            key(16),
            TuneKey {
                family: "layer-norm".into(),
                ..key(8)
            },
            TuneKey {
                class: json!({ "dtype": "f32", "vectors": [], "aligned": true }),
                ..key(8)
            },
            TuneKey {
                device: "Stand-in 2".into(),
                ..key(8)
            },
            TuneKey {
                rule: "by columns".into(),
                ..key(8)
            },
            TuneKey {
                deterministic: false,
                ..key(8)
            },
            TuneKey {
                fixed: json!({ "stages": 3 }),
                ..key(8)
            },
            TuneKey {
                driver: "13.0".into(),
                ..key(8)
            },
        ];
        for other in others {
            assert_ne!(
                (original.hash(), original.file_name()),
                (other.hash(), other.file_name())
            );
        }
        assert_eq!(original.hash(), key(8).hash());
    }

    #[test]
    fn a_file_name_is_readable_and_safe() {
        let name = key(8).file_name();
        let (readable, hash) = name.rsplit_once('-').unwrap();
        assert_eq!(readable, "softmax-bf16-aligned-cols4096-rows8");
        assert_eq!(hash.len(), 16);
        let odd = TuneKey {
            family: "../é".repeat(99),
            ..key(8)
        };
        assert!(odd.file_name().len() < 100);
        assert!(
            odd.file_name()
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        );
    }

    #[test]
    fn the_cpu_executor_has_no_key() {
        use warpline_kernels::{DeviceKind, registry};
        let device = Device::cpu();
        let work = registry()[0]
            .default_workload(DeviceKind::Cpu, &device.target())
            .unwrap();
        assert!(TuneKey::new(work.as_ref(), &device, true).is_none());
    }
}
