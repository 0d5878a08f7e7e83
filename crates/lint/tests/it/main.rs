//! Every check alone, and the checklist of the families.

mod checks;
mod families;
