//! The operators, under the names that the Python documentation has; `max.dim` is `max_dim`. A form
//! that ends with `_` writes its result over the first argument.
#![allow(non_snake_case, clippy::all)]

use crate::call::{Form, Operator};
use crate::dtype::{DType, Device};
use crate::error::Result;
use crate::ops;
use crate::tensor::{Generator, Tensor};
use crate::value::{Operand, Scalar, Value};

include!(concat!(env!("OUT_DIR"), "/operators.rs"));
include!(concat!(env!("OUT_DIR"), "/methods.rs"));
