//! Clocks and power from NVML.

use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::{Device, Nvml};
use serde::Serialize;
use std::sync::LazyLock;

/// The NVML library, loaded once, or the reason why it is unavailable.
static NVML: LazyLock<Result<Nvml, String>> =
    LazyLock::new(|| Nvml::init().map_err(|e| format!("NVML cannot be loaded ({e})")));

/// Returns the version of the NVIDIA driver, such as `580.159.03`, if NVML is available.
pub fn driver_version() -> Option<String> {
    NVML.as_ref().ok()?.sys_driver_version().ok()
}

/// One reading of the sensors of a GPU.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct SensorReading {
    /// The SM clock in MHz.
    pub sm_mhz: Option<f64>,
    /// The memory clock in MHz.
    pub memory_mhz: Option<f64>,
    /// The power in watts, which the driver averages over about a second.
    pub watts: Option<f64>,
}

impl SensorReading {
    /// Returns the median of each sensor.
    pub fn median(readings: &[SensorReading]) -> Self {
        let median_of = |field: fn(&SensorReading) -> Option<f64>| {
            let values = readings.iter().filter_map(field);
            super::statistics::Quartiles::new(values).map(|q| q.median)
        };
        Self {
            sm_mhz: median_of(|r| r.sm_mhz),
            memory_mhz: median_of(|r| r.memory_mhz),
            watts: median_of(|r| r.watts),
        }
    }
}

/// The sensors of one GPU; they may be unavailable.
pub struct Sensors(Result<Device<'static>, String>);

impl Sensors {
    /// Opens the sensors of the GPU with this PCI bus ID.
    pub fn for_gpu(pci: Option<&str>) -> Self {
        Self(find(pci))
    }

    /// Returns the reason why the sensors are unavailable, if they are.
    pub fn unavailable(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }

    /// Reads the sensors.
    pub fn read(&self) -> SensorReading {
        let Ok(device) = &self.0 else {
            return SensorReading::default();
        };
        let clock = |which| device.clock_info(which).ok().map(f64::from);
        SensorReading {
            sm_mhz: clock(Clock::SM),
            memory_mhz: clock(Clock::Memory),
            watts: device.power_usage().ok().map(|mw| f64::from(mw) / 1e3),
        }
    }
}

fn find(pci: Option<&str>) -> Result<Device<'static>, String> {
    let nvml = NVML.as_ref().map_err(String::clone)?;
    let pci = pci.ok_or("the CUDA driver does not report the PCI bus ID of the GPU")?;
    let found = nvml.device_by_pci_bus_id(pci);
    found.map_err(|e| format!("NVML has no GPU at {pci} ({e})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_missing_readings() {
        let reading = |sm_mhz, watts| SensorReading {
            sm_mhz,
            watts,
            memory_mhz: None,
        };
        let all = [
            reading(Some(1980.0), None),
            reading(Some(1500.0), Some(300.0)),
            reading(Some(1700.0), None),
        ];
        let median = SensorReading::median(&all);
        assert_eq!(median, reading(Some(1700.0), Some(300.0)));
        assert_eq!(SensorReading::median(&[]), SensorReading::default());
    }

    #[test]
    fn an_unknown_gpu_has_no_readings_and_a_reason() {
        for pci in [None, Some("ffff:ff:1f.0")] {
            let none = Sensors::for_gpu(pci);
            assert!(none.unavailable().is_some_and(|why| !why.is_empty()));
            assert_eq!(none.read(), SensorReading::default());
        }
    }
}
