//! What an image says of its kernels.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One image found in a file: a file holds one (a cubin) or many (a library).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Where in the file: empty for the whole file, else `.nv_fatbin[2]`.
    pub place: String,
    /// What is there.
    pub contents: Contents,
}

/// The kinds of image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Machine code for one NVIDIA architecture.
    Cuda(CudaImage),
    /// Machine code for one AMD architecture.
    Hip(HipImage),
    /// PTX text, which a driver compiles when it is loaded.
    Ptx(PtxImage),
    /// Code that no driver loads as it is, so that nothing can be said of its kernels.
    Skipped(Skipped),
}

/// Code of which no facts are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped {
    /// The architecture: `sm_90a`.
    pub architecture: String,
    /// Why nothing is read of it.
    pub why: Why,
}

/// Why nothing is read of some code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Why {
    /// Relocatable device code (`-dc`, `-rdc=true`): registers, stack and shared memory are known
    /// once it is linked.
    Relocatable,
    /// Intermediate code for optimisation at link time (`-dlto`).
    Intermediate,
    /// An entry of a fatbin of a kind that is not known here.
    UnknownKind(u16),
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Relocatable => formatter.write_str("relocatable device code, not linked yet"),
            Why::Intermediate => formatter.write_str("intermediate code, not compiled yet"),
            Why::UnknownKind(kind) => write!(formatter, "a fatbin entry of unknown kind {kind}"),
        }
    }
}

/// A CUDA ELF image.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CudaImage {
    /// The architecture as the compiler was asked for it: `sm_90a`.
    pub architecture: String,
    /// The release of the assembler that wrote the image, where the image names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// Its kernels, in order of their names.
    pub kernels: Vec<CudaKernel>,
}

/// One kernel of a CUDA image.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CudaKernel {
    /// The symbol, as a launch names it.
    pub name: String,
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Shared memory that the source declares, in bytes, without what the system reserves.
    pub static_shared_bytes: u32,
    /// Local memory of a thread, in bytes.
    pub stack_bytes: u32,
    /// The block that `__launch_bounds__` (`.maxntid`) promises not to pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_threads: Option<[u32; 3]>,
    /// The block that the kernel requires (`.reqntid`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_threads: Option<[u32; 3]>,
    /// The most registers that the compiler allowed itself, where it was capped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub register_cap: Option<u32>,
    /// The cluster that the kernel is built for, in blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    /// Named barriers in use.
    pub barriers: u32,
    /// Bytes of all parameters.
    pub parameter_bytes: u32,
    /// Each parameter in order, where the image lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
}

/// One parameter of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Parameter {
    /// Bytes from the first parameter.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
}

/// An AMDGPU code object.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HipImage {
    /// The architecture: `gfx1100`, with its features where it names them (`gfx90a:xnack+`).
    pub architecture: String,
    /// The compiler, where the image names it: `clang version 19.1.7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
    /// Its kernels, in order of their names.
    pub kernels: Vec<HipKernel>,
}

/// One kernel of an AMDGPU code object, from its metadata note and its descriptor.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HipKernel {
    /// The name, as a launch names it.
    pub name: String,
    /// Vector registers of a lane, accumulation registers included where they are one file.
    pub vgprs: u32,
    /// Scalar registers of a wave.
    pub sgprs: u32,
    /// Accumulation registers of a lane, where the architecture has them.
    pub agprs: u32,
    /// LDS that the source declares, in bytes.
    pub static_lds_bytes: u32,
    /// Scratch of a lane, in bytes.
    pub scratch_bytes: u32,
    /// The most work-items of a work-group.
    pub max_workgroup: u32,
    /// The work-group that the kernel requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_workgroup: Option<[u32; 3]>,
    /// Lanes of a wave: 32 or 64.
    pub wave_size: u32,
    /// Vector registers spilled.
    pub vgpr_spills: u32,
    /// Scalar registers spilled.
    pub sgpr_spills: u32,
    /// True if a work-group runs on a pair of compute units (`.workgroup_processor_mode`).
    pub workgroup_processor_mode: bool,
    /// True if a lane may need more scratch than `scratch_bytes`, as where it calls itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dynamic_stack: bool,
    /// Bytes of the kernel's arguments, those that the system adds included.
    pub parameter_bytes: u32,
    /// Each argument that a launch passes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
}

/// PTX found in a container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PtxImage {
    /// The least architecture: `sm_80`.
    pub architecture: String,
    /// The text.
    pub text: String,
}

/// A release of a compiler: 13.0.88. Releases of one line compare by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Release {
    /// 13 of 13.0.88.
    pub major: u16,
    /// 0 of 13.0.88.
    pub minor: u16,
    /// 88 of 13.0.88; 0 where the image does not say.
    pub patch: u16,
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl From<Release> for String {
    fn from(release: Release) -> String {
        release.to_string()
    }
}

/// Text that is not a release.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a release such as 13.0.88")]
pub struct NotARelease(String);

impl TryFrom<String> for Release {
    type Error = NotARelease;

    fn try_from(text: String) -> Result<Release, NotARelease> {
        text.parse()
    }
}

impl FromStr for Release {
    type Err = NotARelease;

    /// Reads `13.0.88` or `13.0`.
    fn from_str(text: &str) -> Result<Release, NotARelease> {
        let wrong = || NotARelease(text.to_owned());
        let parts: Vec<u16> = text
            .split('.')
            .map(|part| part.parse().map_err(|_| wrong()))
            .collect::<Result<_, _>>()?;
        match parts[..] {
            [major, minor] => Ok(Release { major, minor, patch: 0 }),
            [major, minor, patch] => Ok(Release { major, minor, patch }),
            _ => Err(wrong()),
        }
    }
}
