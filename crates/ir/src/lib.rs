//! The Warpline kernel program: types, ops, roles, rings, and the builder that authors write with
