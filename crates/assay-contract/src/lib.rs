//! assay-contract
