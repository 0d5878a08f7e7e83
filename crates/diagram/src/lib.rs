//! Draws a kernel: its roles from left to right, and the rings between them.
//!
//! The kernel's ops determine the diagram: the producers of a ring arrive at its full mbarriers, and
//! its consumers wait for them.
//!
//! ```
//! use warpline_diagram::Diagram;
//! use warpline_ir::{Kernel, Target, builder::*};
//!
//! let kernel = Kernel::build("copy", &Target::SM_90A, |k| {
//!     let ring = k.ring("in", 3, |s| s.vector::<f32>(32));
//!     k.role("load").body(|| {
//!         let slot = ring.acquire();
//!         slot.store(0u32, lane_id(), 1.0f32);
//!         slot.commit();
//!     });
//!     k.role("compute").body(|| ring.wait().release());
//! })?;
//! let diagram = Diagram::of(&kernel);
//! assert!(diagram.text().contains("ring in"));
//! assert!(diagram.svg().starts_with("<svg"));
//! # Ok::<(), warpline_ir::BuildErrors>(())
//! ```

mod graph;
mod svg;
mod text;

pub use graph::{Diagram, RingArrow, RoleBox};
