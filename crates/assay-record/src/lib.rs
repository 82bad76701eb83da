//! assay-record
