//! The number formats of a device.

use burn::backend::{Backend, DType, DTypeUsage, DispatchDevice};
use burn::tensor::Device;
use burn_cubecl::CubeBackend;

/// Whether a device is a GPU that stores bf16 and has matrix units for it.
pub(in crate::ops) fn works_in_bf16(device: &Device) -> bool {
    match device.clone().inner().as_dispatch() {
        DispatchDevice::Cube(device) => {
            CubeBackend::dtype_usage(device, DType::BF16).is_superset(DTypeUsage::Storage | DTypeUsage::Accelerated)
        }
        _ => false,
    }
}
