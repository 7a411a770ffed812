//! The kernels as CUDA source: NVIDIA's compiler accepts it without a GPU, and a kernel's cost can be read from the machine code.

use std::sync::Arc;

use cubecl::ir::{
    AddressType, DeviceIdentity, DeviceProperties, HardwareProperties, MemoryDeviceProperties, TargetProperties, features::Features,
};
use cubecl::prelude::{BufferCompilationArg, CubeDim, CubeKernel, KernelSettings, LaunchArg, SequenceCompilationArg};
use cubecl_cpp::shared::{CompilationOptions, CppCompiler};
use cubecl_cpp::target::Cuda;
use cubecl_runtime::compiler::Compiler;

/// A kernel for one shape of a problem.
#[derive(Debug, Clone)]
pub struct CudaSource {
    /// The kernel's name and what it was compiled for.
    pub name: String,
    /// Steps of time that a unit holds at once, times its channels; rows, if it takes one step after another.
    pub steps: usize,
    /// Units of a cube that share the steps of a tile.
    pub slices: usize,
    /// Upper bound in bytes on a unit's arrays outside registers: their indices are only known when the kernel runs.
    pub arrays: usize,
    /// The source.
    pub text: String,
}

/// What kernels are made with.
pub(super) struct Offline {
    pub properties: Arc<DeviceProperties>,
    pub target: Arc<TargetProperties>,
}

impl Offline {
    pub(super) fn new() -> Self {
        let hardware = HardwareProperties {
            load_width: 128,
            vector_register_count: None,
            plane_size_min: 32,
            plane_size_max: 32,
            max_bindings: 1024,
            max_shared_memory_size: 48 << 10,
            max_cube_count: (u32::MAX, 65_535, 65_535),
            max_units_per_cube: 1024,
            max_cube_dim: (1024, 1024, 64),
            num_streaming_multiprocessors: Some(132),
            num_tensor_cores: None,
            min_tensor_cores_dim: None,
            num_cpu_cores: None,
            last_level_cache_size: None,
            max_vector_size: 16,
            cube_mma_reserved_shared_memory: 0,
        };
        let identity = DeviceIdentity { name: "offline".to_owned(), fingerprint: "offline".to_owned(), physical: None };
        let properties = DeviceProperties::new(
            Features::default(),
            MemoryDeviceProperties::new(u64::MAX, 256),
            hardware,
            cubecl::profile::TimingMethod::Device,
            identity,
        );
        Self { properties: Arc::new(properties), target: Arc::new(TargetProperties::default()) }
    }

    pub(super) fn settings(&self, dim: CubeDim) -> KernelSettings {
        KernelSettings::new(dim.into(), cubecl::prelude::ExecutionMode::Unchecked, AddressType::U32)
    }

    /// A buffer as an argument; its name is for who reads the call.
    pub(super) fn buffer(&self, _: &str) -> BufferCompilationArg {
        BufferCompilationArg { inplace: None }
    }

    /// As many buffers as one argument.
    pub(super) fn buffers<C: LaunchArg<CompilationArg = BufferCompilationArg>>(
        &self,
        name: &str,
        count: usize,
    ) -> SequenceCompilationArg<C> {
        SequenceCompilationArg { values: (0..count).map(|_| self.buffer(name)).collect() }
    }

    pub(super) fn source(&self, name: String, [steps, slices]: [usize; 2], kernel: &impl CubeKernel) -> CudaSource {
        let made = CppCompiler::<Cuda>::default().compile(kernel.define(), &CompilationOptions::default());
        let text = made.unwrap_or_else(|error| panic!("{name}: {error:?}")).source;
        CudaSource { name, steps, slices, arrays: 0, text }
    }
}
