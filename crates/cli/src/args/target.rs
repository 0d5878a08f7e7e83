//! `--target`: what kernels are built and checked for.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use warpline_ir::Target;

/// What kernels are built and checked for.
#[derive(Clone, Debug, Args)]
pub(crate) struct TargetArgs {
    /// What kernels are built and checked for
    #[arg(long, value_name = "NAME", value_parser = parser(), default_value = Target::default().name)]
    pub(crate) target: Target,
}

/// Reads the name of a target.
pub(crate) fn parser() -> impl TypedValueParser<Value = Target> {
    let names = Target::ALL.map(|target| target.name);
    PossibleValuesParser::new(names).map(|name| Target::named(&name).unwrap_or_default())
}
