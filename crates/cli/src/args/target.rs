//! `--target`: the GPU architecture that kernels are built and checked for.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use warpline_ir::Target;

/// The target option.
#[derive(Clone, Debug, Args)]
pub(crate) struct TargetArgs {
    /// GPU architecture to build and check for
    #[arg(long, value_name = "NAME", value_parser = parser(), default_value = Target::default().name)]
    pub(crate) target: Target,
}

/// Parses the name of a target.
pub(crate) fn parser() -> impl TypedValueParser<Value = Target> {
    let names = Target::ALL.map(|target| target.name);
    PossibleValuesParser::new(names).map(|name| Target::named(&name).unwrap_or_default())
}
