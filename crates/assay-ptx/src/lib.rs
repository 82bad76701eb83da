//! assay-ptx
