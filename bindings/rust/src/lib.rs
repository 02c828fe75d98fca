//! Bindings of plait: tensors with operators and gradients ([`Tensor`], [`ops`]), optimizers
//! ([`optim`]), and saved graphs that run and train without Python ([`Graph`]).
//!
//! ```no_run
//! use plait::{no_grad, Tensor};
//!
//! # fn main() -> plait::Result<()> {
//! plait::load(None)?; // the folders of PLAIT_LIBRARIES
//! let x = Tensor::new(&[1.0f32, 2.0, 3.0], &[3])?;
//! x.set_requires_grad(true)?;
//! x.mul(&x)?.sum()?.backward()?;
//! assert_eq!(x.grad()?.unwrap().to_vec::<f32>()?, [2.0, 4.0, 6.0]);
//! no_grad(|| x.sub_(1))?;
//! # Ok(())
//! # }
//! ```
//!
//! Each operator is a function of [`ops`], and most are methods of [`Tensor`]. Arguments with
//! defaults are members of a struct, which the form `_with` takes:
//! `x.sum_with(SumOptions { dim: Some(&[0]), ..Default::default() })`.
//!
//! A tensor stays on the thread that made it, as operators may write to a tensor that others share:
//!
//! ```compile_fail,E0277
//! let x = plait::Tensor::new(&[1.0f32], &[1]).unwrap();
//! std::thread::spawn(move || x.relu());
//! ```

mod abi;
mod autograd;
mod call;
mod dtype;
mod error;
mod graph;
mod library;
pub mod ops;
pub mod optim;
mod runtime;
mod tensor;
mod value;

pub use autograd::{gradients, is_grad_enabled, no_grad, Backward};
pub use call::{call, call_in_place, operators, Results};
pub use dtype::{DType, Device, Element};
pub use error::{Error, Kind, Result};
pub use graph::{Description, Graph, Part, Settings};
pub use runtime::load;
pub use tensor::{Generator, Tensor};
pub use value::{Operand, Scalar, Value};
