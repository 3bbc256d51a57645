//! What users write: numbers, keys and values, designs and workloads, as arguments and in files.
//!
//! | module | one line |
//! |---|---|
//! | [`quantity`] | numbers with units |
//! | [`kv_literal`] | keys and values as text |
//! | [`import_export`] | files of keys and values |
//! | [`spec`], [`named_design`] | designs, with a name for results |
//! | [`fit`] | scales the sizes of designs to the data |
//! | [`workload_spec`] | workloads in TOML files |
//! | [`lines`], [`toml_file`] | input files |

pub mod fit;
pub mod import_export;
pub mod kv_literal;
pub mod lines;
pub mod named_design;
pub mod quantity;
pub mod spec;
pub mod toml_file;
pub mod workload_spec;
