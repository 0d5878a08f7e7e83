//! What a tuned config is looked up by.

use crate::device::Device;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use warpline_kernels::AnyWork;

/// What a tuned config is looked up by: all that decides which config is fastest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Key {
    /// The family.
    pub family: String,
    /// Types, layouts and alignment.
    pub class: Value,
    /// What the caller fixed of the config.
    pub fixed: Value,
    /// What the extents of the bucket have in common.
    pub extents: Value,
    /// The rule that made the bucket.
    pub rule: String,
    /// Must every run give the same bits?
    pub deterministic: bool,
    /// The GPU.
    pub device: String,
    /// The CUDA version of its driver.
    pub driver: String,
}

/// A key in 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Id(pub(super) [u8; 32]);

/// The longest readable part of a file's name.
const LONGEST: usize = 72;

impl Key {
    /// That of work on a GPU; none on the simulator, or of work that is not a family's.
    pub fn new(work: &dyn AnyWork, device: &Device, deterministic: bool) -> Option<Self> {
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

    /// The key in 32 bytes.
    pub(super) fn id(&self) -> Id {
        // Names and numbers always have a JSON form.
        let text = serde_json::to_string(self).unwrap_or_default();
        Id(*blake3::hash(text.as_bytes()).as_bytes())
    }

    /// The name of its file: what people read, and a hash.
    pub(super) fn file(&self) -> String {
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
        let plain = |c: char| match c {
            c if c.is_ascii_alphanumeric() || c == '-' => c.to_ascii_lowercase(),
            _ => '_',
        };
        let name: String = name.chars().map(plain).take(LONGEST).collect();
        let hash = blake3::Hash::from_bytes(self.id().0).to_hex();
        format!("{name}-{}", &hash[..16])
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// A key to test with.
    pub(in crate::tune) fn key(rows: u64) -> Key {
        Key {
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
    fn every_field_makes_another_key() {
        let one = key(8);
        let others = [
            key(16),
            Key {
                rule: "by columns".into(),
                ..key(8)
            },
            Key {
                deterministic: false,
                ..key(8)
            },
            Key {
                fixed: json!({ "stages": 3 }),
                ..key(8)
            },
            Key {
                driver: "13.0".into(),
                ..key(8)
            },
        ];
        for other in others {
            assert_ne!((one.id(), one.file()), (other.id(), other.file()));
        }
        assert_eq!(one.id(), key(8).id());
    }

    #[test]
    fn a_file_is_named_for_people() {
        let name = key(8).file();
        let (readable, hash) = name.rsplit_once('-').unwrap();
        assert_eq!(readable, "softmax-bf16-aligned-cols4096-rows8");
        assert_eq!(hash.len(), 16);
        let odd = Key {
            family: "../é".repeat(99),
            ..key(8)
        };
        assert!(odd.file().len() < 100);
        assert!(
            odd.file()
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        );
    }

    #[test]
    fn the_simulator_has_no_key() {
        use warpline_kernels::{Place, registry};
        let device = Device::cpu();
        let work = registry()[0]
            .default_work(Place::Cpu, &device.target())
            .unwrap();
        assert!(Key::new(work.as_ref(), &device, true).is_none());
    }
}
