//! Clocks and power, from NVML where there is one.

use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::{Device, Nvml};
use serde::Serialize;
use std::sync::LazyLock;

/// The library, loaded once; why not, where it is missing.
static NVML: LazyLock<Result<Nvml, String>> =
    LazyLock::new(|| Nvml::init().map_err(|e| format!("NVML cannot be loaded ({e})")));

/// The version of the NVIDIA driver, `580.159.03`, where NVML tells it.
pub fn driver_version() -> Option<String> {
    NVML.as_ref().ok()?.sys_driver_version().ok()
}

/// What a GPU says of itself at a moment.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Reading {
    /// Clock of the SMs.
    pub sm_mhz: Option<f64>,
    /// Clock of the memory.
    pub memory_mhz: Option<f64>,
    /// Power, which the driver averages over about a second.
    pub watts: Option<f64>,
}

impl Reading {
    /// The median of each.
    pub fn median(readings: &[Reading]) -> Self {
        let of = |field: fn(&Reading) -> Option<f64>| {
            let values = readings.iter().filter_map(field);
            super::statistics::Quartiles::new(values).map(|q| q.median)
        };
        Self {
            sm_mhz: of(|r| r.sm_mhz),
            memory_mhz: of(|r| r.memory_mhz),
            watts: of(|r| r.watts),
        }
    }
}

/// The sensors of one GPU; a machine may have none that can be read.
pub struct Sensors(Result<Device<'static>, String>);

impl Sensors {
    /// Those of the GPU at a place on the PCI bus.
    pub fn of(pci: Option<&str>) -> Self {
        Self(find(pci))
    }

    /// Why nothing can be read, if so.
    pub fn why_not(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }

    /// What they show now.
    pub fn read(&self) -> Reading {
        let Ok(device) = &self.0 else {
            return Reading::default();
        };
        let clock = |which| device.clock_info(which).ok().map(f64::from);
        Reading {
            sm_mhz: clock(Clock::SM),
            memory_mhz: clock(Clock::Memory),
            watts: device.power_usage().ok().map(|mw| f64::from(mw) / 1e3),
        }
    }
}

fn find(pci: Option<&str>) -> Result<Device<'static>, String> {
    let nvml = NVML.as_ref().map_err(String::clone)?;
    let pci = pci.ok_or("the CUDA driver does not say where the GPU is on the PCI bus")?;
    let found = nvml.device_by_pci_bus_id(pci);
    found.map_err(|e| format!("NVML does not know the GPU at {pci} ({e})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_readings_leaves_out_what_was_not_read() {
        let reading = |sm_mhz, watts| Reading {
            sm_mhz,
            watts,
            memory_mhz: None,
        };
        let all = [
            reading(Some(1980.0), None),
            reading(Some(1500.0), Some(300.0)),
            reading(Some(1700.0), None),
        ];
        let median = Reading::median(&all);
        assert_eq!(median, reading(Some(1700.0), Some(300.0)));
        assert_eq!(Reading::median(&[]), Reading::default());
    }

    #[test]
    fn a_gpu_that_is_nowhere_reads_nothing_and_says_why() {
        for place in [None, Some("ffff:ff:1f.0")] {
            let none = Sensors::of(place);
            assert!(none.why_not().is_some_and(|why| !why.is_empty()));
            assert_eq!(none.read(), Reading::default());
        }
    }
}
