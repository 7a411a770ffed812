//! Conversion between GPU tensors and the buffers that kernels work on.

use std::sync::{Arc, Mutex};

use burn::backend::{DType, DispatchTensorKind, TensorMetadata};
use burn::tensor::{Int, IntDType, Shape, Tensor};
#[cfg(feature = "fusion")]
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::{empty_device_contiguous_dtype, zeros_client};
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::{BufferArg, CubeCount, CubeDim};

/// Lanes side by side in a cube: one stretch of 128 bytes in f32.
pub(super) const LANES: usize = 32;
/// Rows of lanes in a cube that walks down columns, or that has a row of its own each.
pub(super) const ROWS: usize = 8;
/// Lanes of a cube that works on single elements.
pub(super) const UNITS: usize = 256;
/// Largest number of cubes in one dimension that every device takes.
const MOST_CUBES: usize = 65_535;

/// Shape and format of a tensor that need not be there yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::ops) struct Like {
    pub shape: Shape,
    pub dtype: DType,
}

impl Like {
    pub(in crate::ops) fn of(tensor: &impl TensorMetadata) -> Self {
        Self { shape: tensor.shape(), dtype: tensor.dtype() }
    }

    /// An f32 tensor.
    pub(super) fn f32(shape: impl Into<Shape>) -> Self {
        Self { shape: shape.into(), dtype: DType::F32 }
    }

    /// A tensor of the same format.
    pub(super) fn reshaped(&self, shape: impl Into<Shape>) -> Self {
        Self { shape: shape.into(), dtype: self.dtype }
    }

    /// A tensor of the same shape.
    pub(super) fn cast(&self, dtype: DType) -> Self {
        Self { shape: self.shape.clone(), dtype }
    }
}

/// The sizes of a tensor of `D` dimensions.
pub(super) fn dims<const D: usize>(tensor: &CubeTensor) -> [usize; D] {
    tensor.shape().dims()
}

/// Elements of a tensor.
pub(in crate::ops) fn len(tensor: &CubeTensor) -> usize {
    tensor.shape().num_elements()
}

/// Memory for an f32 output on the device of `like`.
pub(super) fn empty<const D: usize>(like: &CubeTensor, shape: [usize; D]) -> CubeTensor {
    empty_of_shape(DType::F32, like, shape.into())
}

/// The same in another format.
pub(super) fn empty_in<const D: usize>(dtype: DType, like: &CubeTensor, shape: [usize; D]) -> CubeTensor {
    empty_of_shape(dtype, like, shape.into())
}

/// Memory for an output of the shape and format and on the device of `like`.
pub(super) fn empty_like(like: &CubeTensor) -> CubeTensor {
    empty_of_shape(like.dtype, like, like.shape())
}

/// The same in another format.
pub(super) fn empty_like_in(dtype: DType, like: &CubeTensor) -> CubeTensor {
    empty_of_shape(dtype, like, like.shape())
}

fn empty_of_shape(dtype: DType, like: &CubeTensor, shape: Shape) -> CubeTensor {
    let count = shape.num_elements();
    assert!(u32::try_from(count).is_ok(), "a tensor of {shape} has {count} elements, and a device counts to 2^32");
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape, dtype)
}

/// Zeros on the device of `like`.
pub(super) fn zeros<const D: usize>(like: &CubeTensor, shape: [usize; D]) -> CubeTensor {
    zeros_client(like.client.clone(), like.device.clone(), shape.into(), DType::F32)
}

/// Zeros of the shape and format and on the device of `like`.
pub(super) fn zeros_like(like: &CubeTensor) -> CubeTensor {
    zeros_client(like.client.clone(), like.device.clone(), like.shape(), like.dtype)
}

/// The format of a tensor's numbers as kernels are compiled for it.
pub(super) fn format(dtype: DType) -> ElemType {
    ElemType::Float(match dtype {
        DType::F32 => FloatKind::F32,
        DType::BF16 => FloatKind::BF16,
        DType::F16 => FloatKind::F16,
        other => panic!("kernels take f32, bf16 and f16, not {other:?}"),
    })
}

/// A tensor as an argument of a kernel.
pub(super) fn arg(tensor: &CubeTensor) -> BufferArg {
    tensor.clone().into_buffer_arg()
}

