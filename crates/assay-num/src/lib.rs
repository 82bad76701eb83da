//! assay-num
