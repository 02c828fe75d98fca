//! Arguments of operators.

use crate::dtype::{DType, Device};
use crate::tensor::{Generator, Tensor};

/// A number, which takes part in promotion weakly: `x.mul(2.5)` of a float32 tensor is float32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
    /// The real and the imaginary part.
    Complex([f64; 2]),
}

/// A tensor, or a number in its place.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    Tensor(&'a Tensor),
    Scalar(Scalar),
}

/// One argument of an operator, for [`call`](crate::call) by name.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    None,
    Tensor(&'a Tensor),
    Scalar(Scalar),
    Bool(bool),
    Int(i64),
    Float(f64),
    Ints(&'a [i64]),
    Floats(&'a [f64]),
    Tensors(&'a [&'a Tensor]),
    OptionalTensors(&'a [Option<&'a Tensor>]),
    Str(&'a str),
    DType(DType),
    Device(Device),
    Generator(&'a Generator),
}

impl<'a> Value<'a> {
    pub(crate) fn from_option<T: Into<Value<'a>>>(value: Option<T>) -> Value<'a> {
        value.map_or(Value::None, Into::into)
    }
}

macro_rules! scalars {
    ($($type:ty => $variant:ident),*) => {
        $(impl From<$type> for Scalar {
            fn from(value: $type) -> Scalar {
                Scalar::$variant(value.into())
            }
        }
        impl From<$type> for Operand<'_> {
            fn from(value: $type) -> Self {
                Operand::Scalar(value.into())
            }
        })*
    };
}
scalars!(bool => Bool, i32 => Int, i64 => Int, f32 => Float, f64 => Float);

impl From<Scalar> for Operand<'_> {
    fn from(value: Scalar) -> Self {
        Operand::Scalar(value)
    }
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(value: &'a Tensor) -> Self {
        Operand::Tensor(value)
    }
}

impl<'a> From<Operand<'a>> for Value<'a> {
    fn from(value: Operand<'a>) -> Self {
        match value {
            Operand::Tensor(tensor) => Value::Tensor(tensor),
            Operand::Scalar(number) => Value::Scalar(number),
        }
    }
}

macro_rules! values {
    ($($type:ty => $variant:ident),*) => {
        $(impl<'a> From<$type> for Value<'a> {
            fn from(value: $type) -> Self {
                Value::$variant(value)
            }
        })*
    };
}
values!(
    &'a Tensor => Tensor, Scalar => Scalar, bool => Bool, i64 => Int, f64 => Float,
    &'a [i64] => Ints, &'a [f64] => Floats, &'a [&'a Tensor] => Tensors,
    &'a [Option<&'a Tensor>] => OptionalTensors, &'a str => Str, DType => DType, Device => Device,
    &'a Generator => Generator
);
