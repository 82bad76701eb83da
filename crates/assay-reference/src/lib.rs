//! assay-reference
