//! Work in a box is work.

use crate::error::FamilyError;
use crate::family::{AnyWork, Cost, Period};
use crate::plan::Plan;
use crate::tensor::{HostTensor, TensorSpec};
use crate::tunable::Tunable;
use serde_json::Value;
use warpline_ir::Target;

impl AnyWork for Box<dyn AnyWork> {
    fn family(&self) -> &'static str {
        self.as_ref().family()
    }
    fn problem(&self) -> Value {
        self.as_ref().problem()
    }
    fn config(&self) -> Value {
        self.as_ref().config()
    }
    fn plan(&self, target: &Target) -> Result<Plan, FamilyError> {
        self.as_ref().plan(target)
    }
    fn cost(&self) -> Cost {
        self.as_ref().cost()
    }
    fn inputs(&self, seed: u64) -> Vec<HostTensor> {
        self.as_ref().inputs(seed)
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        self.as_ref().outputs()
    }
    fn reference(&self, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        self.as_ref().reference(inputs)
    }
    fn period(&self) -> Option<Period<Box<dyn AnyWork>>> {
        self.as_ref().period()
    }
    fn reduced(&self) -> Option<Box<dyn AnyWork>> {
        self.as_ref().reduced()
    }
    fn baseline(&self, target: &Target) -> Option<Box<dyn AnyWork>> {
        self.as_ref().baseline(target)
    }
    fn tunable(&self) -> Option<&dyn Tunable> {
        self.as_ref().tunable()
    }
}
