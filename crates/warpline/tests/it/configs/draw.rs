//! Random flags of families.

use warpline::Timing;
use warpline::estimate::simulation_seconds;
use warpline::kernels::field::{Field, FieldKind};
use warpline::kernels::numbers::Random;
use warpline::kernels::{AnyFamily, AnyWorkload, DeviceKind, FamilyError, Request, registry};
use warpline_testkit::cores::for_each;
use warpline_testkit::full::few_or;
use warpline_testkit::kernel::TARGET;

/// Small extents, odd ones, and neighbors of powers of two.
const EXTENTS: [u64; 30] = [
    1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64, 65, 72, 80, 96, 100,
    128, 129, 160, 256, 264,
];
/// Large extents, which the CPU executor does not run.
const LARGE: [u64; 10] = [
    512, 1000, 1024, 4096, 4104, 5000, 8192, 20_092, 65_536, 131_072,
];
/// Values of config fields.
const COUNTS: [u64; 34] = [
    0,
    1,
    1,
    2,
    2,
    3,
    3,
    4,
    4,
    5,
    6,
    7,
    8,
    12,
    15,
    16,
    20,
    24,
    30,
    31,
    32,
    33,
    48,
    64,
    96,
    128,
    160,
    192,
    256,
    512,
    1024,
    4096,
    65_536,
    u32::MAX as u64,
];

/// The size of problems.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// Small enough for a short simulation.
    Small,
    /// Any size that a GPU supports.
    Any,
}

/// Draws random flags.
pub(crate) struct Draw(Random);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    /// Draws a seed.
    pub(crate) fn seed(&mut self) -> u64 {
        self.0.bits()
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0.bits() % n
    }

    fn choose<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// Draws problem flags.
    fn problem(&mut self, family: &dyn AnyFamily, size: Size) -> Vec<String> {
        let mut flags = Vec::new();
        // Fields with `requires` belong to another family, to which this one redirects requests.
        let fields = family.fields(DeviceKind::Cpu).problem.into_iter();
        for field in &fields.filter(|f| f.requires.is_none()).collect::<Vec<_>>() {
            let id = field.name;
            let chance = match id {
                "levels" | "spatial_size" | "scale" => 5,
                // Most draws are no multiple of each other.
                "kv_heads" => 10,
                // Several numbers; `draw_problem` of the family draws them.
                id if id.ends_with("strides") => 0,
                id if id.ends_with("stride") || id.ends_with("step") => 10,
                _ => 90,
            };
            if self.percent(chance) {
                let value = self.keyword(field).unwrap_or_else(|| self.extent(id, size));
                flags.push(format!("{}={value}", field.flag()));
            }
        }
        flags
    }

    /// Draws a few config flags near the selected config.
    pub(crate) fn config(
        &mut self,
        family: &dyn AnyFamily,
        selected: &serde_json::Value,
    ) -> Vec<String> {
        let mut fields = family.fields(DeviceKind::Cpu).config;
        fields.retain(|field| field.requires.is_none());
        let mut flags = Vec::new();
        for _ in 0..1 + self.below(4) {
            if fields.is_empty() {
                break;
            }
            let field = fields.swap_remove(self.below(fields.len() as u64) as usize);
            let near = selected.get(field.name).and_then(|v| v.as_u64());
            let value = self.keyword(&field).unwrap_or_else(|| self.count(near));
            flags.push(format!("{}={value}", field.flag()));
        }
        flags
    }

    /// Draws a keyword or boolean; `None` for a number field.
    fn keyword(&mut self, field: &Field) -> Option<String> {
        match &field.kind {
            FieldKind::Number { .. } => None,
            FieldKind::Flag => Some(self.percent(50).to_string()),
            FieldKind::Keywords(all) => Some(self.choose(all).name.to_owned()),
        }
    }

    /// Draws a config value: near another one, or any.
    fn count(&mut self, near: Option<u64>) -> String {
        let any = self.choose(&COUNTS);
        let count = match near {
            Some(n) if self.percent(60) => self.choose(&[n, 2 * n, 4 * n, n / 2, n + 1, n + 8]),
            _ => any,
        };
        count.to_string()
    }

    /// Draws the value of a number field of a problem.
    fn extent(&mut self, id: &str, size: Size) -> String {
        match id {
            "shapes" => {
                let levels = 1 + self.below(8);
                let mut side = || {
                    let max = self.choose(&[1, 3, 9, 24]);
                    1 + self.below(max)
                };
                let level = |_| format!("{}x{}", side(), side());
                (0..levels).map(level).collect::<Vec<_>>().join(",")
            }
            "scale" | "eps" => self.choose(&["0", "1e-5", "0.5"]).to_owned(),
            id if id.ends_with("stride") || id.ends_with("step") => {
                (16 * (1 + self.below(40))).to_string()
            }
            _ if size == Size::Any && self.percent(30) => self.choose(&LARGE).to_string(),
            _ => self.choose(&EXTENTS).to_string(),
        }
    }
}

/// Returns the workload of flags.
pub(crate) fn parse(
    family: &dyn AnyFamily,
    flags: &[String],
) -> Result<Box<dyn AnyWorkload>, FamilyError> {
    let request = Request::from_flags(flags.iter().map(String::as_str))?;
    family.workload(&request, DeviceKind::Cpu, None, &TARGET)
}

/// Draws problem flags until the family accepts the problem and, for [`Size::Small`], the CPU executor
/// runs it quickly. Flags that fail with another error are returned, so that the caller reports it.
pub(crate) fn draw_problem(draw: &mut Draw, family: &dyn AnyFamily, size: Size) -> Vec<String> {
    loop {
        let flags = draw.problem(family, size);
        let is_fast = |work: &dyn AnyWorkload| {
            simulation_seconds(&work.cost(), Timing::Random, 1) < MAX_SECONDS
        };
        match parse(family, &flags) {
            Err(FamilyError::Problem(_)) => {}
            Ok(work) if size == Size::Small && !is_fast(work.as_ref()) => {}
            _ => return flags,
        }
    }
}

/// The maximum simulation time of a small problem in seconds.
const MAX_SECONDS: f64 = 0.02;

fn number_from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs `check` with `few` draws of every family, or `many` in a full test run. Fails with all errors.
pub(crate) fn for_each_draw(
    few: u64,
    many: u64,
    check: impl Fn(&dyn AnyFamily, &mut Draw) -> Result<(), String> + Sync,
) {
    let draws = number_from_env("WARPLINE_DRAWS").unwrap_or(few_or(few, many));
    let seed = number_from_env("WARPLINE_SEED").unwrap_or(1);
    let only_family = std::env::var("WARPLINE_FAMILY").ok();
    let families: Vec<_> = (registry().into_iter())
        .filter(|f| only_family.as_deref().is_none_or(|name| f.name() == name))
        .collect();
    let count = draws * families.len() as u64;
    for_each(0..count, |i| {
        let family = families[(i % families.len() as u64) as usize];
        let mut draw = Draw::new(seed.wrapping_mul(1 << 32) + i);
        check(family, &mut draw).map_err(|e| format!("{} {e}", family.name()))
    });
}
