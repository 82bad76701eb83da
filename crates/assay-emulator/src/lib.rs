//! assay-emulator
