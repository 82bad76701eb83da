//! Reads compiled GPU images (CUDA ELF files, fatbins, AMDGPU code objects, and host files that
//! hold them) into plain facts of their kernels, with no external tool and no device.

mod facts;

pub use facts::{
    Contents, CudaImage, CudaKernel, Entry, HipImage, HipKernel, Parameter, PtxImage, Release,
};
