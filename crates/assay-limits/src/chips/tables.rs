//! The keys of a chip's table, by vendor: what each number is, and its unit.

use serde::Serialize;

use super::Sourced;
use super::read::{Reader, Value};

/// Makes a chip's structure, the reader of its table and the list of its numbers' origins from one
/// list of keys. A key whose type is an `Option` may be missing.
macro_rules! chip {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $key:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Eq, Debug, Serialize)]
        pub struct $name {
            /// The name, as images and manifests say it.
            pub name: String,
            /// Products that have it, for people.
            pub products: String,
            $($(#[$doc])* pub $key: $type,)*
        }

        impl $name {
            pub(super) fn read(reader: &mut Reader<'_>) -> Result<$name, super::ChipError> {
                Ok($name {
                    name: reader.name().to_owned(),
                    products: reader.text("products")?,
                    $($key: <$type as Value>::read(reader, stringify!($key))?,)*
                })
            }

            /// Key, source and whether it is unconfirmed, of every number.
            pub fn origins(&self) -> Vec<(&'static str, &str, bool)> {
                let mut all = Vec::new();
                $(if let Some((source, unconfirmed)) = <$type as Value>::origin(&self.$key) {
                    all.push((stringify!($key), source, unconfirmed));
                })*
                all
            }
        }
    };
}

chip! {
    /// An NVIDIA architecture.
    CudaChip {
        /// Blocks of a grid along x, y and z.
        grid: Sourced<[u64; 3]>,
        /// Threads of a block along x, y and z.
        block: Sourced<[u64; 3]>,
        /// Threads of a block.
        threads_per_block: Sourced<u64>,
        /// Threads of a warp.
        warp_threads: Sourced<u64>,
        /// Warps that a multiprocessor holds.
        warps_per_multiprocessor: Sourced<u64>,
        /// Blocks that a multiprocessor holds.
        blocks_per_multiprocessor: Sourced<u64>,
        /// 32-bit registers of a multiprocessor.
        registers_per_multiprocessor: Sourced<u64>,
        /// 32-bit registers that a block may take.
        registers_per_block: Sourced<u64>,
        /// 32-bit registers that a thread may address.
        registers_per_thread: Sourced<u64>,
        /// Registers are given to warps in steps of so many.
        register_allocation: Sourced<u64>,
        /// Parts of a multiprocessor, each with its share of the registers.
        partitions: Sourced<u64>,
        /// Bytes of shared memory of a multiprocessor.
        shared_per_multiprocessor: Sourced<u64>,
        /// Bytes of shared memory that a block has without asking.
        shared_per_block: Sourced<u64>,
        /// Bytes of shared memory that a block may have when its launcher opts in.
        shared_per_block_opt_in: Sourced<u64>,
        /// Bytes of shared memory that the system takes of each block; none where it takes none.
        shared_reserved_per_block: Option<Sourced<u64>>,
        /// Shared memory is given to blocks in steps of so many bytes.
        shared_allocation: Sourced<u64>,
        /// Named barriers of a block.
        barriers_per_block: Sourced<u64>,
        /// Named barriers of a multiprocessor, where occupancy counts them.
        barriers_per_multiprocessor: Option<Sourced<u64>>,
        /// Blocks of a cluster that every chip with clusters runs; none where there are none.
        cluster_portable: Option<Sourced<u64>>,
        /// Blocks of a cluster that this chip may run when its launcher opts in.
        cluster_max: Option<Sourced<u64>>,
        /// Bytes of all parameters of a kernel.
        parameter_bytes: Sourced<u64>,
        /// Bytes of local memory of a thread.
        local_bytes_per_thread: Sourced<u64>,
    }
}

chip! {
    /// An AMD architecture.
    HipChip {
        /// Work-groups of a grid along x, y and z.
        grid: Sourced<[u64; 3]>,
        /// Work-items of a work-group along x, y and z.
        block: Sourced<[u64; 3]>,
        /// Work-items of a whole grid along one axis.
        work_items_per_axis: Sourced<u64>,
        /// Work-items of a work-group.
        threads_per_workgroup: Sourced<u64>,
        /// Lanes of a wave, as kernels may be compiled.
        wave_sizes: Sourced<Vec<u64>>,
        /// SIMDs of a compute unit.
        simds_per_compute_unit: Sourced<u64>,
        /// Compute units of a work-group processor, where there are such.
        compute_units_per_processor: Option<Sourced<u64>>,
        /// Waves that a SIMD holds.
        waves_per_simd: Sourced<u64>,
        /// Vector registers of a SIMD, for each lane of a wave of 32.
        vgprs_wave32: Option<Sourced<u64>>,
        /// Vector registers of a SIMD, for each lane of a wave of 64.
        vgprs_wave64: Sourced<u64>,
        /// Vector registers are given to waves of 32 in steps of so many.
        vgpr_allocation_wave32: Option<Sourced<u64>>,
        /// Vector registers are given to waves of 64 in steps of so many.
        vgpr_allocation_wave64: Sourced<u64>,
        /// Vector registers that a lane may address, accumulation registers included.
        vgprs_per_lane: Sourced<u64>,
        /// Scalar registers that a wave may address.
        sgprs_per_wave: Sourced<u64>,
        /// Scalar registers of a SIMD, where they bound how many waves it holds.
        sgprs_per_simd: Option<Sourced<u64>>,
        /// Scalar registers are given to waves in steps of so many, where they bound it.
        sgpr_allocation: Option<Sourced<u64>>,
        /// Bytes of LDS that a work-group may have.
        lds_per_workgroup: Sourced<u64>,
        /// Bytes of LDS of a compute unit.
        lds_per_compute_unit: Sourced<u64>,
        /// LDS is given to work-groups in steps of so many bytes.
        lds_allocation: Sourced<u64>,
        /// Work-groups of more than one wave that a compute unit holds.
        workgroups_per_compute_unit: Sourced<u64>,
    }
}

chip! {
    /// An Apple generation.
    MetalChip {
        /// The GPU family: 7 of Apple7.
        family: Sourced<u64>,
        /// Threads of a threadgroup along x, y and z.
        block: Sourced<[u64; 3]>,
        /// Threads of a threadgroup, for a pipeline of few registers.
        threads_per_threadgroup: Sourced<u64>,
        /// Threads of a SIMD group.
        execution_width: Sourced<u64>,
        /// Bytes of threadgroup memory of a threadgroup.
        threadgroup_bytes: Sourced<u64>,
        /// A length of threadgroup memory is a multiple of so many bytes.
        threadgroup_alignment: Sourced<u64>,
        /// Threads to which a kernel of tensor operations is held, where such kernels cannot be
        /// compiled ahead of time.
        tensor_threads: Option<Sourced<u64>>,
        /// What Xcode's tools call the chip, where its pipelines' threads can be found out by
        /// compiling: registers are given out before a pipeline runs.
        offline_architecture: Option<Sourced<String>>,
    }
}

/// The value behind a number that may be missing.
pub(crate) fn value(number: Option<&Sourced<u64>>) -> Option<u64> {
    number.map(|number| number.value)
}
