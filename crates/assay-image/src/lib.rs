//! Reads compiled GPU images (CUDA ELF files, fatbins, AMDGPU code objects, and host files that
//! hold them) into plain facts of their kernels, with no external tool and no device.

mod amdgpu;
mod bytes;
mod cuda;
mod decompress;
mod elf;
mod error;
mod facts;
mod fatbin;
mod host;
mod read;

pub use amdgpu::read_code_object;
pub use error::{ErrorKind, ImageError};
pub use facts::{
    Contents, CudaImage, CudaKernel, Entry, HipImage, HipKernel, Parameter, PtxImage, Release,
    Skipped, Why,
};
pub use read::read;
