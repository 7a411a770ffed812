//! Parameters of a module by name, in PyTorch's names and layouts.
//!
//! A name is the path of fields and indices, such as `backbone.blocks.0.mixer.in_proj.weight`, without enum variants. Burn stores the
//! matrix of a linear layer as [in, out]; here and in files it is [out, in].

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};

/// A parameter's place in a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The path, such as `backbone.blocks.0.mixer.in_proj.weight`.
    pub name: String,
    /// Whether files hold the transpose.
    pub transposed: bool,
}

/// The current path of a visitor or mapper.
#[derive(Default)]
pub(crate) struct Path(Vec<(String, String)>);

impl Path {
    pub(crate) fn enter(&mut self, name: &str, container: &str) {
        self.0.push((name.to_owned(), container.to_owned()));
    }

    pub(crate) fn exit(&mut self) {
        self.0.pop();
    }

    pub(crate) fn place(&self) -> Place {
        let shown = self.0.iter().filter(|(_, container)| !container.starts_with("Enum:"));
        let name = shown.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
        let transposed = self.0.last().is_some_and(|(name, container)| name == "weight" && container == "Struct:Linear");
        Place { name, transposed }
    }
}

/// Calls `each` with the place and value of every float parameter and running statistic, in the order of the fields.
pub(crate) fn visit<M: Module>(module: &M, each: impl FnMut(Place, Values<'_>)) {
    struct Visitor<F>(Path, F);
    impl<F: FnMut(Place, Values<'_>)> ModuleVisitor for Visitor<F> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let place = self.0.place();
            let (value, transposed) = (param.val(), place.transposed);
            let shape = file_shape(&value, transposed);
            self.1(place, Values { shape, read: &|| file_values(param.val(), transposed) });
        }

        fn enter_module(&mut self, name: &str, container: &str) {
            self.0.enter(name, container);
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.0.exit();
        }
    }
    module.visit(&mut Visitor(Path::default(), each));
}

/// The shape of a parameter as in files, and its values on demand.
pub(crate) struct Values<'a> {
    pub shape: Vec<usize>,
    read: &'a dyn Fn() -> Vec<f32>,
}

impl Values<'_> {
    pub(crate) fn read(&self) -> Vec<f32> {
        (self.read)()
    }
}

/// Replaces every float parameter for which `replace` returns values, given in the layout of files.
pub(crate) fn replace<M: Module>(module: M, replace: impl FnMut(&Place, &[usize]) -> Option<Vec<f32>>) -> M {
    struct Mapper<F>(Path, F);
    impl<F: FnMut(&Place, &[usize]) -> Option<Vec<f32>>> ModuleMapper for Mapper<F> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let place = self.0.place();
            let old = param.val();
            let shape = file_shape(&old, place.transposed);
            let Some(values) = (self.1)(&place, &shape) else { return param };
            let device = old.device();
            let required = old.is_require_grad();
            let new = Tensor::<D>::from_data(TensorData::new(values, shape), &device.clone().inner());
            let new = if place.transposed { contiguous(new.transpose()) } else { new };
            let new = if device.is_autodiff() { Tensor::from_inner(new) } else { new };
            param.map(|_| new.set_require_grad(required))
        }

        fn enter_module(&mut self, name: &str, container: &str) {
            self.0.enter(name, container);
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.0.exit();
        }
    }
    module.map(&mut Mapper(Path::default(), replace))
}

/// Number of float parameters, excluding running statistics.
pub(crate) fn count<M: Module>(module: &M) -> usize {
    let mut total = 0;
    visit(module, |place, values| {
        if !place.name.contains("running_") {
            total += values.shape.iter().product::<usize>();
        }
    });
    total
}

/// A parameter's tensor of any rank.
pub(crate) trait AnyTensor {
    /// The parameter's gradient, flat, on the device below autodiff.
    fn gradient(&self, gradients: &Gradients) -> Option<Tensor<1>>;
    /// The values, flat, on the device below autodiff.
    fn flat(&self) -> Tensor<1>;
    /// Number of dimensions.
    fn rank(&self) -> usize;
    /// Whether it gets a gradient; running statistics do not.
    fn is_trained(&self) -> bool;
    /// Number of values.
    fn len(&self) -> usize;
    /// The device below autodiff.
    fn device(&self) -> Device;
}

impl<const D: usize> AnyTensor for Tensor<D> {
    fn gradient(&self, gradients: &Gradients) -> Option<Tensor<1>> {
        let gradient = self.grad(gradients)?;
        Some(gradient.reshape([self.dims().iter().product::<usize>()]))
    }

    fn flat(&self) -> Tensor<1> {
        self.clone().inner().reshape([self.dims().iter().product::<usize>()])
    }

    fn rank(&self) -> usize {
        D
    }

    fn is_trained(&self) -> bool {
        self.is_require_grad()
    }

    fn len(&self) -> usize {
        self.dims().iter().product()
    }

    fn device(&self) -> Device {
        Tensor::device(self).inner()
    }
}

/// Calls `each` with the place and tensor of every float parameter and running statistic.
pub(crate) fn visit_tensors<M: Module>(module: &M, each: impl FnMut(Place, &dyn AnyTensor)) {
    struct Visitor<F>(Path, F);
    impl<F: FnMut(Place, &dyn AnyTensor)> ModuleVisitor for Visitor<F> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.1(self.0.place(), &param.val());
        }

        fn enter_module(&mut self, name: &str, container: &str) {
            self.0.enter(name, container);
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.0.exit();
        }
    }
    module.visit(&mut Visitor(Path::default(), each));
}

/// The values of a tensor in the layout of files.
fn file_values<const D: usize>(tensor: Tensor<D>, transposed: bool) -> Vec<f32> {
    let tensor = if transposed { tensor.transpose() } else { tensor };
    tensor.into_data().try_to_vec().expect("parameters are f32")
}

fn file_shape<const D: usize>(tensor: &Tensor<D>, transposed: bool) -> Vec<usize> {
    let mut shape = tensor.dims().to_vec();
    if transposed {
        shape.reverse();
    }
    shape
}

/// A row-major copy: matmuls with a transposed view would pack it again at every call.
fn contiguous<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    let device = tensor.device();
    Tensor::from_data(tensor.into_data(), &device)
}