/// A tensor that may be absent as an argument; `other` stands in for it and is not read.
pub(super) fn arg_or(tensor: Option<&CubeTensor>, other: &CubeTensor) -> BufferArg {
    arg(tensor.unwrap_or(other))
}

/// A grid of at least `count` cubes. Kernels leave cubes beyond their number at once.
pub(super) fn cubes(count: usize) -> CubeCount {
    let y = count.div_ceil(MOST_CUBES).max(1);
    CubeCount::Static(count.div_ceil(y) as u32, y as u32, 1)
}

/// The grid and the cube for `count` single elements, or vectors of some.
pub(super) fn elements(count: usize) -> (CubeCount, CubeDim) {
    (cubes(count.div_ceil(UNITS)), CubeDim::new_1d(UNITS as u32))
}

/// Numbers that a unit loads and stores at once, in rows of `width`.
pub(super) fn vector_size(width: usize) -> usize {
    [4, 2].into_iter().find(|size| width.is_multiple_of(*size)).unwrap_or(1)
}

/// Numbers that a unit of a kernel that walks down columns takes side by side: as many as leave every lane some.
pub(super) fn column_vector_size(width: usize) -> usize {
    [4, 2].into_iter().find(|size| width.is_multiple_of(*size) && width / size >= LANES).unwrap_or(1)
}

/// A cube of [`ROWS`] × [`LANES`].
pub(super) fn square() -> CubeDim {
    CubeDim::new_2d(LANES as u32, ROWS as u32)
}

/// The f32 tensor of a GPU behind a tensor of Burn's, computed if it still waits to be; none where it lies elsewhere.
pub(in crate::ops) fn on_gpu<const D: usize>(tensor: Tensor<D>) -> Option<CubeTensor> {
    match tensor.into_dispatch().kind {
        #[cfg(not(feature = "fusion"))]
        DispatchTensorKind::Cube(tensor) => Some(into_contiguous(tensor.float())),
        #[cfg(feature = "fusion")]
        DispatchTensorKind::Cube(tensor) => {
            let tensor = tensor.float();
            Some(into_contiguous(tensor.client.clone().resolve_tensor_float::<CubeBackend>(tensor)))
        }
        _ => None,
    }
}

/// The same of whole numbers.
pub(in crate::ops) fn ints_on_gpu<const D: usize>(tensor: Tensor<D, Int>) -> Option<CubeTensor> {
    match tensor.cast(IntDType::I32).into_dispatch().kind {
        #[cfg(not(feature = "fusion"))]
        DispatchTensorKind::Cube(tensor) => Some(into_contiguous(tensor.int())),
        #[cfg(feature = "fusion")]
        DispatchTensorKind::Cube(tensor) => {
            let tensor = tensor.int();
            Some(into_contiguous(tensor.client.clone().resolve_tensor_int::<CubeBackend>(tensor)))
        }
        _ => None,
    }
}

/// Whole numbers of the host and their copies on the devices that asked for them; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uploaded(Arc<Mutex<Vec<CubeTensor>>>);

impl Uploaded {
    /// The copy of `values` on the device of `like`, made on the first call for it.
    pub(in crate::ops) fn get(&self, like: &CubeTensor, values: &[i32]) -> CubeTensor {
        let mut copies = self.0.lock().expect("no panic while the copies are held");
        if let Some(copy) = copies.iter().find(|copy| copy.device == like.device) {
            return copy.clone();
        }
        let copy = upload_ints(like, values);
        copies.push(copy.clone());
        copy
    }
}

/// A copy of `values` on the device of `like`.
pub(super) fn upload(like: &CubeTensor, values: &[f32]) -> CubeTensor {
    upload_bytes(like, values.iter().flat_map(|value| value.to_ne_bytes()).collect(), DType::F32)
}

/// The same of whole numbers.
pub(super) fn upload_ints(like: &CubeTensor, values: &[i32]) -> CubeTensor {
    upload_bytes(like, values.iter().flat_map(|value| value.to_ne_bytes()).collect(), DType::I32)
}

/// Numbers of four bytes each.
fn upload_bytes(like: &CubeTensor, bytes: Vec<u8>, dtype: DType) -> CubeTensor {
    let handle = like.client.create_from_slice(&bytes);
    CubeTensor::new_contiguous(like.client.clone(), like.device.clone(), [bytes.len() / 4].into(), handle, dtype)
}
