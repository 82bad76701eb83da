//! assay-device
